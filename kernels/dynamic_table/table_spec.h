// SPDX-License-Identifier: Apache-2.0
//
// TableSpec: the properties of a DynamicTable, among them the initial values of its rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/op/state_replay.h"
#include "core/tensor/tensor.h"

namespace penstock {

// Computes the values of a new row from the seed and the key, so that they depend neither on the
// order in which keys come nor on the number of parameter servers.
struct RowInitializer {
  enum class Kind { kConstant, kUniform, kNormal };
  Kind kind = Kind::kConstant;
  float a = 0;  // the constant, the least value, or the mean
  float b = 0;  // unused, the exclusive upper bound, or the standard deviation
  int64_t seed = 0;

  void Fill(int64_t key, float* values, int64_t count) const;
};

struct TableSpec {
  // The number of shards of a table. Each has a lock of its own.
  static constexpr int kShards = 16;

  int64_t width = 1;  // floats in a row
  RowInitializer initializer = {};
  std::vector<float> slots = {};  // the initial value of each slot of the optimizer
  // The number of the update at which a key gets its row, 1 to 255. Before that, pulls return
  // `default_value` for the key, and its updates are dropped.
  int64_t admit_after = 1;
  float default_value = 0;
  int64_t filter_counters = 1 << 20;  // 1 to 2^32, a byte each; unused if admit_after is 1
  // The maximum number of rows. Rows beyond it are dropped, the least recently updated first. 0: no
  // limit.
  int64_t max_rows = 0;
  int64_t max_bytes = 0;  // maximum bytes of rows and index; 0: no limit
  // The maximum number of steps since a row's last update: older rows are dropped. 0: no limit.
  int64_t max_age = 0;
  // The directory of files for the rows beyond the limit of max_rows and max_bytes. "": these rows
  // are dropped.
  std::string spill_directory = {};
  // Maximum bytes of rows in files; rows beyond it are dropped; 0: no limit.
  int64_t spill_max_bytes = 0;

  // Checks the attributes. InvalidArgument names the attribute that is out of range.
  Status Check() const;
  bool operator==(const TableSpec& other) const;

  // Returns the number of floats of a row with its slots.
  int64_t floats() const { return width * (1 + static_cast<int64_t>(slots.size())); }
  // Returns the bytes that a row takes, with its entry in the index.
  int64_t row_bytes() const;
  // Returns the maximum number of rows of a shard in memory, or 0 if there is no limit.
  int64_t shard_rows_max() const;
  bool spills() const { return !spill_directory.empty(); }
  // Returns the maximum number of rows of a shard in memory and in files, or 0 if there is no
  // limit.
  int64_t shard_total_max() const;
  // Returns whether the table keeps the order of updates.
  bool ordered() const { return shard_rows_max() > 0 || max_age > 0; }

  // Convert the spec to the values of a StateLog's record, and back.
  std::vector<Tensor> Describe() const;
  static StatusOr<TableSpec> FromValues(const ReplayValues& values);

 private:
  Status CheckSpill() const;
};

}  // namespace penstock
