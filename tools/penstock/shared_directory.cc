// SPDX-License-Identifier: Apache-2.0
#include "tools/penstock/shared_directory.h"

#include <memory>

#include "client/ops/ops.h"
#include "client/program.h"
#include "client/session.h"
#include "core/base/env.h"

namespace penstock {
namespace {

using Level = Finding::Level;

Finding Unknown(const std::string& subject, const Status& why) {
  return {Level::kWarning, subject,
          StrCat("whether all tasks see the same directory is unknown: ", why.message()),
          "mend what is said above, and ask again"};
}

Finding Read(client::Session& session, Output contents, const std::string& expected,
             const std::string& subject, const std::string& task) {
  const StatusOr<Tensor> read = session.Fetch(contents);
  if (read.ok() && read->data<std::string>()[0] == expected) {
    return {Level::kOk, subject, StrCat(task, " sees the same directory")};
  }
  const std::string why =
      read.ok() ? "the file has other contents" : std::string(read.status().message());
  return {Level::kError, subject, StrCat(task, " does not see what is written here: ", why),
          "mount one shared directory on all hosts: tasks save the variables that they hold there"};
}

}  // namespace

Findings CheckSharedDirectory(const std::string& directory, const std::string& target,
                              const std::vector<std::string>& tasks, int64_t timeout_ms) {
  const std::string subject = StrCat("--checkpoint_dir=", directory);
  Env& env = Env::Real();
  const std::string token = StrCat("penstock-doctor-", env.RandomU64());
  const std::string path = StrCat(directory, "/", token);
  const Status written = env.WriteFileAtomically(path, token);
  if (!written.ok()) return {};  // ExamineCheckpoints reports why the file cannot be written
  client::Program program;
  std::vector<Output> contents;
  for (const std::string& task : tasks) {
    const auto scope = program.DeviceScope(task);
    contents.push_back(ops::ReadFile(Constant(program, Tensor::Scalar(path))));
  }
  Findings findings;
  const auto session = client::Session::New(
      program, target, {.operation_timeout_ms = timeout_ms, .isolate_state = true});
  for (size_t i = 0; session.ok() && i < tasks.size(); ++i) {
    findings.push_back(Read(**session, contents[i], token, subject, tasks[i]));
  }
  if (!session.ok()) findings.push_back(Unknown(subject, session.status()));
  (void)env.RemoveFile(path);
  return findings;
}

}  // namespace penstock
