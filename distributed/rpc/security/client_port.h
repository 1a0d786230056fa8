// SPDX-License-Identifier: Apache-2.0
//
// ClientPort: a port without TLS and tokens for clients that know neither, such as TensorFlow's
// (--insecure_client_address). It is on the loopback interface, and serves the processes of the
// task's own user, and root's: they could read the task's key and tokens anyway.
#pragma once

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/status.h"
#include "distributed/cluster/cluster_spec.h"

namespace penstock {

class ClientPort {
 public:
  // Listens. InvalidArgument names --insecure_client_address if `address` is not HOST:PORT, is not
  // a loopback address, or is taken. Connections wait until Serve.
  static StatusOr<std::unique_ptr<ClientPort>> Listen(const std::string& address);
  // Stops.
  ~ClientPort();

  // Hands connections to `server`, which must outlive this. Calls of processes that `check` refuses
  // are answered with PERMISSION_DENIED, for about kRefusedSeconds: then their connections are
  // closed. Beyond kRefusedMax of these, further ones are closed at once.
  using PeerCheck = std::function<Status(const HostPort& peer, const HostPort& own)>;
  static constexpr int kRefusedSeconds = 5;
  static constexpr size_t kRefusedMax = 32;
  void Serve(grpc::Server& server, PeerCheck check = CheckOwnUser);
  // Takes no more connections. May be called twice.
  void Stop();
  // The clients that are connected, in the form of ServerContext::peer(): "fd:23". gRPC's own list
  // (calls/connections.h) does not have them.
  std::vector<std::string> Connected();
  // "127.0.0.1:2300", with the port that was bound.
  const std::string& address() const { return address_; }

 private:
  // OK for processes of this one's user, and root's.
  static Status CheckOwnUser(const HostPort& peer, const HostPort& own);

  class Refusal;
  class RefusingServer;
  ClientPort() = default;
  Status Bind(const HostPort& address);
  void Accept();
  void Take(int connection);

  std::string address_;
  int port_ = 0;
  std::vector<int> listeners_;
  int wake_[2] = {-1, -1};  // a pipe: closing its end 1 ends the thread
  grpc::Server* server_ = nullptr;
  PeerCheck check_;
  std::unique_ptr<RefusingServer> refusing_;
  std::thread thread_;
  Mutex mu_;
  // Sockets that a server has been given: descriptor and inode. It closes them.
  using Sockets = std::map<int, ino_t>;
  static void ForgetClosed(Sockets* sockets);
  Sockets taken_ ABSL_GUARDED_BY(mu_);
  Sockets refused_;  // of the thread that accepts
};

}  // namespace penstock
