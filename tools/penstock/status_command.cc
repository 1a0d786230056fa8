// SPDX-License-Identifier: Apache-2.0
//
// `penstock status`, `penstock stats` and `penstock top`.
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <memory>
#include <string>

#include "client/stop_signal.h"
#include "core/base/env.h"
#include "distributed/insight/status_tables.h"
#include "distributed/rpc/ask_cluster.h"
#include "distributed/security/security_flags.h"
#include "tools/penstock/commands.h"

namespace penstock {
namespace {

constexpr char kTarget[] = "grpc://HOST:PORT of any task of the cluster";

// Like ExitCodeOf, but returns 2 if the address is malformed, which is a mistake in the command
// line.
int CodeOf(const Status& status) {
  const int code = ExitCodeOf(status);
  return status.code() == StatusCode::kInvalidArgument ? 2 : code;
}

// While an object of this class exists, the terminal passes each pressed key to the program at
// once. Has no effect if standard input is not a terminal.
class Keys {
 public:
  Keys() : terminal_(tcgetattr(STDIN_FILENO, &before_) == 0) {
    if (!terminal_) return;
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  ~Keys() {
    if (terminal_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;

  // Waits for `ms` milliseconds, or until the user presses q or `stop` is requested. Returns true
  // in the latter two cases, in which the command has to end.
  bool Ends(int64_t ms, const client::StopSignal& stop) const {
    constexpr int64_t kLookMs = 100;
    for (int64_t waited = 0; waited < ms; waited += kLookMs) {
      if (stop.requested()) return true;
      pollfd input{.fd = STDIN_FILENO, .events = POLLIN};
      const int look_ms = static_cast<int>(std::min(kLookMs, ms - waited));
      if (poll(terminal_ ? &input : nullptr, terminal_ ? 1 : 0, look_ms) <= 0) continue;
      char key = 0;
      if (read(STDIN_FILENO, &key, 1) != 1 || std::tolower(key) == 'q') return true;
    }
    return stop.requested();
  }

 private:
  termios before_;
  const bool terminal_;
};

int Top(const std::string& target, double interval_seconds) {
  client::StopSignal stop(/*grace_seconds=*/0);
  const Keys keys;
  const char* const clear = isatty(STDOUT_FILENO) ? "\x1b[H\x1b[2J" : "";
  bool answered = false;
  while (true) {
    const auto report = AskCluster(target);
    if (!report.ok() && !answered) return CodeOf(report.status());
    answered = true;
    // Goes on after an error: the task has answered before, and may be restarting.
    const std::string text =
        report.ok() ? StatusText(*report) : StrCat(report.status().message(), "\n");
    std::printf("%s%s\n  every %g s; q ends\n", clear, text.c_str(), interval_seconds);
    std::fflush(stdout);
    if (keys.Ends(static_cast<int64_t>(interval_seconds * 1000), stop)) return 0;
  }
}

}  // namespace

void AddStatusCommand(CLI::App& app, int* exit_code) {
  CLI::App* status = app.add_subcommand("status", "The tasks, sessions and steps of a cluster");
  status->footer(
      "Asks the task at the address, and through it every task of its cluster. Prints which tasks\n"
      "run, since when, and how much memory they use; the sessions with their age and steps;\n"
      "queues, the largest variables, and the traffic between tasks. steps/s is the mean of the\n"
      "last 5 to 10 s. A task that does not answer within 1.5 s is marked.\n\n"
      "  penstock status grpc://127.0.0.1:2222\n"
      "  penstock status grpc://127.0.0.1:2222 --json | jq '.task[] | {name, error}'\n");
  const auto target = std::make_shared<std::string>();
  const auto json = std::make_shared<bool>(false);
  status->add_option("target", *target, kTarget)->required();
  status->add_flag("--json", *json,
                   "Print the complete report as one line of JSON; 64-bit numbers are strings");
  AddClientSecurityFlags(*status);
  status->callback([target, json, exit_code] {
    const auto report = AskCluster(*target);
    *exit_code = CodeOf(report.status());
    if (!report.ok()) return;
    const std::string text = *json ? StrCat(StatusJson(*report), "\n") : StatusText(*report);
    std::fputs(text.c_str(), stdout);
  });
}

void AddStatsCommand(CLI::App& app, int* exit_code) {
  CLI::App* stats = app.add_subcommand("stats", "The memory of tensors: in use, peak, limits");
  stats->footer(
      "Asks the task at the address, and through it every task of its cluster, for the statistics\n"
      "of its allocators and for the memory of each session there. The memory of a session\n"
      "includes tensors above 32 KiB that its kernels made, also variables. Tensors from clients\n"
      "and other tasks count for the device only. `penstock cost` predicts the memory of steps.\n\n"
      "  penstock stats grpc://127.0.0.1:2222\n"
      "  penstock status grpc://127.0.0.1:2222 --json | jq '.task[].report.allocator'\n");
  const auto target = std::make_shared<std::string>();
  stats->add_option("target", *target, kTarget)->required();
  AddClientSecurityFlags(*stats);
  stats->callback([target, exit_code] {
    const auto report = AskCluster(*target);
    *exit_code = CodeOf(report.status());
    if (report.ok()) std::fputs(MemoryText(*report).c_str(), stdout);
  });
}

void AddTopCommand(CLI::App& app, int* exit_code) {
  CLI::App* top = app.add_subcommand("top", "`penstock status`, refreshed until it is ended");
  top->footer(
      "Shows the output of `penstock status` and refreshes it; q or Ctrl-C ends it.\n\n"
      "  penstock top grpc://127.0.0.1:2222 --interval=1\n");
  struct Options {
    std::string target;
    double interval_seconds = 2;
    bool once = false;
  };
  const auto options = std::make_shared<Options>();
  top->add_option("target", options->target, kTarget)->required();
  top->add_option("--interval", options->interval_seconds, "Seconds between two refreshes")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 86'400.0));
  top->add_flag("--once", options->once, "Print once and end, as `penstock status` does");
  AddClientSecurityFlags(*top);
  top->callback([options, exit_code] {
    if (!options->once) {
      *exit_code = Top(options->target, options->interval_seconds);
      return;
    }
    const auto report = AskCluster(options->target);
    *exit_code = CodeOf(report.status());
    if (report.ok()) std::fputs(StatusText(*report).c_str(), stdout);
  });
}

}  // namespace penstock
