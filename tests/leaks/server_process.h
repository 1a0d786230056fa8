// SPDX-License-Identifier: Apache-2.0
//
// ServerProcess: one task of a cluster on this host, a `penstock server` in a process of its own,
// which is killed with SIGKILL.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/env.h"
#include "distributed/session/session.h"

namespace penstock {

// Returns a port below the range from which the system takes ports for connections. No other test
// of this machine gets the port until this process ends, because this process holds the port's lock
// file. The Python tests use the same files: tests/e2e/ports.py.
inline int ReservePort() {
  std::string temporary = "/tmp";
  for (const char* name : {"TMP", "TEMP", "TMPDIR"}) {  // as Python's tempfile.gettempdir()
    const char* const folder = std::getenv(name);
    if (folder != nullptr && access(folder, W_OK | X_OK) == 0) temporary = folder;
  }
  const std::string folder = StrCat(temporary, "/penstock-test-ports-", getuid());
  CHECK(mkdir(folder.c_str(), 0777) == 0 || errno == EEXIST, folder);
  while (true) {
    const auto port = static_cast<uint16_t>(10'000 + Env::Real().RandomU64() % 20'000);
    const std::string path = StrCat(folder, "/", port);
    const int lock = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    const int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(lock >= 0 && probe >= 0, path);
    const sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(port)};
    const bool is_free =
        flock(lock, LOCK_EX | LOCK_NB) == 0 &&
        bind(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    close(probe);
    if (is_free) return port;  // `lock` stays open
    close(lock);
  }
}

class ServerProcess {
 public:
  // `flags`: the arguments after "server". `address`: "host:port" of the task. `log`: the file to
  // which the process writes.
  ServerProcess(std::vector<std::string> flags, std::string address, std::string log)
      : flags_(std::move(flags)), address_(std::move(address)), log_(std::move(log)) {
    Start();
  }
  ~ServerProcess() { Kill(); }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  pid_t pid() const { return pid_; }
  std::string target() const { return StrCat("grpc://", address_); }

  void Kill() {
    if (pid_ < 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

  // Starts the process, and waits until it answers.
  void Start() {
    CHECK(pid_ < 0);
    // Everything is allocated before the fork, because another thread may hold the heap's lock.
    std::vector<std::string> arguments = {kProgram, "server"};
    arguments.insert(arguments.end(), flags_.begin(), flags_.end());
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const int log = open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    CHECK(log >= 0, log_);
    pid_ = fork();
    CHECK(pid_ >= 0);
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(log, STDOUT_FILENO);
      dup2(log, STDERR_FILENO);
      execv(kProgram, argv.data());
      _exit(127);
    }
    close(log);
    AwaitAnswer();
  }

 private:
  static constexpr char kProgram[] = "tools/penstock/penstock";

  void AwaitAnswer() {
    for (int i = 0; i < 600; ++i) {
      const auto session = NewRemoteSession(
          target(), {.operation_timeout_ms = 500, .device_filters = {"/job:none"}});
      if (session.ok() && (*session)->ListDevices().ok()) return;
      Env::Real().SleepForNanos(50'000'000);
    }
    CHECK(false, "the server at ", address_, " does not answer; see ", log_);
  }

  const std::vector<std::string> flags_;
  const std::string address_, log_;
  pid_t pid_ = -1;
};

}  // namespace penstock
