// SPDX-License-Identifier: Apache-2.0
//
// StatusServer: a task's state over HTTP, for people and for Prometheus:
//
//   /             the cluster as a page (status_page.h)
//   /status.json  the same data as JSON
//   /metrics      this task in Prometheus's text format (metrics.h)
//
// It only reads. Visitors that the task does not admit get 401, those that call it by a name that
// is not its own 403 (host_header.h). Destruction closes the port and waits for requests that are
// under way.
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
  // Called on threads of the server, several at a time; they may take a few seconds.
  struct Visitor {
    std::string host;  // in numbers
    int port = 0;
    std::string authorization, asked_host;  // the headers Authorization and Host
  };
  struct Sources {
    std::function<wire::TaskReport()> task;
    std::function<wire::ClusterReport()> cluster;
    // Whether somebody may look; null: everybody may.
    std::function<Status(const Visitor&)> admit = nullptr;
    std::vector<std::string> names = {};  // by which the task may be called
  };
  // Listens at `address`, whose port is not 0; host "::" is all interfaces. InvalidArgument names
  // --status_port if it cannot.
  static StatusOr<std::unique_ptr<StatusServer>> Create(const HostPort& address, Sources sources);
  ~StatusServer();
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;

 private:
  explicit StatusServer(Sources sources) : sources_(std::move(sources)) {}
  static int Log(const mg_connection* connection, const char* message);
  struct Page {
    int code = 0;  // of HTTP
    const char* type = "";
    std::string body;
  };
  Page Compose(const std::string& method, const std::string& path, const Visitor& visitor) const;
  static int Answer(mg_connection* connection, void* server);

  const Sources sources_;
  std::string error_;  // what the library said while it was started
  mg_context* context_ = nullptr;
};

}  // namespace penstock
