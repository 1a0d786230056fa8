// SPDX-License-Identifier: Apache-2.0
//
// RootedEnv: the files of another Env, limited to one directory. A server with --file_root passes
// it to all code that runs graphs, so that no op reaches a file outside.
//
// A relative path starts in the directory; an absolute one must begin with it. Linux resolves the
// rest of the path (openat2 with RESOLVE_BENEATH), so ".." and symbolic links cannot lead out of
// the directory, not even while other processes rename files there. An absolute symbolic link
// counts as a path out of the directory. For a path that leads out of the directory, operations
// return PermissionDenied, which names the path and the flag. Everything else is as in Env:
// thread-safe, errors name the path.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/forwarding_env.h"

namespace penstock {

class RootedEnv final : public ForwardingEnv {
 public:
  // Limits `base` to the directory `root`. InvalidArgument names `flag` if `root` is not a
  // directory, or the system lacks openat2 (Linux 5.6) or /proc. `base` is borrowed.
  static StatusOr<std::unique_ptr<RootedEnv>> Create(Env& base, const std::string& root,
                                                     const std::string& flag = "--file_root");
  ~RootedEnv() override;

  StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) override;
  StatusOr<std::unique_ptr<RandomAccessFile>> OpenFile(const std::string& path) override;
  StatusOr<std::string> ReadFile(const std::string& path) override;
  // Returns true for the directories above the root, too, because MatchFiles passes through them.
  bool FileExists(const std::string& path) override;
  StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) override;
  Status CreateDirectories(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status RemoveFile(const std::string& path) override;
  Status RemoveDirectory(const std::string& path) override;
  Status SyncDirectory(const std::string& path) override;

 private:
  class Handle;
  // A file or directory by its parent: a handle of the parent directory, and the path under which
  // `base_` finds the file.
  struct Entry;

  RootedEnv(Env& base, std::string flag, std::vector<std::string> roots, int fd)
      : ForwardingEnv(base),
        base_(base),
        flag_(std::move(flag)),
        roots_(std::move(roots)),
        fd_(fd) {}

  Status OutsideError(const std::string& path) const;
  // Returns the path relative to the root, "." for the root itself; PermissionDenied if an absolute
  // path does not begin with the root.
  StatusOr<std::string> RelativeToRoot(const std::string& path) const;
  StatusOr<Handle> Resolve(const std::string& path, const std::string& below, int flags) const;
  StatusOr<Entry> ResolveParent(const std::string& path) const;
  // Calls `use` with a path under which `base_` finds the file at `path`.
  Status WithFile(const std::string& path,
                  const std::function<Status(const std::string&)>& use) const;
  Status WithEntry(const std::string& path,
                   const std::function<Status(const std::string&)>& use) const;

  Env& base_;
  const std::string flag_;
  // The root directory as the caller gave it, and with symbolic links resolved; no '/' at the end.
  const std::vector<std::string> roots_;
  const int fd_;
};

// Returns whether an operation failed because its path leads out of a RootedEnv's directory.
bool IsOutsideFileRoot(const Status& status);

}  // namespace penstock
