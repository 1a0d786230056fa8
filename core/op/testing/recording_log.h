// SPDX-License-Identifier: Apache-2.0
//
// RecordingLog: a StateLog for tests, which keeps all records.
#pragma once

#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/op/resource.h"
#include "core/op/state_log.h"
#include "core/op/state_replay.h"

namespace penstock {

class RecordingLog final : public StateLog {
 public:
  // The changes of a record, with copies of the borrowed strings.
  struct Part {
    std::string container, name, type, action, opaque;
    uint64_t id;
    int64_t version;
    std::vector<Tensor> values;
  };
  struct Entry {
    int64_t step_id;
    uint64_t incarnation;
    std::string device, node;
    std::vector<Part> parts;
  };

  void Record(const StateChange& change) override {
    const UpdateOrigin& origin = change.origin;
    Entry entry{origin.step_id,
                origin.incarnation,
                std::string(origin.device),
                std::string(origin.node),
                {}};
    for (const ResourceChange& part : change.parts) {
      const ResourceId& id = part.resource;
      entry.parts.push_back({std::string(id.container), std::string(id.name), std::string(id.type),
                             std::string(part.action), std::string(part.opaque), id.id,
                             part.version, part.values});
    }
    MutexLock lock(mu_);
    entries_.push_back(std::move(entry));
  }

  std::vector<Entry> entries() const {
    MutexLock lock(mu_);
    return entries_;
  }
  void Clear() {
    MutexLock lock(mu_);
    entries_.clear();
  }

  // Returns "w 2 update float[1] 5": name, version, action and values of each change, joined by ";
  // ". One string per record.
  static std::string Text(const Entry& entry) {
    std::string text;
    for (const Part& part : entry.parts) {
      StrAppend(&text, text.empty() ? "" : "; ", part.name, " ", part.version, " ", part.action);
      for (const Tensor& value : part.values) StrAppend(&text, " ", value.ToString(1000));
    }
    return text;
  }
  std::vector<std::string> Texts() const {
    std::vector<std::string> texts;
    for (const Entry& entry : entries()) texts.push_back(Text(entry));
    return texts;
  }

  static Status Apply(const Entry& entry, StateReplayer& replayer) {
    std::vector<ResourceChange> parts;
    for (const Part& part : entry.parts) {
      parts.push_back({.resource = {part.container, part.name, part.type, part.id},
                       .version = part.version,
                       .action = part.action,
                       .values = part.values,
                       .opaque = part.opaque});
    }
    return replayer.Apply(
        {.origin = {entry.step_id, entry.incarnation, entry.device, entry.node}, .parts = parts});
  }
  // Replays all records on an empty store.
  Status ReplayOn(ResourceStore& store) const {
    StateReplayer replayer(store, Env::Real());
    for (const Entry& entry : entries()) RETURN_IF_ERROR(Apply(entry, replayer));
    replayer.End({});
    return OkStatus();
  }

 private:
  mutable Mutex mu_;
  std::vector<Entry> entries_;
};

}  // namespace penstock
