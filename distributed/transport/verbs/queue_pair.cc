// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/verbs/queue_pair.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/check.h"
#include "core/base/env.h"
#include "distributed/transport/verbs/rings.h"

namespace penstock {
namespace {

enum RequestId : uint64_t { kReceiveId, kWriteId, kReadId, kControlId };

constexpr int64_t kGoodbyeNanos = 200'000'000;
constexpr uint8_t kHopLimit = 64;
// Receives are always posted in time (credits.h), so these values are never used.
constexpr uint8_t kRnrTimer = 12, kRnrRetries = 6;

Status LacksQueues(const VerbsDevice& device, const char* what) {
  return ResourceExhausted("RDMA device ", device.name(), " gives no ", what, " (",
                           std::strerror(errno),
                           "): lower --verbs_queue_depth, or have fewer tasks use the device");
}

ibv_mtu MtuOf(uint32_t bytes) {
  int mtu = IBV_MTU_256;
  for (uint32_t b = 256; b < bytes && mtu < IBV_MTU_4096; b *= 2) ++mtu;
  return static_cast<ibv_mtu>(mtu);
}

}  // namespace

StatusOr<std::unique_ptr<QueuePair>> QueuePair::Create(std::shared_ptr<VerbsDevice> device,
                                                       const VerbsSettings& settings,
                                                       size_t out_bytes, size_t in_bytes) {
  CHECK(std::max(out_bytes, in_bytes) <= Immediate::kBytesMax);
  std::unique_ptr<QueuePair> pair(new QueuePair(std::move(device), settings, out_bytes, in_bytes));
  RETURN_IF_ERROR(pair->MapRings());
  RETURN_IF_ERROR(pair->CreateQueues());
  pair->DescribeOwn();
  return pair;
}

QueuePair::QueuePair(std::shared_ptr<VerbsDevice> device, const VerbsSettings& settings,
                     size_t out_bytes, size_t in_bytes)
    : device_(std::move(device)),
      settings_(settings),
      out_bytes_(out_bytes),
      in_bytes_(in_bytes),
      credits_(settings.queue_depth) {}

QueuePair::~QueuePair() {
  if (pair_ != nullptr) ibv_destroy_qp(pair_);
  if (queue_ != nullptr) ibv_destroy_cq(queue_);
  if (channel_ != nullptr) ibv_destroy_comp_channel(channel_);
  region_.reset();
  if (out_ != nullptr) munmap(out_, out_bytes_ + in_bytes_);
}

Status QueuePair::MapRings() {
  const size_t bytes = out_bytes_ + in_bytes_;
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return ResourceExhausted("no memory for the rings of a connection");
  out_ = static_cast<char*>(memory);
  in_ = out_ + out_bytes_;
  (void)madvise(memory, bytes, MADV_DONTFORK);
  ASSIGN_OR_RETURN(
      region_, device_->Register(memory, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  return OkStatus();
}

Status QueuePair::CreateQueues() {
  const int sends = 2 * kWritesMax + kReadsMax + kControlsMax;
  channel_ = ibv_create_comp_channel(device_->context());
  if (channel_ == nullptr) return LacksQueues(*device_, "completion channel");
  fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  queue_ = ibv_create_cq(device_->context(), settings_.queue_depth + sends, nullptr, channel_, 0);
  if (queue_ == nullptr) return LacksQueues(*device_, "completion queue");
  ibv_qp_init_attr wanted = {};
  wanted.send_cq = wanted.recv_cq = queue_;
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap.max_send_wr = static_cast<uint32_t>(sends);
  wanted.cap.max_recv_wr = static_cast<uint32_t>(settings_.queue_depth);
  wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
  pair_ = ibv_create_qp(device_->domain(), &wanted);
  if (pair_ == nullptr) return LacksQueues(*device_, "queue pair");
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = static_cast<uint8_t>(device_->port().number);
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  RETURN_IF_ERROR(Change(attributes,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
                         "be initialised"));
  return PostReceives(settings_.queue_depth);
}

void QueuePair::DescribeOwn() {
  const VerbsDevice::Port& port = device_->port();
  own_.version = kVerbsVersion;
  own_.queue_pair = pair_->qp_num;
  own_.packet_number = static_cast<uint32_t>(Env::Real().RandomU64() & 0xffffff);
  own_.gid = port.gid;
  own_.lid = port.lid;
  own_.network = !port.is_ethernet ? "InfiniBand" : port.is_routable ? "RoCE v2" : "RoCE v1";
  own_.mtu = static_cast<uint32_t>(settings_.mtu != 0 ? settings_.mtu : port.mtu);
  own_.mtu_setting = static_cast<uint32_t>(settings_.mtu);
  own_.service_level = static_cast<uint32_t>(settings_.service_level);
  own_.traffic_class = static_cast<uint32_t>(settings_.traffic_class);
  own_.queue_depth = static_cast<uint32_t>(settings_.queue_depth);
  own_.reads_max = static_cast<uint32_t>(device_->reads_max());
  own_.ring_address = reinterpret_cast<uint64_t>(in_);
  own_.ring_key = region_->remote_key();
  own_.ring_bytes = static_cast<uint32_t>(in_bytes_);
}

Status QueuePair::Change(ibv_qp_attr& attributes, int mask, const char* state) {
  const int error = ibv_modify_qp(pair_, &attributes, mask);
  if (error == 0) return OkStatus();
  return FailedPrecondition("a queue pair of RDMA device ", device_->name(), " cannot ", state,
                            " (", std::strerror(error),
                            "): check --verbs_device, --verbs_port and --verbs_gid_index");
}

Status QueuePair::Connect(const VerbsEndpoint& other, int64_t now_ns) {
  RETURN_IF_ERROR(own_.CheckAgreement(other));
  if (other.ring_bytes != out_bytes_) {
    return DataLoss("the other end has a ring of ", other.ring_bytes, " bytes, not ", out_bytes_);
  }
  other_ = other;
  ibv_qp_attr ready = {};
  ready.qp_state = IBV_QPS_RTR;
  ready.path_mtu = MtuOf(std::min(own_.mtu, other.mtu));
  ready.dest_qp_num = other.queue_pair;
  ready.rq_psn = other.packet_number;
  ready.max_dest_rd_atomic = static_cast<uint8_t>(own_.reads_max);
  ready.min_rnr_timer = kRnrTimer;
  ready.ah_attr.dlid = other.lid;
  ready.ah_attr.sl = static_cast<uint8_t>(settings_.service_level);
  ready.ah_attr.port_num = static_cast<uint8_t>(device_->port().number);
  if (device_->port().is_ethernet) {
    ready.ah_attr.is_global = 1;
    ready.ah_attr.grh.dgid = other.gid;
    ready.ah_attr.grh.sgid_index = static_cast<uint8_t>(device_->port().gid_index);
    ready.ah_attr.grh.hop_limit = kHopLimit;
    ready.ah_attr.grh.traffic_class = static_cast<uint8_t>(settings_.traffic_class);
  }
  RETURN_IF_ERROR(Change(ready,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                         "reach the other end's"));
  ibv_qp_attr sending = {};
  sending.qp_state = IBV_QPS_RTS;
  sending.timeout = static_cast<uint8_t>(settings_.timeout);
  sending.retry_cnt = static_cast<uint8_t>(settings_.retry_count);
  sending.rnr_retry = kRnrRetries;
  sending.sq_psn = own_.packet_number;
  sending.max_rd_atomic = static_cast<uint8_t>(std::min(own_.reads_max, other.reads_max));
  RETURN_IF_ERROR(Change(sending,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
                         "send"));
  connected_ = true;
  heard_ns_ = pinged_ns_ = now_ns;
  return OkStatus();
}

Status QueuePair::PostReceives(int count) {
  ibv_recv_wr request = {};  // the buffer is empty, because only the immediate is received
  request.wr_id = kReceiveId;
  for (int i = 0; i < count; ++i) {
    ibv_recv_wr* failed = nullptr;
    const int error = ibv_post_recv(pair_, &request, &failed);
    if (error != 0) return Unavailable("cannot post a receive: ", std::strerror(error));
  }
  return OkStatus();
}

Status QueuePair::Post(ibv_send_wr& request) {
  ibv_send_wr* failed = nullptr;
  const int error = ibv_post_send(pair_, &request, &failed);
  if (error == 0) return OkStatus();
  return Unavailable("cannot post to the queue pair: ", std::strerror(error));
}

Status QueuePair::PostWrite(const char* from, size_t at, size_t bytes, const Immediate* immediate) {
  ibv_sge range = {reinterpret_cast<uint64_t>(from), static_cast<uint32_t>(bytes),
                   region_->local_key()};
  ibv_send_wr request = {};
  request.wr_id = kWriteId;
  request.sg_list = &range;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  if (immediate != nullptr) {
    request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    request.imm_data = htonl(immediate->Encode());
    request.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;
  }
  request.wr.rdma.remote_addr = other_.ring_address + at;
  request.wr.rdma.rkey = other_.ring_key;
  return Post(request);
}

Status QueuePair::PostControl(const Immediate& immediate) {
  ibv_send_wr request = {};
  request.wr_id = kControlId;
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.imm_data = htonl(immediate.Encode());
  request.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;
  request.wr.rdma.remote_addr = other_.ring_address;
  request.wr.rdma.rkey = other_.ring_key;
  RETURN_IF_ERROR(Post(request));
  ++controls_;
  return OkStatus();
}

Status QueuePair::Flush() {
  if (!connected_) return OkStatus();
  const uint64_t published = out_positions_.published.load(std::memory_order_acquire);
  if (published == sent_ || writes_ >= kWritesMax || !credits_.CanSend()) return OkStatus();
  const size_t bytes = static_cast<size_t>(published - sent_);
  const size_t at = static_cast<size_t>(sent_) & (out_bytes_ - 1);
  const size_t first = std::min(bytes, out_bytes_ - at);
  const Immediate immediate{Immediate::kPublished, 0, static_cast<uint32_t>(bytes)};
  if (first < bytes) {  // wraps around at the ring's end
    RETURN_IF_ERROR(PostWrite(out_ + at, at, first, nullptr));
    RETURN_IF_ERROR(PostWrite(out_, 0, bytes - first, &immediate));
  } else {
    RETURN_IF_ERROR(PostWrite(out_ + at, at, bytes, &immediate));
  }
  sent_ = published;
  ++writes_;
  credits_.Sent();
  return OkStatus();
}

Status QueuePair::Confirm() {
  const uint64_t bytes = in_positions_.consumed.load(std::memory_order_acquire) - confirmed_;
  if (!credits_.ShouldConfirm(bytes, in_bytes_) || controls_ >= kControlsMax) return OkStatus();
  confirmed_ += bytes;
  return PostControl(
      {Immediate::kConfirmed, credits_.TakeReceived(), static_cast<uint32_t>(bytes)});
}

Status QueuePair::Read(char* to, uint32_t local_key, uint64_t from, uint32_t remote_key,
                       size_t bytes) {
  CHECK(CanRead() && bytes <= kReadBytesMax);
  ibv_sge range = {reinterpret_cast<uint64_t>(to), static_cast<uint32_t>(bytes), local_key};
  ibv_send_wr request = {};
  request.wr_id = kReadId;
  request.sg_list = &range;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_READ;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = from;
  request.wr.rdma.rkey = remote_key;
  RETURN_IF_ERROR(Post(request));
  ++reads_;
  return OkStatus();
}

bool QueuePair::HasEvents() {
  if (pending_ == 0) pending_ = ibv_poll_cq(queue_, kEventsMax, events_.data());
  return pending_ != 0;
}

StatusOr<int> QueuePair::Poll(int64_t now_ns) {
  int receives = 0, reads_ended = 0;
  // Handles only a limited number of events, so that the loop can serve other connections. The next
  // call handles the rest.
  for (int round = 0; round < 4 && HasEvents(); ++round) {
    if (pending_ < 0) return Unavailable("the completion queue is broken");
    const int count = std::exchange(pending_, 0);
    for (int i = 0; i < count; ++i) {
      RETURN_IF_ERROR(Handle(events_[i], now_ns, &receives, &reads_ended));
    }
  }
  RETURN_IF_ERROR(PostReceives(receives));
  return reads_ended;
}

Status QueuePair::Handle(const ibv_wc& event, int64_t now_ns, int* receives, int* reads_ended) {
  if (event.status == IBV_WC_RETRY_EXC_ERR) {
    return Unavailable("it does not acknowledge RDMA packets");
  }
  if (event.status != IBV_WC_SUCCESS) {
    return Unavailable("RDMA failed: ", ibv_wc_status_str(event.status));
  }
  switch (event.wr_id) {
    case kWriteId:
      --writes_;
      return OkStatus();
    case kControlId:
      --controls_;
      return OkStatus();
    case kReadId:
      --reads_;
      ++*reads_ended;
      return OkStatus();
    default:
      ++*receives;
      has_heard_ = true;
      heard_ns_ = now_ns;  // acknowledgements do not count, because the device sends them
      return HandleMessage(Immediate::Decode(ntohl(event.imm_data)));
  }
}

Status QueuePair::HandleMessage(const Immediate& message) {
  switch (message.kind) {
    case Immediate::kPublished:
      in_positions_.published.fetch_add(message.bytes, std::memory_order_release);
      return credits_.Received();
    case Immediate::kConfirmed:
      out_positions_.consumed.fetch_add(message.bytes, std::memory_order_release);
      return credits_.Confirmed(message.messages);
    case Immediate::kPing:
      return OkStatus();
    case Immediate::kGoodbye:
      return Unavailable("it has stopped");
  }
  return OkStatus();
}

void QueuePair::Arm() { (void)ibv_req_notify_cq(queue_, 0); }

void QueuePair::TakeEvents() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  unsigned count = 0;
  while (ibv_get_cq_event(channel_, &queue, &context) == 0) ++count;
  if (count > 0) ibv_ack_cq_events(queue_, count);
}

Status QueuePair::Ping(int64_t now_ns) {
  pinged_ns_ = now_ns;
  if (controls_ >= kControlsMax) return OkStatus();  // enough messages are not completed yet
  return PostControl({Immediate::kPing});
}

Status QueuePair::KeepAlive(int64_t now_ns) {
  if (IsSilent(now_ns)) {
    return Unavailable("nothing was heard from it for ", kSilenceNanosMax / 1'000'000'000, " s");
  }
  return now_ns - pinged_ns_ >= kPingNanos / 2 ? Ping(now_ns) : OkStatus();
}

void QueuePair::SayGoodbye() {
  if (!connected_ || controls_ >= kControlsMax) return;
  if (!PostControl({Immediate::kGoodbye}).ok()) return;
  const int64_t latest = Env::Real().NowNanos() + kGoodbyeNanos;
  int64_t now = 0;
  while (controls_ > 0 && (now = Env::Real().NowNanos()) < latest) {
    if (!Poll(now).ok()) return;
    Env::Real().SleepForNanos(200'000);
  }
}

}  // namespace penstock
