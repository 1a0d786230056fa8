// SPDX-License-Identifier: Apache-2.0
//
// ComputeAccidentalHits: finds the sampled candidates that are true classes of a row.
#include <limits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"

namespace penstock {
namespace {

class AccidentalHits final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("num_true", &num_true_); }

  Status Compute(KernelContext& ctx) override {
    const Tensor &true_classes = ctx.input(0), &candidates = ctx.input(1);
    if (true_classes.rank() != 2 || true_classes.dim(1) != num_true_) {
      return InvalidArgument("true_classes must be a batch_size * num_true matrix, num_true is ",
                             num_true_, ", the shape ", true_classes.shape().ToString());
    }
    if (candidates.rank() != 1) {
      return InvalidArgument("sampled_candidates must be a vector, which is typically an output ",
                             "from CandidateSampler; has shape ", candidates.shape().ToString());
    }
    // Maps each candidate to its position; if a candidate was drawn twice, to its last position.
    absl::flat_hash_map<int64_t, int64_t> places;
    for (int64_t i = 0; i < candidates.dim(0); ++i) places[candidates.data<int64_t>()[i]] = i;
    std::vector<std::pair<int32_t, int64_t>> hits;
    const auto classes = true_classes.flat<int64_t>();
    for (size_t i = 0; i < classes.size(); ++i) {
      const auto found = places.find(classes[i]);
      if (found == places.end()) continue;
      hits.emplace_back(static_cast<int32_t>(i / num_true_), found->second);
    }
    const auto count = static_cast<int64_t>(hits.size());
    Tensor *rows, *ids, *weights;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape({count}), &rows));
    RETURN_IF_ERROR(ctx.Allocate(1, Shape({count}), &ids));
    RETURN_IF_ERROR(ctx.Allocate(2, Shape({count}), &weights));
    for (int64_t i = 0; i < count; ++i) {
      rows->mutable_data<int32_t>()[i] = hits[i].first;
      ids->mutable_data<int64_t>()[i] = hits[i].second;
      weights->mutable_data<float>()[i] = std::numeric_limits<float>::lowest();
    }
    return OkStatus();
  }

 private:
  int64_t num_true_ = 0;
};

Status HitsShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape true_classes, s.WithRank(0, 2));
  RETURN_IF_ERROR(s.WithRank(1, 1).status());
  const int64_t num_true = s.attr<int64_t>("num_true"), columns = true_classes.dim(1);
  if (columns != PartialShape::kUnknown && columns != num_true) {
    return InvalidArgument("true_classes must have num_true columns, expected: ", num_true,
                           " was: ", columns);
  }
  for (int i = 0; i < 3; ++i) RETURN_IF_ERROR(SetOutput(s, i, {PartialShape::kUnknown}));
  return OkStatus();
}

OP(ComputeAccidentalHits) {
  return {
      .doc =
          "Finds the sampled candidates that are true classes of a row. Returns the row, "
          "the index of the candidate, and the lowest float, which excludes the candidate "
          "when it is added to its logit.",
      .inputs = {{"true_classes", "int64"}, {"sampled_candidates", "int64"}},
      .outputs = {{"indices", "int32"}, {"ids", "int64"}, {"weights", "float"}},
      .attrs = {{"num_true", Ints{}}, {"seed", 0}, {"seed2", 0}},
      .shape = HitsShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 2}, {1, 4, 9, 2}}}, {{{4}, {4, 2, 7, 4}}}},
                    .attrs = {{"num_true", 2}}}},
  };
}
KERNEL_ANY_TYPE(ComputeAccidentalHits, AccidentalHits);

}  // namespace
}  // namespace penstock
