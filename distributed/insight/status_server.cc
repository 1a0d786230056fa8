// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/status_server.h"

#include <civetweb.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "distributed/insight/metrics.h"
#include "distributed/insight/status_page.h"
#include "distributed/insight/status_tables.h"

namespace penstock {
namespace {

constexpr char kThreads[] = "4";

std::string ListeningPort(const HostPort& address) {
  // Both families; the library takes [::] for IPv6 alone.
  if (address.host == "::") return absl::StrCat("+", address.port);
  return address.ToString();
}

}  // namespace

StatusOr<std::unique_ptr<StatusServer>> StatusServer::Create(const HostPort& address,
                                                             Sources sources) {
  if (address.port < 1 || address.port > 65535) {
    return InvalidArgument("--status_port: ", address.port, " is not a port; write 1 to 65535");
  }
  std::unique_ptr<StatusServer> server(new StatusServer(std::move(sources)));
  const std::string port = ListeningPort(address);
  const char* options[] = {"listening_ports",    port.c_str(), "num_threads", kThreads,
                           "request_timeout_ms", "10000",      nullptr};
  mg_callbacks callbacks = {};
  callbacks.log_message = Log;
  server->context_ = mg_start(&callbacks, server.get(), options);
  if (server->context_ == nullptr) {
    return InvalidArgument("--status_port: cannot listen on ", address.ToString(),
                           server->error_.empty() ? "" : ": ", server->error_);
  }
  mg_set_request_handler(server->context_, "**", Answer, server.get());
  return server;
}

StatusServer::~StatusServer() {
  if (context_ != nullptr) mg_stop(context_);
}

int StatusServer::Log(const mg_connection* connection, const char* message) {
  auto* const server = static_cast<StatusServer*>(mg_get_user_data(mg_get_context(connection)));
  // Later ones speak of single connections, such as clients that hang up.
  if (server != nullptr && server->context_ == nullptr) server->error_ = message;
  return 1;  // not to standard error as well
}

int StatusServer::Answer(mg_connection* connection, void* self) {
  const Sources& sources = static_cast<StatusServer*>(self)->sources_;
  const mg_request_info& request = *mg_get_request_info(connection);
  const string_view method = request.request_method, path = request.local_uri;
  const char* type = "text/plain; charset=utf-8";
  int code = 200;
  std::string body;
  const char* const authorization = mg_get_header(connection, "Authorization");
  const Visitor visitor{.host = request.remote_addr,
                        .port = request.remote_port,
                        .authorization = authorization == nullptr ? "" : authorization};
  const Status admitted = sources.admit == nullptr ? OkStatus() : sources.admit(visitor);
  if (!admitted.ok()) {
    code = 401;
    body = absl::StrCat(admitted.message(), "\n");
  } else if (method != "GET" && method != "HEAD") {
    code = 405;
    body = "only GET and HEAD\n";
  } else if (path == "/") {
    type = "text/html; charset=utf-8";
    body = StatusPage(sources.cluster());
  } else if (path == "/status.json") {
    type = "application/json";
    body = StatusJson(sources.cluster());
  } else if (path == "/metrics") {
    type = "text/plain; version=0.0.4; charset=utf-8";
    body = MetricsText(sources.task());
  } else {
    code = 404;
    body = "there are /, /status.json and /metrics\n";
  }
  mg_printf(
      connection,
      "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\n%sConnection: close\r\n\r\n",
      code, mg_get_response_code_text(connection, code), type, body.size(),
      code == 401 ? "WWW-Authenticate: Basic realm=\"penstock\"\r\n" : "");
  if (method != "HEAD") mg_write(connection, body.data(), body.size());
  return code;
}

}  // namespace penstock
