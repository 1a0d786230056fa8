// SPDX-License-Identifier: Apache-2.0
#include "distributed/calls/channel.h"

#include <grpc/support/time.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <utility>

#include "core/base/detached_thread.h"
#include "core/base/env.h"
#include "core/base/timeout.h"
#include "distributed/security/connection_diagnosis.h"

namespace penstock {
namespace {

// These values let a channel reach a restarted peer again within a second.
constexpr int kReconnectMsMin = 100;
constexpr int kReconnectMsMax = 1000;
constexpr int64_t kNanosPerMilli = 1'000'000;
// The age at which a diagnosis is renewed, and the age at which it is no longer used.
constexpr int64_t kDiagnosisNanos = 3'000'000'000;
constexpr int64_t kStaleNanos = 10'000'000'000;

}  // namespace

std::shared_ptr<grpc::Channel> NewChannel(const std::string& address,
                                          const KeepaliveOptions& keepalive,
                                          const Credentials& credentials) {
  grpc::ChannelArguments args;
  args.SetMaxReceiveMessageSize(-1);
  args.SetMaxSendMessageSize(-1);
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Disables gRPC's retries: a failed call may have been executed nevertheless, and only its caller
  // knows whether it may be repeated.
  args.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, keepalive.time_ms);
  args.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, keepalive.timeout_ms);
  args.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  args.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMsMin);
  args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kReconnectMsMax);
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMsMax);
  // Makes a peer that restarts at another address reachable within a second, too.
  args.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, kReconnectMsMax);
  // Gives each channel its own connection: two servers in one process must not share one.
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return credentials.NewChannel(address, std::move(args));
}

void SetServerArguments(const KeepaliveOptions& keepalive, grpc::ServerBuilder* builder,
                        int message_bytes_max) {
  builder->SetMaxReceiveMessageSize(message_bytes_max > 0 ? message_bytes_max : -1);
  builder->SetMaxSendMessageSize(-1);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, keepalive.time_ms);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, keepalive.timeout_ms);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Allows peers to send a ping this often; by default gRPC would treat these pings as an attack.
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              keepalive.time_ms / 2);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  // Makes binding a port that is in use an error; by default servers would share the port.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

// The results of DiagnoseConnection. Shared with the threads that call it, which may outlive the
// Channels.
struct Channels::Diagnoses {
  struct Entry {
    std::string text;
    int64_t made_ns = 0;
    bool under_way = false;
  };
  Mutex mu;
  std::map<std::string, Entry> entries ABSL_GUARDED_BY(mu);  // by address
};

Channels::Channels(const KeepaliveOptions& keepalive,
                   std::shared_ptr<const Credentials> credentials)
    : keepalive_(keepalive),
      credentials_(std::move(credentials)),
      diagnoses_(std::make_shared<Diagnoses>()) {}

std::shared_ptr<grpc::Channel> Channels::To(const std::string& address) {
  const int64_t now_ns = Env::Real().NowNanos();
  MutexLock lock(mu_);
  Entry& entry = channels_[address];
  const bool stuck = entry.channel != nullptr &&
                     entry.channel->GetState(false) == GRPC_CHANNEL_TRANSIENT_FAILURE &&
                     now_ns - entry.made_ns > kReconnectMsMax * kNanosPerMilli;
  if (entry.channel == nullptr || stuck) {
    entry = {NewChannel(address, keepalive_, *credentials_), now_ns};
  }
  return entry.channel;
}

std::shared_ptr<grpc::Channel> Channels::Connect(const std::string& address, int64_t timeout_ms,
                                                 std::string* mismatch) {
  Env& env = Env::Real();
  const int64_t deadline_ns = env.NowNanos() + TimeoutNanos(timeout_ms);
  while (true) {
    const auto channel = To(address);
    const int64_t left_ms = (deadline_ns - env.NowNanos()) / kNanosPerMilli;
    const auto until = gpr_time_add(
        gpr_now(GPR_CLOCK_MONOTONIC),
        gpr_time_from_millis(std::clamp<int64_t>(left_ms, 0, kReconnectMsMax), GPR_TIMESPAN));
    if (channel->WaitForConnected(until)) return channel;
    *mismatch = Mismatch(address);
    if (!mismatch->empty() || left_ms <= 0) return channel;
  }
}

std::string Channels::Mismatch(const std::string& address) {
  MutexLock lock(diagnoses_->mu);
  Diagnoses::Entry& entry = diagnoses_->entries[address];
  const int64_t age_ns = Env::Real().NowNanos() - entry.made_ns;
  if (age_ns > kStaleNanos) entry.text.clear();
  if (entry.under_way || (entry.made_ns != 0 && age_ns < kDiagnosisNanos)) return entry.text;
  const auto diagnose = [shared = diagnoses_, credentials = credentials_, address] {
    std::string text = DiagnoseConnection(address, *credentials);
    MutexLock lock(shared->mu);
    shared->entries[address] = {std::move(text), Env::Real().NowNanos(), false};
  };
  // If the thread cannot be started, the next call tries again.
  entry.under_way = StartDetachedThread("diagnosis", diagnose).ok();
  return entry.text;
}

}  // namespace penstock
