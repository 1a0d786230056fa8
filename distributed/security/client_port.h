// SPDX-License-Identifier: Apache-2.0
//
// ClientPort: a port without TLS and tokens for clients that know neither, such as TensorFlow's
// (--insecure_client_address). It is on the loopback interface, and serves only processes of root
// and of the task's own user, because these could read the task's key and tokens anyway.
#pragma once

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "core/base/status.h"
#include "distributed/cluster/cluster_spec.h"

namespace penstock {

class ClientPort {
 public:
  // Listens. InvalidArgument names --insecure_client_address if `address` is not HOST:PORT, is not
  // a loopback address, or is in use. Connections wait until Serve is called.
  static StatusOr<std::unique_ptr<ClientPort>> Listen(const std::string& address);
  // Stops the port.
  ~ClientPort();

  // Hands connections to `server`, which must outlive this object. If `check` refuses the process
  // of a connection, its calls are answered with PERMISSION_DENIED for about kRefusedSeconds; then
  // the connection is closed. While there are kRefusedMax such connections, further ones are closed
  // at once.
  using PeerCheck = std::function<Status(const HostPort& peer, const HostPort& own)>;
  static constexpr int kRefusedSeconds = 5;
  static constexpr size_t kRefusedMax = 32;
  void Serve(grpc::Server& server, PeerCheck check = CheckOwnUser);
  // Accepts no more connections. May be called twice.
  void Stop();
  // Returns the connected clients, in the form of ServerContext::peer(): "fd:23". gRPC's own list
  // (calls/connections.h) does not contain them.
  std::vector<std::string> Connected();
  // Returns "127.0.0.1:2300", with the port that was bound.
  const std::string& address() const { return address_; }

 private:
  // Returns OK if the peer is a process of root or of this process's user.
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
  int wake_[2] = {-1, -1};  // a pipe: closing its end 1 (for writing) ends the thread
  grpc::Server* server_ = nullptr;
  PeerCheck check_;
  std::unique_ptr<RefusingServer> refusing_;  // null until a connection is refused
  std::unique_ptr<Thread> thread_;
  Mutex mu_;
  // The descriptors and inodes of sockets that were given to a server, which closes them.
  using Sockets = std::map<int, ino_t>;
  static void ForgetClosed(Sockets* sockets);
  Sockets taken_ ABSL_GUARDED_BY(mu_);
  Sockets refused_;  // used by the accepting thread only
};

}  // namespace penstock
