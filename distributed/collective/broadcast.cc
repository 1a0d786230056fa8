// SPDX-License-Identifier: Apache-2.0
//
// Broadcast along a binomial tree. The source announces itself to all peers. Peers are numbered
// starting at the source, and the parent of a number is that number without its lowest set bit. So
// the source has log2(N) children, and the value reaches all peers in that many hops.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "distributed/collective/algorithms.h"
#include "distributed/collective/outstanding.h"

namespace penstock::collective {
namespace {

class Broadcast : public std::enable_shared_from_this<Broadcast> {
 public:
  Broadcast(const Services& services, BroadcastArgs args, Done done)
      : services_(services),
        args_(std::move(args)),
        rank_(services.link->rank()),
        size_(services.link->size()),
        outstanding_(std::move(done)) {}

  void Start() {
    if (args_.is_source) {
      source_ = rank_;
      for (int peer = 0; peer < size_; ++peer) {
        if (peer == rank_) continue;
        services_.link->Send(peer, kAnnouncement, Tensor::Scalar<int32_t>(rank_));
      }
      ForEachChunk(args_.input, [this](Tag tag, int64_t begin, int64_t end) {
        Forward(tag, args_.input.Slice(begin, end));
      });
      return outstanding_.End(OkStatus());
    }
    services_.link->Recv(PeerLink::kAnyPeer, kAnnouncement,
                         [self = shared_from_this()](const StatusOr<Tensor>& source) {
                           self->outstanding_.End(self->SetSource(source));
                         });
  }

 private:
  // Peers are numbered starting at the source.
  int number() const { return (rank_ - source_ + size_) % size_; }
  int PeerOf(int number) const { return (number + source_) % size_; }
  int parent() const { return PeerOf(number() & (number() - 1)); }

  template <class F>
  void ForEachChunk(const Tensor& whole, F call) const {
    const int64_t elements = whole.num_elements();
    const int64_t each =
        std::max<int64_t>(elements / Tag::kChunkMax + 1,
                          args_.chunk_bytes / static_cast<int64_t>(SizeOf(whole.dtype())));
    uint32_t chunk = 0;
    for (int64_t at = 0; at < elements; at += each) {
      call(Tag{.chunk = chunk++}, at, std::min(elements, at + each));
    }
  }

  Status SetSource(const StatusOr<Tensor>& source) {
    RETURN_IF_ERROR(source.status());
    RETURN_IF_ERROR(CheckReceived(*source, DType::kInt32, 1, PeerLink::kAnyPeer));
    source_ = source->scalar<int32_t>();
    if (source_ < 0 || source_ >= size_ || source_ == rank_) {
      return InvalidArgument("a broadcast's source says that it is peer ", source_, " of ", size_);
    }
    ForEachChunk(args_.output,
                 [this](Tag tag, int64_t begin, int64_t end) { Expect(tag, begin, end); });
    return OkStatus();
  }

  // Sends to the children, first to the one with the most descendants.
  void Forward(Tag tag, const Tensor& value) {
    const int lowest = number() == 0 ? size_ : number() & -number();
    int bit = 1;
    while (2 * bit < lowest) bit *= 2;
    for (; bit > 0; bit /= 2) {
      if (bit < lowest && number() + bit < size_) {
        services_.link->Send(PeerOf(number() + bit), tag, value);
      }
    }
  }

  void Expect(Tag tag, int64_t begin, int64_t end) {
    outstanding_.Add(1);
    services_.link->Recv(
        parent(), tag, [self = shared_from_this(), tag, begin, end](StatusOr<Tensor> received) {
          self->outstanding_.End(self->Arrived(tag, begin, end, std::move(received)));
        });
  }

  Status Arrived(Tag tag, int64_t begin, int64_t end, StatusOr<Tensor> received) {
    RETURN_IF_ERROR(received.status());
    RETURN_IF_ERROR(CheckReceived(*received, args_.output.dtype(), end - begin, parent()));
    Forward(tag, *received);
    const int64_t bytes_of_one = static_cast<int64_t>(SizeOf(args_.output.dtype()));
    std::memcpy(static_cast<char*>(args_.output.mutable_raw_data()) + begin * bytes_of_one,
                received->raw_data(), received->bytes());
    return OkStatus();
  }

  const Services services_;
  BroadcastArgs args_;
  const int rank_, size_;
  int source_ = 0;
  Outstanding outstanding_;
};

}  // namespace

void RunBroadcast(const Services& services, BroadcastArgs args, Done done) {
  std::make_shared<Broadcast>(services, std::move(args), std::move(done))->Start();
}

}  // namespace penstock::collective
