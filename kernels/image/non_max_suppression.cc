// SPDX-License-Identifier: Apache-2.0
//
// The versions of NonMaxSuppression: select boxes in order of their scores, except boxes that
// overlap a better box too much.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/image/box_overlap.h"
#include "kernels/image/pixels.h"

namespace penstock {
namespace {

struct Selection {
  std::vector<int32_t> indices;
  std::vector<float> scores;
};

struct Thresholds {
  float overlap = 0.5f;
  float score = std::numeric_limits<float>::lowest();
  float soft_sigma = 0;  // if > 0, overlaps lower scores instead of dropping boxes
};

// Selects boxes greedily, the one with the best score first. `overlap(i, j)` returns the overlap of
// two boxes.
template <class Overlap>
Selection Select(const std::vector<float>& scores, int64_t max_size, const Thresholds& t,
                 const Overlap& overlap) {
  struct Candidate {
    int32_t box;
    float score;
    size_t compared = 0;  // number of selected boxes with which the box was compared
    bool operator<(const Candidate& o) const {
      return score == o.score ? box > o.box : score < o.score;
    }
  };
  std::priority_queue<Candidate> queue;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] > t.score) queue.push({static_cast<int32_t>(i), scores[i]});
  }
  const bool soft = t.soft_sigma > 0;
  Selection selected;
  while (static_cast<int64_t>(selected.indices.size()) < max_size && !queue.empty()) {
    Candidate next = queue.top();
    queue.pop();
    const float original = next.score;
    bool dropped = false;
    for (size_t j = selected.indices.size(); j-- > next.compared;) {
      const float o = overlap(next.box, selected.indices[j]);
      if (soft) next.score *= std::exp(-0.5f / t.soft_sigma * o * o);
      dropped = !soft && o > t.overlap;
      if (dropped || next.score <= t.score) break;
    }
    next.compared = selected.indices.size();
    if (dropped) continue;
    if (next.score == original) {
      selected.indices.push_back(next.box);
      selected.scores.push_back(next.score);
    } else if (next.score > t.score) {
      queue.push(next);  // the loop compares it again with its new score
    }
  }
  return selected;
}

// In V1 the threshold is an attribute, in later versions an input. NonMaxSuppressionWithOverlaps
// takes a matrix of overlaps instead of boxes.
class NonMaxSuppression final : public Kernel {
  Status Init(const KernelInit& node) override {
    overlaps_ = node.op.name == "NonMaxSuppressionWithOverlaps";
    if (node.attrs.count("iou_threshold") > 0) {
      RETURN_IF_ERROR(node.Attr("iou_threshold", &attribute_.overlap));
    }
    if (node.attrs.count("pad_to_max_output_size") == 0) return OkStatus();
    return node.Attr("pad_to_max_output_size", &pad_);
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor &boxes = ctx.input(0), &given = ctx.input(1), &size = ctx.input(2);
    if (given.rank() != 1) {
      return InvalidArgument("scores must be 1-D, have shape ", given.shape().ToString());
    }
    const int64_t n = given.dim(0);
    if (boxes.rank() != 2 || boxes.dim(0) != n || boxes.dim(1) != (overlaps_ ? n : 4)) {
      return InvalidArgument(overlaps_ ? "overlaps" : "boxes", " must have shape [", n, ",",
                             overlaps_ ? n : 4, "], has ", boxes.shape().ToString());
    }
    if (size.rank() != 0 || size.scalar<int32_t>() < 0) {
      return InvalidArgument("max_output_size must be a number >= 0, is ", size.ToString());
    }
    Thresholds t = attribute_;
    if (ctx.num_inputs() > 3) RETURN_IF_ERROR(ReadScalar(ctx, 3, "iou_threshold", &t.overlap));
    if (ctx.num_inputs() > 4) RETURN_IF_ERROR(ReadScalar(ctx, 4, "score_threshold", &t.score));
    if (ctx.num_inputs() > 5) RETURN_IF_ERROR(ReadScalar(ctx, 5, "soft_nms_sigma", &t.soft_sigma));
    if (!overlaps_ && !(t.overlap >= 0 && t.overlap <= 1)) {
      return InvalidArgument("iou_threshold must be in [0, 1], is ", t.overlap);
    }
    if (!(t.soft_sigma >= 0)) {
      return InvalidArgument("soft_nms_sigma must be >= 0, is ", t.soft_sigma);
    }
    std::vector<float> scores(n), numbers(boxes.num_elements());
    ToFloats(given, 0, scores.data(), n);
    ToFloats(boxes, 0, numbers.data(), boxes.num_elements());
    const int64_t max_size = size.scalar<int32_t>();
    const Selection selected =
        overlaps_
            ? Select(scores, max_size, t, [&](int32_t i, int32_t j) { return numbers[i * n + j]; })
            : Select(scores, max_size, t, BoxOverlap{numbers.data()});
    return Output(ctx, selected, max_size);
  }

  static Status ReadScalar(const KernelContext& ctx, int i, const char* name, float* value) {
    if (ctx.input(i).rank() != 0) {
      return InvalidArgument(name, " must be 0-D, has shape ", ctx.input(i).shape().ToString());
    }
    ToFloats(ctx.input(i), 0, value, 1);
    return OkStatus();
  }

  // Writes the indices; for V5 also the scores; for V4 and V5 also the number of selected boxes. If
  // pad_, the remaining elements are zeros.
  Status Output(KernelContext& ctx, const Selection& selected, int64_t max_size) const {
    const auto count = static_cast<int64_t>(selected.indices.size());
    const Shape shape({pad_ ? max_size : count});
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &out));
    std::fill_n(out->mutable_data<int32_t>(), out->num_elements(), 0);
    std::copy_n(selected.indices.data(), count, out->mutable_data<int32_t>());
    if (ctx.num_outputs() == 3) {
      RETURN_IF_ERROR(ctx.Allocate(1, shape, &out));
      const std::vector<float> zeros(out->num_elements());
      FromFloats(zeros.data(), out, 0, out->num_elements());
      FromFloats(selected.scores.data(), out, 0, count);
    }
    if (ctx.num_outputs() == 1) return OkStatus();
    RETURN_IF_ERROR(ctx.Allocate(ctx.num_outputs() - 1, Shape(), &out));
    *out->mutable_data<int32_t>() = static_cast<int32_t>(count);
    return OkStatus();
  }

  Thresholds attribute_;
  bool overlaps_ = false, pad_ = false;
};

Status SuppressionShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape boxes, s.WithRank(0, 2));
  ASSIGN_OR_RETURN(const PartialShape scores, s.WithRank(1, 1));
  for (int i = 2; i < s.num_inputs(); ++i) RETURN_IF_ERROR(s.WithRank(i, 0).status());
  if (boxes.known_rank() && scores.known_rank()) {
    RETURN_IF_ERROR(PartialShape({boxes.dim(0)}).Merge(scores).status());
  }
  PartialShape out = PartialShape::UnknownOfRank(1);
  std::vector<int64_t> size;
  const auto pad = s.attrs().find("pad_to_max_output_size");
  if (pad != s.attrs().end() && pad->second == AttrValue(true) && s.ConstantInts(2, &size) &&
      size.size() == 1 && size[0] >= 0) {
    out.set_dim(0, size[0]);
  }
  s.set_output(0, out);
  if (s.num_outputs() == 3) s.set_output(1, out);
  if (s.num_outputs() > 1) s.set_output(s.num_outputs() - 1, PartialShape::Scalar());
  return OkStatus();
}

const DTypes kBoxTypes = {DType::kHalf, DType::kFloat};

constexpr char kDoc[] =
    "Selects up to max_output_size boxes with scores above score_threshold, the best "
    "first, such that no box overlaps a better one by more than iou_threshold "
    "(intersection over union). Returns their indices.";

const ExampleTensor kBoxes = {{3, 4}, {0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 2, 1, 3}};
const ExampleTensor kScores = {{3}, {0.9, 0.75, 0.6}}, kCount = {{}, {3}}, kHalf = {{}, {0.5}};

// Defines V2 to V5, which have more thresholds and outputs.
OpDef SuppressionDef(int version) {
  const char* threshold = version == 5 ? "T" : "T_threshold";
  OpDef def{.doc = kDoc,
            .inputs = {{"boxes", "T"},
                       {"scores", "T"},
                       {"max_output_size", "int32"},
                       {"iou_threshold", threshold}},
            .outputs = {{"selected_indices", "int32"}},
            .types = {{"T", kBoxTypes, DType::kFloat}},
            .shape = SuppressionShape,
            .gradient = NoGradient};
  std::vector<std::vector<ExampleTensor>> example = {{kBoxes}, {kScores}, {kCount}, {kHalf}};
  if (version < 5) def.types.push_back({"T_threshold", kBoxTypes, DType::kFloat});
  if (version > 2) {
    def.inputs.push_back({"score_threshold", threshold});
    example.push_back({kHalf});
  }
  if (version == 5) {
    def.inputs.push_back({"soft_nms_sigma", "T"});
    def.outputs.push_back({"selected_scores", "T"});
    example.push_back({kHalf});
  }
  if (version > 3) {
    def.outputs.push_back({"valid_outputs", "int32"});
    def.attrs = {{"pad_to_max_output_size", false}};
  }
  def.examples = {{.inputs = example}};
  return def;
}

}  // namespace

OP(NonMaxSuppression) {
  return {
      .doc = kDoc,
      .inputs = {{"boxes", "float"}, {"scores", "float"}, {"max_output_size", "int32"}},
      .outputs = {{"selected_indices", "int32"}},
      .attrs = {{"iou_threshold", 0.5f}},
      .shape = SuppressionShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{kBoxes}, {kScores}, {kCount}}}},
  };
}

OP(NonMaxSuppressionV2) { return SuppressionDef(2); }
OP(NonMaxSuppressionV3) { return SuppressionDef(3); }
OP(NonMaxSuppressionV4) { return SuppressionDef(4); }
OP(NonMaxSuppressionV5) { return SuppressionDef(5); }
OP(NonMaxSuppressionWithOverlaps) {
  return {
      .doc =
          "The same as NonMaxSuppression, with the overlaps of all pairs of boxes given as "
          "a matrix.",
      .inputs = {{"overlaps", "float"},
                 {"scores", "float"},
                 {"max_output_size", "int32"},
                 {"overlap_threshold", "float"},
                 {"score_threshold", "float"}},
      .outputs = {{"selected_indices", "int32"}},
      .shape = SuppressionShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{3, 3}}}, {kScores}, {kCount}, {kHalf}, {kHalf}}}},
  };
}
KERNEL_ANY_TYPE(NonMaxSuppression, NonMaxSuppression);
KERNEL_ANY_TYPE(NonMaxSuppressionV2, NonMaxSuppression);
KERNEL_ANY_TYPE(NonMaxSuppressionV3, NonMaxSuppression);
KERNEL_ANY_TYPE(NonMaxSuppressionV4, NonMaxSuppression);
KERNEL_ANY_TYPE(NonMaxSuppressionV5, NonMaxSuppression);
KERNEL_ANY_TYPE(NonMaxSuppressionWithOverlaps, NonMaxSuppression);

}  // namespace penstock
