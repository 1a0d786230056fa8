// SPDX-License-Identifier: Apache-2.0
//
// LoggedStore: a store with a StateLog, and ops that run on it.
#pragma once

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
  std::vector<Tensor> list = {};  // the last argument, if that is a list
  bool in_step = false;           // the op works on the resources of its step
};

class LoggedStore {
 public:
  LoggedStore();

  // CHECKs that the op succeeds. A node is called as its op.
  std::vector<Tensor> Run(const std::string& op, const OpCall& call = {}) const;
  // And that the log has noticed if anything in the store has changed.
  std::vector<Tensor> Watch(const std::string& op, const OpCall& call = {});
  // Adds what is wrong with the records since there were `records`, the text of the store before
  // being `before`, to faults().
  void CheckRecords(const std::string& op, size_t records, const std::string& before);

  const std::vector<std::string>& faults() const { return faults_; }
  const std::set<std::string>& watched() const { return watched_; }
  RecordingLog& log() { return *log_; }
  const std::shared_ptr<ResourceStore>& store() const { return store_; }

 private:
  const std::unique_ptr<RecordingLog> log_ = std::make_unique<RecordingLog>();
  const std::shared_ptr<ResourceStore> store_ = std::make_shared<ResourceStore>();
  std::vector<std::string> faults_;
  std::set<std::string> watched_;  // ops
};

// A line for each resource: what it says of itself, and the value if it is a variable.
std::string TextOf(const ResourceStore& store);
// A handle by name, as one that comes from another task.
Tensor HandleOf(const std::string& name, const std::string& type, bool ref = false);

}  // namespace penstock
