// SPDX-License-Identifier: Apache-2.0
#include "client/summary/tensorboard.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/strings/str_split.h"

namespace penstock::client {
namespace {

constexpr int kUsualPort = 6006;
constexpr int64_t kGraceNanos = 5'000'000'000;
constexpr int64_t kPollNanos = 20'000'000;

std::string FindInPath(const char* program) {
  const char* const path = std::getenv("PATH");
  for (const string_view folder : absl::StrSplit(path == nullptr ? "" : path, ':')) {
    const std::string file = StrCat(folder, "/", program);
    if (!folder.empty() && access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

// Returns `wanted`, or 0 if that port is taken. If `wanted` is 0, returns a free port.
int UnusedPort(int wanted) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return 0;
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(wanted));
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  const bool free = bind(fd, generic, size) == 0 && getsockname(fd, generic, &size) == 0;
  close(fd);
  return free ? ntohs(address.sin_port) : 0;
}

// Runs in the child between fork and exec: uses only async-signal-safe calls.
[[noreturn]] void Exec(const std::vector<const char*>& argv, int log, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);  // the parent ended before prctl
  setpgid(0, 0);                      // Ctrl-C reaches only the training, which ends TensorBoard
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execv(argv[0], const_cast<char* const*>(argv.data()));
  _exit(127);
}

}  // namespace

StatusOr<std::unique_ptr<TensorBoard>> TensorBoard::Start(const std::string& folder, Env& env) {
  const std::string program = FindInPath("tensorboard");
  if (program.empty()) {
    return NotFound("tensorboard is not installed: no such program in PATH. Install it with `pip ",
                    "install tensorboard`, or look at ", folder, " on another machine");
  }
  int port = UnusedPort(kUsualPort);
  if (port == 0) port = UnusedPort(0);
  if (port == 0) return ResourceExhausted("tensorboard: no port is free");
  RETURN_IF_ERROR(env.CreateDirectories(folder));
  const std::string log = StrCat(folder, "/tensorboard.log");
  const int log_file = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (log_file < 0) return Unavailable("cannot write ", log, ": ", std::strerror(errno));
  const std::string logdir = StrCat("--logdir=", folder), port_flag = StrCat("--port=", port);
  const std::vector<const char*> argv = {program.c_str(),       logdir.c_str(),
                                         port_flag.c_str(),     "--host=localhost",
                                         "--reload_interval=5", nullptr};
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) Exec(argv, log_file, parent);
  close(log_file);
  if (pid < 0) return ResourceExhausted("cannot start ", program, ": ", std::strerror(errno));
  return std::unique_ptr<TensorBoard>(new TensorBoard(pid, port, env));
}

TensorBoard::~TensorBoard() {
  kill(pid_, SIGTERM);
  const int64_t deadline = env_.NowNanos() + kGraceNanos;
  while (waitpid(pid_, nullptr, WNOHANG) == 0) {
    if (env_.NowNanos() > deadline) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
      return;
    }
    env_.SleepForNanos(kPollNanos);
  }
}

}  // namespace penstock::client
