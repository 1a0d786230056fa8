// SPDX-License-Identifier: Apache-2.0
#include "kernels/parsing/features.h"

#include <utility>

#include "core/base/mutex.h"

namespace penstock {

Status ForEachRow(const ColumnRows& rows, int64_t count, int64_t nanos, KernelContext& ctx,
                  absl::FunctionRef<Status(int64_t i)> parse) {
  Mutex mutex;
  int64_t first = count;
  Status error;
  ctx.threads().ParallelFor(count, nanos, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Status status = parse(i);
      if (status.ok()) continue;
      MutexLock lock(mutex);
      if (i > first) return;
      first = i;
      error = std::move(status);
      return;
    }
  });
  if (error.ok()) return OkStatus();
  return InvalidArgument(rows.NameOf(first), ", Index: ", first,
                         ": Could not parse example input: ", error.message());
}

Status ParseFeatures(const FeatureRequest& request,
                     absl::FunctionRef<const ExampleRecord&(int64_t i)> record, int64_t count,
                     ColumnRows* rows, KernelContext& ctx) {
  rows->features.resize(count);
  const auto take = [&](const std::string& key) {
    constexpr int64_t kFeatureNanos = 50;
    rows->key = key;
    return ForEachRow(*rows, count, kFeatureNanos, ctx, [&](int64_t i) {
      auto feature = record(i).Find(key);
      if (feature.ok()) rows->features[i] = *std::move(feature);
      return feature.status();
    });
  };
  const int sparse = static_cast<int>(request.sparse_keys.size());
  for (int i = 0; i < sparse; ++i) {
    RETURN_IF_ERROR(take(request.sparse_keys[i]));
    RETURN_IF_ERROR(
        ParseSparseColumn(*rows, request.sparse_types[i], ctx, {i, sparse + i, 2 * sparse + i}));
  }
  int output = 3 * sparse;
  for (size_t i = 0; i < request.dense.size(); ++i) {
    RETURN_IF_ERROR(take(request.dense_keys[i]));
    RETURN_IF_ERROR(request.dense[i].Parse(*rows, ctx, output++));
  }
  const int ragged = static_cast<int>(request.ragged_keys.size());
  for (int i = 0; i < ragged; ++i, ++output) {
    RETURN_IF_ERROR(take(request.ragged_keys[i]));
    RETURN_IF_ERROR(
        ParseRaggedColumn(*rows, request.ragged_types[i], ctx, output, output + ragged));
  }
  return OkStatus();
}

}  // namespace penstock
