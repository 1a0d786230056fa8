// SPDX-License-Identifier: Apache-2.0
#include "kernels/batching/batch_options.h"

#include <algorithm>
#include <limits>

namespace penstock {
namespace {

constexpr int64_t kNumberMax = std::numeric_limits<int32_t>::max();

Status ReadNumber(const KernelInit& node, const char* attr, int64_t min, int64_t* value) {
  RETURN_IF_ERROR(node.Attr(attr, value));
  if (*value >= min && *value <= kNumberMax) return OkStatus();
  return InvalidArgument(attr, " must be from ", min, " to 2^31 - 1, is ", *value);
}

Status ReadSizes(const KernelInit& node, const char* attr, std::vector<int64_t>* sizes) {
  RETURN_IF_ERROR(node.Attr(attr, sizes));
  for (size_t i = 0; i < sizes->size(); ++i) {
    const int64_t size = (*sizes)[i];
    if (size < 0 || size > kNumberMax) {
      return InvalidArgument(attr, " must be from 0 to 2^31 - 1, entry ", i, " is ", size);
    }
    if (i > 0 && size <= (*sizes)[i - 1]) {
      return InvalidArgument(attr, " entries must be monotonically increasing; entry ", i, " is ",
                             size, " after ", (*sizes)[i - 1]);
    }
  }
  return OkStatus();
}

StatusOr<BatchOptions> ReadCommon(const KernelInit& node, int64_t threads_min) {
  BatchOptions options;
  RETURN_IF_ERROR(ReadNumber(node, "num_batch_threads", threads_min, &options.parallel_max));
  RETURN_IF_ERROR(ReadNumber(node, "max_batch_size", 1, &options.rows_max));
  RETURN_IF_ERROR(ReadNumber(node, "max_enqueued_batches", -kNumberMax, &options.waiting_max));
  // At least one batch must be allowed to wait; otherwise no batch could be formed.
  options.waiting_max = std::max<int64_t>(options.waiting_max, 1);
  int64_t timeout_micros = 0;
  RETURN_IF_ERROR(ReadNumber(node, "batch_timeout_micros", 0, &timeout_micros));
  options.timeout_ns = timeout_micros * 1000;
  RETURN_IF_ERROR(ReadSizes(node, "allowed_batch_sizes", &options.allowed));
  options.request_rows_max = options.rows_max;
  return options;
}

Status CheckLastSize(const BatchOptions& options, const char* when) {
  if (options.allowed.empty() || options.allowed.back() == options.rows_max) return OkStatus();
  return InvalidArgument("final entry in allowed_batch_sizes must equal max_batch_size", when,
                         "; they are ", options.allowed.back(), " and ", options.rows_max);
}

}  // namespace

int64_t BatchOptions::PaddedRows(int64_t rows) const {
  const auto found = std::lower_bound(allowed.begin(), allowed.end(), rows);
  return found == allowed.end() ? rows : *found;
}

std::string BatchOptions::ToString() const {
  std::string sizes;
  for (const int64_t size : allowed) sizes += StrCat(sizes.empty() ? "" : ", ", size);
  return StrCat(parallel_max, " batch threads, batches of up to ", rows_max, " rows, inputs of up ",
                "to ", request_rows_max, ", ", waiting_max, " enqueued batches, a timeout of ",
                timeout_ns / 1000, " us, allowed sizes [", sizes, "]",
                split ? ", large batches split" : "", batch_down ? ", BATCH_DOWN" : "");
}

StatusOr<BatchOptions> BatchOptions::Read(const KernelInit& node) {
  ASSIGN_OR_RETURN(BatchOptions options, ReadCommon(node, /*threads_min=*/1));
  RETURN_IF_ERROR(CheckLastSize(options, ""));
  return options;
}

StatusOr<BatchOptions> BatchOptions::ReadForFunction(const KernelInit& node) {
  ASSIGN_OR_RETURN(BatchOptions options, ReadCommon(node, /*threads_min=*/-kNumberMax));
  // If the number is not positive, the runtime chooses one, as in TensorFlow.
  options.parallel_max = std::max<int64_t>(options.parallel_max, 0);
  RETURN_IF_ERROR(node.Attr("enable_large_batch_splitting", &options.split));
  if (!options.split) {
    RETURN_IF_ERROR(CheckLastSize(options, " when enable_large_batch_splitting is False"));
  } else if (!options.allowed.empty()) {
    options.rows_max = options.allowed.back();
    if (options.rows_max > options.request_rows_max || options.rows_max < 1) {
      return InvalidArgument("final entry in allowed_batch_sizes must be from 1 to ",
                             "max_batch_size = ", options.request_rows_max, ", is ",
                             options.rows_max);
    }
  }
  std::string padding;
  RETURN_IF_ERROR(node.Attr("batch_padding_policy", &padding));
  // MINIMIZE_TPU_COST_PER_REQUEST needs the measured costs of a TPU. Without them, here as in
  // TensorFlow, batches are padded up.
  options.batch_down = padding == "BATCH_DOWN";
  // No step has a low priority, so these attributes change nothing; wrong values are still refused.
  int64_t ignored = 0;
  std::vector<int64_t> sizes;
  for (const char* attr : {"low_priority_max_batch_size", "low_priority_batch_timeout_micros",
                           "low_priority_max_enqueued_batches"}) {
    RETURN_IF_ERROR(ReadNumber(node, attr, 0, &ignored));
  }
  RETURN_IF_ERROR(ReadSizes(node, "low_priority_allowed_batch_sizes", &sizes));
  return options;
}

}  // namespace penstock
