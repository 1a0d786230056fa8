// SPDX-License-Identifier: Apache-2.0
#include "kernels/dataset/batching.h"

namespace penstock {

Status BatchSize::Read(const IteratorContext& ctx, DatasetIterator& input,
                       absl::FunctionRef<Status(const Element&)> check, std::vector<Element>* batch,
                       bool* end) const {
  while (static_cast<int64_t>(batch->size()) < elements) {
    if (ctx.cancellation->cancelled()) return ctx.cancellation->status();
    Element next;
    RETURN_IF_ERROR(input.GetNext(ctx, &next, end));
    if (*end) break;
    RETURN_IF_ERROR(check(next));
    batch->push_back(std::move(next));
  }
  const bool whole = static_cast<int64_t>(batch->size()) == elements;
  *end = batch->empty() || (!whole && drop_remainder);
  return OkStatus();
}

}  // namespace penstock
