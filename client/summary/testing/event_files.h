// SPDX-License-Identifier: Apache-2.0
//
// Reads event files, for tests.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/record/record_reader.h"
#include "gtest/gtest.h"
#include "proto/tensorflow/event.pb.h"

namespace penstock::client {

inline std::string NewTestFolder() {
  return StrCat(testing::TempDir(), "/events_", Env::Real().RandomU64());
}

// Returns the events of all files of a folder, in order of the files' names, as TensorBoard reads
// them.
inline std::vector<tensorflow::Event> ReadEvents(const std::string& folder) {
  std::vector<tensorflow::Event> events;
  auto names = Env::Real().ListDirectory(folder);
  EXPECT_TRUE(names.ok()) << names.status();
  std::sort(names->begin(), names->end());
  for (const std::string& name : *names) {
    if (name.find("tfevents") == std::string::npos) continue;
    auto reader = RecordReader::Open(Env::Real(), StrCat(folder, "/", name));
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::string record;
    while (true) {
      const StatusOr<bool> read = reader->Read(&record);
      EXPECT_TRUE(read.ok()) << name << ": " << read.status();
      if (!read.ok() || !*read) break;
      EXPECT_TRUE(events.emplace_back().ParseFromString(record)) << name;
    }
  }
  return events;
}

// Returns the steps of the values under `tag`, in the order of the events.
inline std::vector<int64_t> StepsWith(const std::vector<tensorflow::Event>& events,
                                      const std::string& tag) {
  std::vector<int64_t> steps;
  for (const tensorflow::Event& event : events) {
    for (const auto& value : event.summary().value()) {
      if (value.tag() == tag) steps.push_back(event.step());
    }
  }
  return steps;
}

}  // namespace penstock::client
