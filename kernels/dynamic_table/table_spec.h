// SPDX-License-Identifier: Apache-2.0
//
// TableSpec: what a DynamicTable is like, and the initial values of its rows.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/op/state_replay.h"
#include "core/tensor/tensor.h"

namespace penstock {

// The values of a new row: a function of the seed and the key, so that neither the order in which
// keys come nor the number of parameter servers matters.
struct RowInitializer {
  enum class Kind { kConstant, kUniform, kNormal };
  Kind kind = Kind::kConstant;
  float a = 0;  // the constant; the least value; the mean
  float b = 0;  // unused; the value that all are below; the standard deviation
  int64_t seed = 0;

  void Fill(int64_t key, float* values, int64_t count) const;
};

struct TableSpec {
  // A table has so many shards, each with a lock of its own.
  static constexpr int kShards = 16;

  int64_t width = 1;  // floats in a row
  RowInitializer initializer = {};
  std::vector<float> slots = {};  // the initial value of each slot of the optimizer
  // A key gets a row with its update of this number, 1 to 255. Until then it reads as
  // `default_value`, and its updates are dropped.
  int64_t admit_after = 1;
  float default_value = 0;
  int64_t filter_counters = 1 << 20;  // 1 to 2^32, of one byte each; unused if admit_after is 1
  // Rows beyond a limit are dropped, those first whose last update is longest ago. 0: no limit.
  int64_t max_rows = 0;
  int64_t max_bytes = 0;  // of rows and index
  // A row is dropped when its last update is more than this many steps ago. 0: never.
  int64_t max_age = 0;

  // InvalidArgument names the attribute that is out of range.
  Status Check() const;
  bool operator==(const TableSpec& other) const;

  // Floats of a row with its slots.
  int64_t floats() const { return width * (1 + static_cast<int64_t>(slots.size())); }
  // Bytes that a row takes, with its entry in the index.
  int64_t row_bytes() const;
  // How many rows a shard may have; 0: no limit.
  int64_t shard_rows_max() const;
  // Whether the order of updates is kept.
  bool ordered() const { return shard_rows_max() > 0 || max_age > 0; }

  // As values of a StateLog's record, and back.
  std::vector<Tensor> Describe() const;
  static StatusOr<TableSpec> FromValues(const ReplayValues& values);
};

}  // namespace penstock
