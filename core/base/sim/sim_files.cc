// SPDX-License-Identifier: Apache-2.0
#include "core/base/sim/sim_files.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock {
namespace {

constexpr int64_t kOperationNanosMax = 400'000;

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

}  // namespace

class SimFiles::File final : public WritableFile {
 public:
  File(SimFiles& files, std::string path, std::shared_ptr<Node> node)
      : files_(files), path_(std::move(path)), node_(std::move(node)) {}

  Status Append(string_view data) override {
    RETURN_IF_ERROR(error_);
    bool torn = false;
    error_ = files_.PassTimeOrFail("write to", path_, &torn);
    const size_t count = error_.ok() ? data.size() : torn ? files_.RandomBelow(data.size()) : 0;
    if (!node_->lost) node_->data.append(data.data(), count);
    return error_;
  }
  Status Sync() override {
    RETURN_IF_ERROR(error_);
    error_ = files_.PassTimeOrFail("sync", path_);
    if (error_.ok()) node_->synced = node_->data.size();
    return error_;
  }
  Status Close() override { return error_; }

 private:
  SimFiles& files_;
  const std::string path_;
  const std::shared_ptr<Node> node_;
  Status error_;
};

class SimFiles::Reader final : public RandomAccessFile {
 public:
  Reader(std::string path, std::shared_ptr<Node> node)
      : path_(std::move(path)), node_(std::move(node)) {}
  int64_t size() const override { return static_cast<int64_t>(node_->data.size()); }
  Status Read(int64_t offset, int64_t count, char* buffer) const override {
    if (offset < 0 || count < 0 || offset > size() || count > size() - offset) {
      return OutOfRange("cannot read ", count, " bytes at ", offset, " of '", path_,
                        "', which has ", size());
    }
    std::memcpy(buffer, node_->data.data() + offset, static_cast<size_t>(count));
    return OkStatus();
  }

 private:
  const std::string path_;
  const std::shared_ptr<Node> node_;
};

void SimFiles::PassTime() {
  scheduler_.SleepUntil(scheduler_.now_ns() + 10'000 +
                        static_cast<int64_t>(RandomBelow(kOperationNanosMax)));
}

// Advances the simulated time. Then, at random (FailUntil), returns an injected error and sets
// `*torn`, if `torn` is not null.
Status SimFiles::PassTimeOrFail(const char* what, const std::string& path, bool* torn) {
  PassTime();
  if (scheduler_.now_ns() >= fail_until_ns_ || RandomBelow(fail_one_in_) != 0) return OkStatus();
  ++injected_errors_;
  if (torn != nullptr) *torn = true;
  return ResourceExhausted("cannot ", what, " '", path, "': ", kInjected);
}

void SimFiles::Apply(const Change& change, Names* names) {
  if (!change.from.empty()) names->erase(change.from);
  if (change.node == nullptr) {
    names->erase(change.path);
  } else {
    (*names)[change.path] = change.node;
  }
}

void SimFiles::RecordChange(Change change) {
  Apply(change, &names_);
  changes_.push_back(std::move(change));
}

void SimFiles::LosePower() {
  const size_t kept = RandomBelow(changes_.size() + 1);
  for (size_t i = 0; i < kept; ++i) Apply(changes_[i], &durable_);
  changes_.clear();
  names_.clear();
  for (auto& [path, node] : durable_) {
    auto left = std::make_shared<Node>();
    left->data =
        node->data.substr(0, node->synced + RandomBelow(node->data.size() - node->synced + 1));
    // Simulates blocks that were allocated and never written.
    if (RandomBelow(2) == 0) std::fill(left->data.begin() + node->synced, left->data.end(), '\0');
    left->synced = left->data.size();
    node->lost = true;
    node = left;
    names_[path] = left;
  }
  fail_until_ns_ = 0;
}

std::string SimFiles::FlipBit(const std::string& part) {
  std::vector<std::string> paths;
  for (const auto& [path, node] : names_) {
    if (path.find(part) != std::string::npos && !node->data.empty()) paths.push_back(path);
  }
  if (paths.empty()) return "";
  const std::string path = paths[RandomBelow(paths.size())];
  std::string& data = names_[path]->data;
  data[RandomBelow(data.size())] ^= static_cast<char>(1u << RandomBelow(8));
  return path;
}

StatusOr<std::unique_ptr<WritableFile>> SimFiles::NewWritableFile(const std::string& path) {
  RETURN_IF_ERROR(PassTimeOrFail("create", path));
  if (directories_.count(DirectoryOf(path)) == 0) {
    return NotFound("cannot create '", path, "': No such directory");
  }
  auto node = std::make_shared<Node>();
  RecordChange({.path = path, .node = node});
  return std::make_unique<File>(*this, path, std::move(node));
}

StatusOr<std::unique_ptr<RandomAccessFile>> SimFiles::OpenFile(const std::string& path) {
  PassTime();
  const auto found = names_.find(path);
  if (found == names_.end()) return NotFound("cannot open '", path, "': No such file or directory");
  return std::make_unique<Reader>(path, found->second);
}

bool SimFiles::FileExists(const std::string& path) const {
  return names_.count(path) != 0 || directories_.count(path) != 0;
}

StatusOr<std::vector<std::string>> SimFiles::ListDirectory(const std::string& path) {
  PassTime();
  if (directories_.count(path) == 0) return NotFound("cannot list '", path, "': No such directory");
  std::vector<std::string> entries;
  const auto add = [&](const std::string& each) {
    if (each != path && DirectoryOf(each) == path) entries.push_back(each.substr(path.size() + 1));
  };
  for (const auto& [each, node] : names_) add(each);
  for (const std::string& each : directories_) add(each);
  return entries;
}

Status SimFiles::CreateDirectories(const std::string& path) {
  RETURN_IF_ERROR(PassTimeOrFail("create directory", path));
  for (std::string each = path; each != "/"; each = DirectoryOf(each)) directories_.insert(each);
  return OkStatus();
}

Status SimFiles::Rename(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(PassTimeOrFail("rename", from));
  const auto found = names_.find(from);
  if (found == names_.end() || directories_.count(DirectoryOf(to)) == 0) {
    return NotFound("cannot rename '", from, "' to '", to, "': No such file or directory");
  }
  RecordChange({.path = to, .from = from, .node = found->second});
  return OkStatus();
}

Status SimFiles::RemoveFile(const std::string& path) {
  RETURN_IF_ERROR(PassTimeOrFail("remove", path));
  if (names_.count(path) == 0) {
    return NotFound("cannot remove '", path, "': No such file or directory");
  }
  RecordChange({.path = path});
  return OkStatus();
}

Status SimFiles::RemoveDirectory(const std::string& path) {
  RETURN_IF_ERROR(PassTimeOrFail("remove directory", path));
  const auto inside = names_.lower_bound(path + "/");
  if (inside != names_.end() && inside->first.compare(0, path.size() + 1, path + "/") == 0) {
    return FailedPrecondition("cannot remove directory '", path, "': not empty");
  }
  directories_.erase(path);
  return OkStatus();
}

Status SimFiles::SyncDirectory(const std::string& path) {
  RETURN_IF_ERROR(PassTimeOrFail("sync directory", path));
  std::vector<Change> left;
  for (Change& change : changes_) {
    const bool in_directory = DirectoryOf(change.path) == path ||
                              (!change.from.empty() && DirectoryOf(change.from) == path);
    if (in_directory) {
      Apply(change, &durable_);
    } else {
      left.push_back(std::move(change));
    }
  }
  changes_.swap(left);
  return OkStatus();
}

}  // namespace penstock
