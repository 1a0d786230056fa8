// SPDX-License-Identifier: Apache-2.0
//
// StatusServer: serves a task's state over HTTP, for people and for Prometheus:
//
//   /             the cluster as a page (status_page.h)
//   /status.json  the same data as JSON
//   /metrics      this task in Prometheus's text format (metrics.h)
//
// Requests cannot change anything. A visitor whom the task does not admit gets 401. A request
// with a foreign name in its Host header gets 403 (host_header.h). Destruction closes the port
// and waits for running requests.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "distributed/cluster/cluster_spec.h"
#include "proto/penstock/insight.pb.h"

struct mg_connection;
struct mg_context;

namespace penstock {

class StatusServer {
 public:
  struct Visitor {
    std::string host;  // the visitor's end of the connection: a numeric address
    int port = 0;
    std::string authorization, asked_host;  // the values of the headers Authorization and Host
  };
  // Functions that provide the contents of the pages. Called on threads of the server, several at
  // a time; they may take a few seconds.
  struct Sources {
    std::function<wire::TaskReport()> task;
    std::function<wire::ClusterReport()> cluster;
    // Decides whether a visitor may read the pages; null: everybody may.
    std::function<Status(const Visitor&)> admit = nullptr;
    // The names that a Host header may contain, besides "localhost" and numeric addresses.
    std::vector<std::string> names = {};
  };
  // Listens at `address`, whose port is not 0; host "::" means all interfaces. If that fails,
  // InvalidArgument names --status_port.
  static StatusOr<std::unique_ptr<StatusServer>> Create(const HostPort& address, Sources sources);
  ~StatusServer();
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;

 private:
  explicit StatusServer(Sources sources) : sources_(std::move(sources)) {}
  static int Log(const mg_connection* connection, const char* message);
  struct Page {
    int code = 0;  // HTTP status
    const char* type = "";
    std::string body;
  };
  Page Compose(const std::string& method, const std::string& path, const Visitor& visitor) const;
  static int Answer(mg_connection* connection, void* server);

  const Sources sources_;
  std::string error_;  // messages of the HTTP library while the server was started
  mg_context* context_ = nullptr;
};

}  // namespace penstock
