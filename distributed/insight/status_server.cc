// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/status_server.h"

#include <civetweb.h>

#include <future>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "distributed/insight/host_header.h"
#include "distributed/insight/metrics.h"
#include "distributed/insight/status_page.h"
#include "distributed/insight/status_tables.h"

namespace penstock {
namespace {

constexpr char kThreads[] = "4";

std::string ListeningPort(const HostPort& address) {
  // "+PORT" makes the library listen on IPv4 and IPv6; with "[::]" it would use only IPv6.
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
  // Ignores messages after the start: they concern single connections, for example one that a
  // client has closed.
  if (server != nullptr && server->context_ == nullptr) server->error_ = message;
  return 1;  // tells the library not to print the message to stderr, too
}

StatusServer::Page StatusServer::Compose(const std::string& method, const std::string& path,
                                         const Visitor& visitor) const {
  const char* const text = "text/plain; charset=utf-8";
  const Status called = CheckHostHeader(visitor.asked_host, sources_.names);
  if (!called.ok()) return {403, text, absl::StrCat(called.message(), "\n")};
  const Status admitted = sources_.admit == nullptr ? OkStatus() : sources_.admit(visitor);
  if (!admitted.ok()) return {401, text, absl::StrCat(admitted.message(), "\n")};
  if (method != "GET" && method != "HEAD") return {405, text, "only GET and HEAD\n"};
  if (path == "/") return {200, "text/html; charset=utf-8", StatusPage(sources_.cluster())};
  if (path == "/status.json") return {200, "application/json", StatusJson(sources_.cluster())};
  if (path == "/metrics") {
    return {200, "text/plain; version=0.0.4; charset=utf-8", MetricsText(sources_.task())};
  }
  return {404, text, "there are /, /status.json and /metrics\n"};
}

int StatusServer::Answer(mg_connection* connection, void* self) {
  const auto* const server = static_cast<StatusServer*>(self);
  const mg_request_info& request = *mg_get_request_info(connection);
  const std::string method = request.request_method, path = request.local_uri;
  const auto header = [&](const char* name) {
    const char* const value = mg_get_header(connection, name);
    return std::string(value == nullptr ? "" : value);
  };
  const Visitor visitor{.host = request.remote_addr,
                        .port = request.remote_port,
                        .authorization = header("Authorization"),
                        .asked_host = header("Host")};
  Page page;
  try {
    // The threads of the library have a stack of 100 KiB, which is too small for
    // code that reads files.
    page = std::async(std::launch::async, [&] {
             return server->Compose(method, path, visitor);
           }).get();
  } catch (const std::system_error& e) {
    page = {503, "text/plain; charset=utf-8", absl::StrCat("no thread: ", e.what(), "\n")};
  }
  mg_printf(
      connection,
      "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\n%sConnection: close\r\n\r\n",
      page.code, mg_get_response_code_text(connection, page.code), page.type, page.body.size(),
      page.code == 401 ? "WWW-Authenticate: Basic realm=\"penstock\"\r\n" : "");
  if (method != "HEAD") mg_write(connection, page.body.data(), page.body.size());
  return page.code;
}

}  // namespace penstock
