// SPDX-License-Identifier: Apache-2.0
//
// CombinedNonMaxSuppression: NonMaxSuppression for each class of each image of a batch.
#include <algorithm>
#include <limits>
#include <queue>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/image/box_overlap.h"

namespace penstock {
namespace {

struct Detection {
  float score;
  const float* box;
  int64_t class_number;
};

// Compares only the scores, as TensorFlow does, so that boxes with equal scores have TensorFlow's
// order.
bool IsBetter(const Detection& a, const Detection& b) { return a.score > b.score; }

// Returns the rows of an image's results with pad_per_class: min(total, per_class * classes).
int64_t PaddedRows(int64_t total, int64_t per_class, int64_t classes) {
  int64_t all;
  return __builtin_mul_overflow(per_class, classes, &all) ? total : std::min(total, all);
}

class CombinedSuppression final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("pad_per_class", &pad_per_class_));
    return node.Attr("clip_boxes", &clip_);
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor &boxes = ctx.input(0), &scores = ctx.input(1);
    RETURN_IF_ERROR(CheckShapes(boxes.shape(), scores.shape()));
    Limits limits;
    RETURN_IF_ERROR(ReadLimits(ctx, &limits));
    const int64_t batch = boxes.dim(0), n = boxes.dim(1), classes = scores.dim(2);
    const int64_t rows =
        pad_per_class_ ? PaddedRows(limits.total, limits.per_class, classes) : limits.total;
    ASSIGN_OR_RETURN(const Shape boxes_shape, Shape::Make({batch, rows, 4}));
    Tensor *out_boxes, *out_scores, *out_classes, *valid;
    RETURN_IF_ERROR(ctx.Allocate(0, boxes_shape, &out_boxes));
    RETURN_IF_ERROR(ctx.Allocate(1, Shape{batch, rows}, &out_scores));
    RETURN_IF_ERROR(ctx.Allocate(2, Shape{batch, rows}, &out_classes));
    RETURN_IF_ERROR(ctx.Allocate(3, Shape{batch}, &valid));
    for (Tensor* out : {out_boxes, out_scores, out_classes}) {
      std::fill_n(out->mutable_data<float>(), out->num_elements(), 0.f);
    }
    for (int64_t image = 0; image < batch; ++image) {
      std::vector<Detection> found =
          Detect(boxes, image, scores.data<float>() + image * n * classes, classes, limits);
      std::sort(found.begin(), found.end(), IsBetter);
      found.resize(std::min<size_t>(found.size(), rows));
      float* to = out_boxes->mutable_data<float>() + image * rows * 4;
      int64_t row = image * rows;
      for (const Detection& detection : found) {
        for (int i = 0; i < 4; ++i) {
          *to++ = clip_ ? std::max(std::min(detection.box[i], 1.f), 0.f) : detection.box[i];
        }
        out_scores->mutable_data<float>()[row] = detection.score;
        out_classes->mutable_data<float>()[row++] = static_cast<float>(detection.class_number);
      }
      valid->mutable_data<int32_t>()[image] = static_cast<int32_t>(found.size());
    }
    return OkStatus();
  }

 private:
  struct Limits {
    int64_t per_class = 0, total = 0;
    float overlap = 0, score = 0;
  };

  static Status CheckShapes(const Shape& boxes, const Shape& scores) {
    if (boxes.rank() != 4 || boxes.dim(3) != 4) {
      return InvalidArgument("boxes must have 4 dimensions, the last of size 4; they have shape ",
                             boxes.ToString());
    }
    if (boxes.dim(1) > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("boxes must have less than 2^31 boxes per image; they have shape ",
                             boxes.ToString());
    }
    if (scores.rank() != 3 || scores.dim(0) != boxes.dim(0) || scores.dim(1) != boxes.dim(1)) {
      return InvalidArgument("scores has incompatible shape ", scores.ToString(),
                             ", boxes have shape ", boxes.ToString());
    }
    if (boxes.dim(2) != 1 && boxes.dim(2) != scores.dim(2)) {
      return InvalidArgument("third dimension of boxes must be either 1 or num classes: ",
                             boxes.ToString(), ", scores have shape ", scores.ToString());
    }
    return OkStatus();
  }

  static Status ReadLimits(const KernelContext& ctx, Limits* limits) {
    for (int i = 2; i < 6; ++i) {
      if (ctx.input(i).rank() == 0) continue;
      return InvalidArgument("input ", i, " must be a scalar, has shape ",
                             ctx.input(i).shape().ToString());
    }
    *limits = {.per_class = ctx.input(2).scalar<int32_t>(),
               .total = ctx.input(3).scalar<int32_t>(),
               .overlap = ctx.input(4).scalar<float>(),
               .score = ctx.input(5).scalar<float>()};
    if (limits->per_class <= 0) {
      return InvalidArgument("max_size_per_class must be positive, is ", limits->per_class);
    }
    if (limits->total <= 0)
      return InvalidArgument("max_total_size must be > 0, is ", limits->total);
    if (!(limits->overlap >= 0 && limits->overlap <= 1)) {
      return InvalidArgument("iou_threshold must be in [0, 1], is ", limits->overlap);
    }
    return OkStatus();
  }

  // Returns, class by class, the boxes of one image that NonMaxSuppression selects.
  static std::vector<Detection> Detect(const Tensor& boxes, int64_t image, const float* scores,
                                       int64_t classes, const Limits& limits) {
    const int64_t n = boxes.dim(1), kinds = boxes.dim(2);
    std::vector<Detection> found;
    if (n == 0) return found;  // there may be more classes than a loop can visit
    for (int64_t c = 0; c < classes; ++c) {
      const float* of_class =
          boxes.data<float>() + image * n * kinds * 4 + (kinds == 1 ? 0 : 4 * c);
      const BoxOverlap overlap{of_class, 4 * kinds};
      const auto worse = [&](int32_t i, int32_t j) {
        return scores[i * classes + c] < scores[j * classes + c];
      };
      std::priority_queue<int32_t, std::vector<int32_t>, decltype(worse)> queue(worse);
      for (int32_t i = 0; i < n; ++i) {
        if (scores[i * classes + c] > limits.score) queue.push(i);
      }
      std::vector<int32_t> selected;
      for (; static_cast<int64_t>(selected.size()) < limits.per_class && !queue.empty();
           queue.pop()) {
        const int32_t box = queue.top();
        const bool dropped = std::any_of(selected.begin(), selected.end(), [&](int32_t better) {
          return overlap(box, better) > limits.overlap;
        });
        if (dropped) continue;
        selected.push_back(box);
        found.push_back({scores[box * classes + c], of_class + overlap.stride * box, c});
      }
    }
    return found;
  }

  bool pad_per_class_ = false, clip_ = true;
};

Status CombinedSuppressionShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape boxes, s.WithRank(0, 4));
  ASSIGN_OR_RETURN(const PartialShape scores, s.WithRank(1, 3));
  for (int i = 2; i < 6; ++i) RETURN_IF_ERROR(s.WithRank(i, 0).status());
  const int64_t batch = boxes.known_rank() ? boxes.dim(0) : PartialShape::kUnknown;
  int64_t rows = PartialShape::kUnknown;
  std::vector<int64_t> per_class, total;
  if (s.ConstantInts(3, &total) && total.size() == 1 && total[0] > 0) {
    if (!s.attr<bool>("pad_per_class")) {
      rows = total[0];
    } else if (s.ConstantInts(2, &per_class) && per_class.size() == 1 && per_class[0] > 0 &&
               scores.known_rank() && scores.dim(2) >= 0) {
      rows = PaddedRows(total[0], per_class[0], scores.dim(2));
    }
  }
  s.set_output(0, PartialShape{batch, rows, 4});
  s.set_output(1, PartialShape{batch, rows});
  s.set_output(2, PartialShape{batch, rows});
  s.set_output(3, PartialShape{batch});
  return OkStatus();
}

}  // namespace

OP(CombinedNonMaxSuppression) {
  return {
      .doc =
          "For each image and class, selects up to max_output_size_per_class boxes with scores "
          "above score_threshold, the best first, such that no box overlaps a better one by more "
          "than iou_threshold (intersection over union). Returns the best max_total_size of each "
          "image, their scores and classes, padded with zeros, and their number.",
      .inputs = {{"boxes", "float"},
                 {"scores", "float"},
                 {"max_output_size_per_class", "int32"},
                 {"max_total_size", "int32"},
                 {"iou_threshold", "float"},
                 {"score_threshold", "float"}},
      .outputs = {{"nmsed_boxes", "float"},
                  {"nmsed_scores", "float"},
                  {"nmsed_classes", "float"},
                  {"valid_detections", "int32"}},
      .attrs = {{"pad_per_class", AttrValue(false)}, {"clip_boxes", AttrValue(true)}},
      .shape = CombinedSuppressionShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{1, 3, 1, 4}, {0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 2, 1, 3}}},
                               {{{1, 3, 2}, {0.9, 0.1, 0.75, 0.3, 0.6, 0.8}}},
                               {{{}, {2}}},
                               {{{}, {3}}},
                               {{{}, {0.5}}},
                               {{{}, {0.2}}}}},
                   {.inputs = {{{{1, 3, 2, 4}}},
                               {{{1, 3, 2}, {0.9, 0.1, 0.75, 0.3, 0.6, 0.8}}},
                               {{{}, {2}}},
                               {{{}, {9}}},
                               {{{}, {0.5}}},
                               {{{}, {0.2}}}},
                    .attrs = {{"pad_per_class", true}, {"clip_boxes", false}}}},
  };
}
KERNEL_ANY_TYPE(CombinedNonMaxSuppression, CombinedSuppression);

}  // namespace penstock
