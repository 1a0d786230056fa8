// SPDX-License-Identifier: Apache-2.0
//
// KmeansPlusPlusInitialization, KMC2ChainInitialization, NearestNeighbors: k-means clustering.
//
// D. Arthur, S. Vassilvitskii: k-means++: The Advantages of Careful Seeding. SODA 2007.
// O. Bachem, M. Lucic, S. H. Hassani, A. Krause: Approximate K-Means++ in Sublinear Time. AAAI
// 2016.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/op/gradient.h"
#include "core/op/long_loop.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/sampling/sampler.h"

namespace penstock {
namespace {

// Returns random numbers made from a seed, the same as TensorFlow's.
BoundedNumbers SeededNumbers(int64_t seed) {
  return BoundedNumbers(Philox::FromSeeds(static_cast<uint64_t>(seed), 0));
}

// Rows of a matrix of floats, and half the squared length of each.
class Points {
 public:
  explicit Points(const Tensor& matrix)
      : rows_(matrix.dim(0)), size_(matrix.dim(1)), data_(matrix.data<float>()) {
    halves_.reserve(rows_);
    for (int64_t i = 0; i < rows_; ++i) halves_.push_back(0.5f * Dot(row(i), row(i)));
  }
  int64_t rows() const { return rows_; }
  int64_t size() const { return size_; }
  const float* row(int64_t i) const { return data_ + i * size_; }
  float half_square(int64_t i) const { return halves_[i]; }
  // Returns half the squared distance of row i from row j of `other`, without the part of row i.
  float PartialDistance(int64_t i, const Points& other, int64_t j) const {
    return other.half_square(j) - Dot(row(i), other.row(j));
  }
  float HalfDistance(int64_t i, int64_t j) const {
    return (half_square(i) - Dot(row(i), row(j))) + half_square(j);
  }

 private:
  float Dot(const float* a, const float* b) const {
    float sum = 0;
    for (int64_t k = 0; k < size_; ++k) sum += a[k] * b[k];
    return sum;
  }

  const int64_t rows_, size_;
  const float* const data_;
  std::vector<float> halves_;
};

// Returns InvalidArgument also if the matrix has no columns: its rows then take no memory, so their
// number would have no limit, but Points needs memory for each.
Status CheckMatrix(const Tensor& tensor, const char* name) {
  if (tensor.rank() != 2) {
    return InvalidArgument("Input ", name, " should be a matrix, has shape ",
                           tensor.shape().ToString());
  }
  if (tensor.dim(1) > 0) return OkStatus();
  return InvalidArgument("Input ", name, " should have columns, has shape ",
                         tensor.shape().ToString());
}

// Chooses centers one after the other: each point with a probability in proportion to its squared
// distance from the nearest center so far.
class CenterChooser {
 public:
  CenterChooser(const Points& points, int64_t seed, const StepContext& step)
      : points_(points),
        numbers_(SeededNumbers(seed)),
        step_(step),
        distances_(points.rows(), std::numeric_limits<float>::infinity()),
        sums_(points.rows()) {}

  // Returns the best of 1 + `retries` candidates: that which brings the points nearest to the
  // centers.
  StatusOr<int64_t> Next(int64_t retries) {
    if (!chosen_.empty()) std::partial_sum(distances_.begin(), distances_.end(), sums_.begin());
    int64_t best = -1;
    float best_potential = std::numeric_limits<float>::infinity();
    std::vector<float> best_distances;
    for (int64_t i = 0; i <= retries; ++i) {
      ASSIGN_OR_RETURN(const int64_t candidate, Draw());
      std::vector<float> distances;
      RETURN_IF_ERROR(DistancesWith(candidate, &distances));
      const float potential = std::accumulate(distances.begin(), distances.end(), 0.0f);
      if (best >= 0 && !(potential < best_potential)) continue;
      best = candidate;
      best_potential = potential;
      best_distances.swap(distances);
    }
    distances_.swap(best_distances);
    chosen_.insert(best);
    return best;
  }

 private:
  // Returns a point that is no center yet. REQUIRES: there is one.
  StatusOr<int64_t> Draw() {
    // If rounding gives centers all of the weight, each of the other points gets the same.
    constexpr int kWeightedDraws = 1000;
    for (int drawn = 0;; ++drawn) {
      RETURN_IF_ERROR(CheckStepContinues(step_));
      const float total = chosen_.empty() || drawn >= kWeightedDraws ? 0 : sums_.back();
      int64_t index = 0;
      if (total > 0) {
        const float at = numbers_.UnitFloat() * total;
        index = std::upper_bound(sums_.begin(), sums_.end(), at) - sums_.begin();
        index = std::min(index, points_.rows() - 1);
      } else {
        index = static_cast<int64_t>(numbers_.Below64(points_.rows()));
      }
      if (!chosen_.contains(index)) return index;
    }
  }

  Status DistancesWith(int64_t center, std::vector<float>* distances) const {
    distances->resize(points_.rows());
    return LongLoop(step_, points_.rows(), 1 + 0.3 * static_cast<double>(points_.size()),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        (*distances)[i] = std::min(distances_[i], points_.HalfDistance(i, center));
                      }
                    });
  }

  const Points& points_;
  BoundedNumbers numbers_;
  const StepContext& step_;
  std::vector<float> distances_, sums_;
  absl::flat_hash_set<int64_t> chosen_;
};

class KMeansInitKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& points = ctx.input(0);
    RETURN_IF_ERROR(CheckMatrix(points, "points"));
    ASSIGN_OR_RETURN(const int64_t count, IntScalar(ctx.input(1), "num_to_sample"));
    ASSIGN_OR_RETURN(const int64_t seed, IntScalar(ctx.input(2), "seed"));
    ASSIGN_OR_RETURN(int64_t retries, IntScalar(ctx.input(3), "num_retries_per_sample"));
    if (points.dim(0) == 0) return InvalidArgument("Expected points.rows() > 0.");
    if (count <= 0) return InvalidArgument("Expected num_to_sample > 0, is ", count, ".");
    if (count > points.dim(0)) {
      return InvalidArgument("Expected num_to_sample <= points.rows(). ", count, " vs ",
                             points.dim(0), ".");
    }
    if (retries < 0) retries = 2 + static_cast<int64_t>(std::log(count));
    Tensor* samples;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape({count, points.dim(1)}), &samples));
    const Points rows(points);
    CenterChooser chooser(rows, seed, ctx.step());
    for (int64_t i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(const int64_t center, chooser.Next(retries));
      std::copy_n(rows.row(center), rows.size(), samples->mutable_data<float>() + i * rows.size());
    }
    return OkStatus();
  }
};

class Kmc2Kernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& distances = ctx.input(0);
    if (distances.rank() != 1 || distances.dim(0) == 0) {
      return InvalidArgument(
          "Input distances should be a vector of one or more numbers, has shape ",
          distances.shape().ToString());
    }
    ASSIGN_OR_RETURN(const int64_t seed, IntScalar(ctx.input(1), "seed"));
    BoundedNumbers numbers = SeededNumbers(seed);
    const auto values = distances.flat<float>();
    int64_t state = 0;
    for (int64_t i = 1; i < distances.dim(0); ++i) {
      if (values[i] > numbers.UnitFloat() * values[state]) state = i;
    }
    ctx.SetOutput(0, Tensor::Scalar(state));
    return OkStatus();
  }
};

class NearestNeighborsKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    RETURN_IF_ERROR(CheckMatrix(ctx.input(0), "points"));
    RETURN_IF_ERROR(CheckMatrix(ctx.input(1), "centers"));
    ASSIGN_OR_RETURN(const int64_t wanted, IntScalar(ctx.input(2), "k"));
    if (wanted < 0) return InvalidArgument("Expected k >= 0, is ", wanted, ".");
    if (ctx.input(0).dim(0) == 0) return InvalidArgument("Expected points.rows() > 0.");
    if (ctx.input(0).dim(1) != ctx.input(1).dim(1)) {
      return InvalidArgument("Expected point_dimensions == center_dimensions: ",
                             ctx.input(0).dim(1), " vs ", ctx.input(1).dim(1), ".");
    }
    const Points points(ctx.input(0)), centers(ctx.input(1));
    const int64_t k = std::min(wanted, centers.rows());
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make({points.rows(), k}));
    Tensor *indices, *distances;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &indices));
    RETURN_IF_ERROR(ctx.Allocate(1, shape, &distances));
    if (k == 0) return OkStatus();
    const double cost =
        static_cast<double>(centers.rows()) * (2 + 0.3 * static_cast<double>(points.size()));
    return LongLoop(ctx.step(), points.rows(), cost, [&](int64_t begin, int64_t end) {
      std::vector<std::pair<float, int64_t>> found(centers.rows());
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t j = 0; j < centers.rows(); ++j) {
          found[j] = {points.PartialDistance(i, centers, j), j};
        }
        std::partial_sort(found.begin(), found.begin() + k, found.end(), IsNearer);
        for (int64_t n = 0; n < k; ++n) {
          indices->mutable_data<int64_t>()[i * k + n] = found[n].second;
          distances->mutable_data<float>()[i * k + n] =
              2 * (points.half_square(i) + found[n].first);
        }
      }
    });
  }

  // Orders NaN after all numbers, so that the order is strict.
  static bool IsNearer(const std::pair<float, int64_t>& a, const std::pair<float, int64_t>& b) {
    if (std::isnan(a.first) != std::isnan(b.first)) return std::isnan(b.first);
    if (a.first < b.first || b.first < a.first) return a.first < b.first;
    return a.second < b.second;
  }
};

OP(KmeansPlusPlusInitialization) {
  return {
      .doc =
          "Chooses num_to_sample rows of `points` as centers, one after the other, by k-means++: "
          "each with a probability in proportion to its squared distance from the nearest center "
          "so far. Each choice is the best of 1 + num_retries_per_sample candidates; a negative "
          "number means 2 + log(num_to_sample) retries.",
      .inputs = {{"points", "float"},
                 {"num_to_sample", "int64"},
                 {"seed", "int64"},
                 {"num_retries_per_sample", "int64"}},
      .outputs = {{"samples", "float"}},
      .shape = [](ShapeScope& s) -> Status {
        ASSIGN_OR_RETURN(const PartialShape points, s.WithRank(0, 2));
        for (const int scalar : {1, 2, 3}) RETURN_IF_ERROR(s.WithRank(scalar, 0).status());
        PartialShape samples = PartialShape::UnknownOfRank(2);
        if (points.known_rank()) samples.set_dim(1, points.dim(1));
        s.set_output(0, samples);
        return OkStatus();
      },
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{6, 2}, {0, 0, 1, 0, 9, 9, 8, 9, -7, 5, -7, 4}}},
                               {{.values = {3}}},
                               {{.values = {4}}},
                               {{.values = {2}}}}}},
  };
}
KERNEL_ANY_TYPE(KmeansPlusPlusInitialization, KMeansInitKernel);

OP(KMC2ChainInitialization) {
  return {
      .doc =
          "Returns the last state of a Markov chain over the candidates of k-MC2. The chain moves "
          "from one candidate to the next with probability min(1, the ratio of their distances).",
      .inputs = {{"distances", "float"}, {"seed", "int64"}},
      .outputs = {{"index", "int64"}},
      .shape = [](ShapeScope& s) -> Status {
        RETURN_IF_ERROR(s.WithRank(0, 1).status());
        RETURN_IF_ERROR(s.WithRank(1, 0).status());
        return SetOutput(s, 0, {});
      },
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{5}, {1, 3, 2, 0.5, 4}}}, {{.values = {7}}}}}},
  };
}
KERNEL_ANY_TYPE(KMC2ChainInitialization, Kmc2Kernel);

OP(NearestNeighbors) {
  return {
      .doc =
          "Returns the k rows of `centers` that are nearest to each row of `points`, the nearest "
          "one first: their indices and their squared distances. All centers, if there are fewer "
          "than k.",
      .inputs = {{"points", "float"}, {"centers", "float"}, {"k", "int64"}},
      .outputs = {{"nearest_center_indices", "int64"}, {"nearest_center_distances", "float"}},
      .shape = [](ShapeScope& s) -> Status {
        ASSIGN_OR_RETURN(const PartialShape points, s.WithRank(0, 2));
        RETURN_IF_ERROR(s.WithRank(1, 2).status());
        RETURN_IF_ERROR(s.WithRank(2, 0).status());
        PartialShape nearest = PartialShape::UnknownOfRank(2);
        if (points.known_rank()) nearest.set_dim(0, points.dim(0));
        s.set_output(0, nearest);
        s.set_output(1, nearest);
        return OkStatus();
      },
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{4, 2}, {0, 0, 1, 0, 5, 5, -3, 2}}},
                               {{{3, 2}, {0, 1, 4, 4, -2, 0}}},
                               {{.values = {2}}}}}},
  };
}
KERNEL_ANY_TYPE(NearestNeighbors, NearestNeighborsKernel);

}  // namespace
}  // namespace penstock
