// SPDX-License-Identifier: Apache-2.0
#include "kernels/dynamic_table/table_spec.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "kernels/dynamic_table/admission_filter.h"
#include "kernels/dynamic_table/row_blocks.h"
#include "kernels/dynamic_table/spill_segments.h"
#include "kernels/random/distributions.h"
#include "kernels/random/philox.h"

namespace penstock {
namespace {

constexpr int64_t kWidthMax = 1 << 20, kSlotsMax = 8, kCountersMax = int64_t{1} << 32;
// The bytes of the index for each row: the average number of index entries per row, times the size
// of an entry.
constexpr int64_t kIndexBytesPerRow = 32;

// Calls put(i, number) for `count` random numbers of a distribution.
template <class Distribution, class Put>
void Draw(Philox stream, int64_t count, Put put) {
  const Distribution distribution;
  for (int64_t i = 0; i < count; i += 4) {
    const auto group = distribution(stream);
    for (int64_t k = i; k < std::min(i + 4, count); ++k) put(k, group[k - i]);
  }
}

bool Finite(float x) { return std::isfinite(x); }

}  // namespace

void RowInitializer::Fill(int64_t key, float* values, int64_t count) const {
  const Philox stream = Philox::FromSeeds(static_cast<uint64_t>(seed), static_cast<uint64_t>(key));
  switch (kind) {
    case Kind::kConstant:
      std::fill_n(values, count, a);
      return;
    case Kind::kUniform: {
      const float below_b = std::nextafter(b, a);  // a + (b - a) * x may be rounded up to b
      return Draw<Uniform<float>>(stream, count, [&](int64_t i, float x) {
        values[i] = std::min(a + (b - a) * x, below_b);
      });
    }
    case Kind::kNormal:
      return Draw<Normal<float>>(stream, count, [&](int64_t i, float x) { values[i] = a + b * x; });
  }
}

Status TableSpec::Check() const {
  if (width < 1 || width > kWidthMax) {
    return InvalidArgument("width must be from 1 to ", kWidthMax, ", is ", width);
  }
  if (static_cast<int64_t>(slots.size()) > kSlotsMax) {
    return InvalidArgument("slots must be at most ", kSlotsMax, ", are ", slots.size());
  }
  if (!std::all_of(slots.begin(), slots.end(), Finite)) {
    return InvalidArgument("slots must be finite numbers");
  }
  if (!Finite(initializer.a) || !Finite(initializer.b) || !Finite(default_value)) {
    return InvalidArgument("a, b and default_value must be finite, are ", initializer.a, ", ",
                           initializer.b, " and ", default_value);
  }
  const float range = initializer.b - initializer.a;
  if (initializer.kind == RowInitializer::Kind::kUniform && !(range > 0 && Finite(range))) {
    return InvalidArgument("a uniform initializer needs a < b, and b - a must be finite; has a = ",
                           initializer.a, " and b = ", initializer.b);
  }
  if (initializer.kind == RowInitializer::Kind::kNormal && initializer.b < 0) {
    return InvalidArgument("the standard deviation b must not be negative, is ", initializer.b);
  }
  if (admit_after < 1 || admit_after > AdmissionFilter::kCountMax) {
    return InvalidArgument("admit_after must be from 1 to ", AdmissionFilter::kCountMax, ", is ",
                           admit_after);
  }
  if (filter_counters < 1 || filter_counters > kCountersMax) {
    return InvalidArgument("filter_counters must be from 1 to ", kCountersMax, ", is ",
                           filter_counters);
  }
  if (max_rows < 0 || (max_rows > 0 && max_rows < kShards)) {
    return InvalidArgument("max_rows must be 0 (no limit), or ", kShards, " and more; is ",
                           max_rows);
  }
  if (max_bytes < 0 || (max_bytes > 0 && max_bytes < kShards * row_bytes())) {
    return InvalidArgument("max_bytes must be 0 (no limit), or ", kShards * row_bytes(),
                           " and more, which are ", kShards, " rows; is ", max_bytes);
  }
  if (max_age < 0) {
    return InvalidArgument("max_age must be 0 (no limit) or a number of steps, is ", max_age);
  }
  return CheckSpill();
}

Status TableSpec::CheckSpill() const {
  if (spills() && max_rows == 0 && max_bytes == 0) {
    return InvalidArgument(
        "spill_directory needs max_rows or max_bytes: the limit beyond which "
        "rows go to files");
  }
  if (!spills() && spill_max_bytes != 0) {
    return InvalidArgument("spill_max_bytes needs a spill_directory, is ", spill_max_bytes);
  }
  const int64_t least = kShards * SpillSegments::RecordBytes(floats());
  if (spill_max_bytes < 0 || (spill_max_bytes > 0 && spill_max_bytes < least)) {
    return InvalidArgument("spill_max_bytes must be 0 (no limit), or ", least, " and more, which ",
                           "are ", kShards, " rows; is ", spill_max_bytes);
  }
  return OkStatus();
}

bool TableSpec::operator==(const TableSpec& other) const {
  const auto fields = [](const TableSpec& s) {
    return std::tuple(s.width, s.initializer.kind, s.initializer.a, s.initializer.b,
                      s.initializer.seed, s.slots, s.admit_after, s.default_value,
                      s.filter_counters, s.max_rows, s.max_bytes, s.max_age, s.spill_directory,
                      s.spill_max_bytes);
  };
  return fields(*this) == fields(other);
}

int64_t TableSpec::row_bytes() const { return RowBlocks::StrideOf(floats()) + kIndexBytesPerRow; }

int64_t TableSpec::shard_rows_max() const {
  const int64_t by_bytes = max_bytes / row_bytes();
  int64_t rows = max_rows;
  if (max_bytes > 0) rows = rows > 0 ? std::min(rows, by_bytes) : by_bytes;
  return rows / kShards;
}

int64_t TableSpec::shard_total_max() const {
  if (!spills()) return shard_rows_max();
  if (spill_max_bytes == 0) return 0;
  return shard_rows_max() + spill_max_bytes / SpillSegments::RecordBytes(floats()) / kShards;
}

std::vector<Tensor> TableSpec::Describe() const {
  const Tensor numbers = Tensor::Vector<int64_t>({width, static_cast<int64_t>(initializer.kind),
                                                  initializer.seed, admit_after, filter_counters,
                                                  max_rows, max_bytes, max_age, spill_max_bytes});
  return {numbers, Tensor::Vector<float>({initializer.a, initializer.b, default_value}),
          Tensor::Vector<float>(slots), Tensor::Scalar(spill_directory)};
}

StatusOr<TableSpec> TableSpec::FromValues(const ReplayValues& values) {
  RETURN_IF_ERROR(values.Expect(4));
  const Tensor &ints = values.Get(0), &floats = values.Get(1), &slots = values.Get(2),
               &directory = values.Get(3);
  if (ints.dtype() != DType::kInt64 || ints.num_elements() != 9 ||
      floats.dtype() != DType::kFloat || floats.num_elements() != 3 ||
      slots.dtype() != DType::kFloat || directory.dtype() != DType::kString ||
      directory.rank() != 0) {
    return values.Error(
        "the values must be 9 int64, 3 float, the slots' initial values, and a string");
  }
  const auto i = ints.flat<int64_t>();
  const auto f = floats.flat<float>();
  if (i[1] < 0 || i[1] > static_cast<int64_t>(RowInitializer::Kind::kNormal)) {
    return values.Error(StrCat("there is no initializer ", i[1]));
  }
  TableSpec spec{.width = i[0],
                 .initializer = {.kind = static_cast<RowInitializer::Kind>(i[1]),
                                 .a = f[0],
                                 .b = f[1],
                                 .seed = i[2]},
                 .slots = {slots.flat<float>().begin(), slots.flat<float>().end()},
                 .admit_after = i[3],
                 .default_value = f[2],
                 .filter_counters = i[4],
                 .max_rows = i[5],
                 .max_bytes = i[6],
                 .max_age = i[7],
                 .spill_directory = directory.scalar<std::string>(),
                 .spill_max_bytes = i[8]};
  RETURN_IF_ERROR(spec.Check());
  return spec;
}

}  // namespace penstock
