// SPDX-License-Identifier: Apache-2.0
//
// LoggedStore: a resource store with a StateLog, and functions that run ops on it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/op/attr.h"
#include "core/op/resource.h"
#include "core/op/testing/op_runner.h"
#include "core/op/testing/recording_log.h"
#include "core/tensor/tensor.h"

namespace penstock {

struct OpCall {
  std::vector<Tensor> inputs = {};
  Attrs attrs = {};
  std::vector<Tensor> list = {};  // the tensors of the last argument, if it is a list
  bool in_step = false;           // true if the op works on the resources of its step
};

class LoggedStore {
 public:
  LoggedStore();

  // Runs an op in a node of the same name. CHECKs that it succeeds.
  std::vector<Tensor> Run(const std::string& op, const OpCall& call = {}) const;
  // Like Run; also checks that the log has a record if the store has changed, and one for each
  // version of each resource in the store.
  std::vector<Tensor> Watch(const std::string& op, const OpCall& call = {});
  // Like Watch; also checks that a resource in the store, or behind a handle of `call`, has a new
  // version.
  std::vector<Tensor> WatchChange(const std::string& op, const OpCall& call = {});
  // Checks the records after the first `records` ones: there is one if the store has changed from
  // the text `before`, and each names `op` as its origin. Appends each violation to faults().
  void CheckRecords(const std::string& op, size_t records, const std::string& before);

  const std::vector<std::string>& faults() const { return faults_; }
  const std::set<std::string>& watched() const { return watched_; }
  RecordingLog& log() { return *log_; }
  const std::shared_ptr<ResourceStore>& store() const { return store_; }

 private:
  const std::unique_ptr<RecordingLog> log_ = std::make_unique<RecordingLog>();
  const std::shared_ptr<ResourceStore> store_ = std::make_shared<ResourceStore>();
  using Versions = std::map<std::shared_ptr<const Resource>, int64_t>;
  // Returns the version of each resource in the store, and of those behind the handles of `call`.
  Versions VersionsOf(const OpCall& call) const;
  // Checks that the records after the first `records` ones are those of the new versions.
  void CheckVersions(const std::string& op, size_t records, const Versions& before);

  std::vector<std::string> faults_;
  std::set<std::string> watched_;  // names of ops that Watch has run
};

// Returns the version of the resource that is attached to the handle.
int64_t VersionOf(const Tensor& handle);
// Returns a line for each resource: its description, and the value if it is a variable.
std::string TextOf(const ResourceStore& store);
// Returns a handle that has only names, like a handle from another task.
Tensor HandleOf(const std::string& name, const std::string& type, bool ref = false);

}  // namespace penstock
