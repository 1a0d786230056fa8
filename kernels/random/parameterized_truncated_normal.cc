// SPDX-License-Identifier: Apache-2.0
//
// ParameterizedTruncatedNormal: normal numbers with a mean, a deviation and bounds for each row of
// the output. They are drawn by rejection, from the proposal distribution that is accepted most
// often for the bounds. StatelessParameterizedTruncatedNormal: the same for parameters that
// broadcast, as a function of a seed.
//
// C. P. Robert: Simulation of truncated normal variables. Statistics and Computing 5 (1995).
#include <cmath>
#include <utility>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/engine/broadcast_index.h"
#include "kernels/random/distributions.h"
#include "kernels/random/per_parameter.h"
#include "kernels/random/random_stream.h"
#include "kernels/random/stateless_stream.h"

namespace penstock {
namespace {

constexpr int kMaxAttempts = 1000;

template <class T>
T Rounded(double x) {
  return T(static_cast<float>(x));
}
template <>
double Rounded<double>(double x) {
  return x;
}
template <class T>
T ExpOf(T x) {
  return T(std::exp(x));
}
template <class T>
T SqrtOf(T x) {
  return T(std::sqrt(x));
}
template <class T>
T LogOf(T x) {
  return T(std::log(x));
}

// The parameters of one row. Every operation rounds to T, so that the numbers are TensorFlow's.
template <class T>
class TruncatedNormalRow {
 public:
  static bool Valid(T deviation, T low, T high) {
    return deviation > T(0) && low < high && (std::isfinite(low) || std::isfinite(high));
  }

  // REQUIRES: Valid(deviation, low, high).
  TruncatedNormalRow(T mean, T deviation, T low, T high) : mean_(mean), deviation_(deviation) {
    // Mirrors the distribution if `low` is -infinity, or if both bounds are below the mean.
    if ((std::isinf(low) && low < T(0)) || high < mean) {
      std::swap(low, high);
      deviation_ = -deviation_;
    }
    low_ = (low - mean) / deviation_;
    high_ = (high - mean) / deviation_;
  }

  // Draws numbers from `stream`; returns false if too many successive attempts fail.
  bool Fill(Philox& stream, T* out, int64_t count) {
    const T kFar = Rounded<T>(1.3);
    if ((low_ < -kFar && high_ >= T(0)) || (high_ > kFar && low_ <= T(0))) {
      return FromNormal(stream, out, count);
    }
    const T root = SqrtOf<T>(low_ * low_ + T(4));
    const T cutoff = T(2) * ExpOf<T>(T(0.5f) + (low_ * (low_ - root)) / T(4)) / (low_ + root);
    return high_ - low_ < cutoff ? FromUniform(stream, out, count)
                                 : FromExponential(stream, out, count);
  }

 private:
  T Rescale(T z) const { return z * deviation_ + mean_; }

  bool FromNormal(Philox& stream, T* out, int64_t count) {
    int attempts = 0;
    for (int64_t done = 0; done < count;) {
      for (const T z : Normal<T>()(stream)) {
        if (z >= low_ && z <= high_) {
          out[done++] = Rescale(z);
          if (done == count) break;
          attempts = 0;
        } else if (++attempts > kMaxAttempts) {
          return false;
        }
      }
    }
    return true;
  }

  bool FromUniform(Philox& stream, T* out, int64_t count) {
    const T range = high_ - low_;
    const T peak = low_ < T(0) ? T(0) : low_ * low_;
    int attempts = 0;
    for (int64_t done = 0; done < count;) {
      const auto proposed = Uniform<T>()(stream), u = Uniform<T>()(stream);
      for (size_t i = 0; i < u.size(); ++i) {
        const T z = proposed[i] * range + low_;
        if (u[i] <= ExpOf<T>((peak - z * z) / T(2))) {
          out[done++] = Rescale(z);
          if (done == count) break;
          attempts = 0;
        } else if (++attempts >= kMaxAttempts) {
          return false;
        }
      }
    }
    return true;
  }

  bool FromExponential(Philox& stream, T* out, int64_t count) {
    const T alpha = (low_ + SqrtOf<T>(low_ * low_ + T(4))) / T(2);
    int attempts = 0;
    for (int64_t done = 0; done < count;) {
      const auto u = Uniform<T>()(stream);
      for (size_t i = 0; i + 1 < u.size(); i += 2) {
        const T z = -LogOf<T>(u[i]) / alpha + low_;
        const T x = low_ < alpha ? alpha - z : low_ - alpha;
        if (u[i + 1] <= ExpOf<T>(-x * x / T(2)) && z < high_) {
          out[done++] = Rescale(z);
          if (done == count) break;
          attempts = 0;
        } else if (++attempts >= kMaxAttempts) {
          return false;
        }
      }
    }
    return true;
  }

  T mean_, deviation_, low_, high_;
};

const char* const kParameters[] = {"means", "stdevs", "minvals", "maxvals"};

template <class T>
class ParameterizedTruncatedNormalKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return stream_.Init(node); }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Shape shape, ShapeVector(ctx.input(0), "shape"));
    if (shape.rank() == 0) return InvalidArgument("shape must have one element or more");
    int64_t rows = shape.dim(0), row = rows == 0 ? 0 : shape.num_elements() / rows;
    ASSIGN_OR_RETURN(const bool alike, CheckParameters(ctx, rows));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    const int64_t count = shape.num_elements();
    if (alike) {  // rows of 100, as in TensorFlow: their length affects the numbers
      row = 100;
      rows = (count + row - 1) / row;
    }
    Philox stream = stream_.Reserve(
        static_cast<uint64_t>(rows) * 2 * kMaxAttempts * (static_cast<uint64_t>(row) + 3) / 4,
        *ctx.step().env);
    for (int64_t r = 0; r < rows && r * row < count; ++r) {
      const auto parameter = [&](int i) {
        const Tensor& t = ctx.input(i);
        return t.data<T>()[t.num_elements() == 1 ? 0 : r];
      };
      const T mean = parameter(1), deviation = parameter(2), low = parameter(3),
              high = parameter(4);
      if (!TruncatedNormalRow<T>::Valid(deviation, low, high)) {
        return InvalidArgument("Invalid parameters: row ", r, " has stdev ",
                               static_cast<double>(deviation), ", minval ",
                               static_cast<double>(low), ", maxval ", static_cast<double>(high));
      }
      if (!TruncatedNormalRow<T>(mean, deviation, low, high)
               .Fill(stream, output->mutable_data<T>() + r * row, std::min(row, count - r * row))) {
        return InvalidArgument("rejection sampling failed ", kMaxAttempts,
                               " times in a row: minval ", static_cast<double>(low), ", maxval ",
                               static_cast<double>(high));
      }
    }
    return OkStatus();
  }

 private:
  // Returns whether TensorFlow takes the parameters as scalars: means and stdevs with one element,
  // minvals and maxvals of rank 0. InvalidArgument if a parameter has a wrong shape.
  static StatusOr<bool> CheckParameters(const KernelContext& ctx, int64_t rows) {
    bool alike = true;
    for (int i = 1; i <= 4; ++i) {
      const Tensor& t = ctx.input(i);
      const bool fits = t.rank() == 0 || (t.rank() == 1 && (t.dim(0) == 1 || t.dim(0) == rows));
      if (!fits) {
        return InvalidArgument("Input ", kParameters[i - 1],
                               " should be a scalar or have length 1 or shape[0] = ", rows,
                               ", got shape: ", t.shape().ToString());
      }
      alike = alike && (i <= 2 ? t.num_elements() == 1 : t.rank() == 0);
    }
    return alike;
  }

  RandomStream stream_;
};

Status ParameterizedShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape shape, ShapeInput(s, 0));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

OP(ParameterizedTruncatedNormal) {
  return {
      .doc =
          "Draws normal numbers of a given mean and standard deviation, truncated to "
          "[minval, maxval]. Each parameter is a scalar, or has one element for each row.",
      .inputs = {{"shape", "T"},
                 {"means", "dtype"},
                 {"stdevs", "dtype"},
                 {"minvals", "dtype"},
                 {"maxvals", "dtype"}},
      .outputs = {{"output", "dtype"}},
      .types = {{"dtype", kFloating}, {"T", kIndex}},
      .attrs = {{"seed", 0}, {"seed2", 0}},
      .shape = ParameterizedShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2}, {2, 3}}},
                               {{{2}, {0, 5}}},
                               {{{}, {1}}},
                               {{{}, {-1}}},
                               {{{2}, {1, 3}}}}}},
      .stateful = true,
  };
}
KERNEL_BY("dtype", ParameterizedTruncatedNormal, ParameterizedTruncatedNormalKernel, half, bfloat16,
          float, double);

template <class T>
class StatelessParameterizedKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Shape parameters, ParametersShape(ctx));
    ASSIGN_OR_RETURN(const Shape shape, ShapeWithEnd(ctx.input(0), parameters));
    ASSIGN_OR_RETURN(Philox stream, SeedInput(ctx.input(1)));
    const auto parameter = [&](int i, int64_t place) {
      const Tensor& t = ctx.input(i);
      return t.data<T>()[BroadcastIndex(place, parameters.dims(), t.shape().dims())];
    };
    if (shape.num_elements() > 0) {
      for (int64_t i = 0; i < parameters.num_elements(); ++i) {
        const T deviation = parameter(3, i), low = parameter(4, i), high = parameter(5, i);
        if (TruncatedNormalRow<T>::Valid(deviation, low, high)) continue;
        return InvalidArgument("Invalid parameters: number ", i, " has stddev ",
                               static_cast<double>(deviation), ", minval ",
                               static_cast<double>(low), ", maxval ", static_cast<double>(high));
      }
    }
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    if (shape.num_elements() == 0) return OkStatus();
    const int64_t sets = parameters.num_elements(), count = shape.num_elements() / sets;
    ASSIGN_OR_RETURN(Tensor numbers, ctx.Temporary(output->dtype(), {count}));
    T* const from = numbers.mutable_data<T>();
    // Draws the rows one after the other from one stream, as TensorFlow does on one thread.
    for (int64_t set = 0; set < sets; ++set) {
      TruncatedNormalRow<T> row(parameter(2, set), parameter(3, set), parameter(4, set),
                                parameter(5, set));
      if (!row.Fill(stream, from, count)) {
        return InvalidArgument("rejection sampling failed ", kMaxAttempts,
                               " times in a row for parameters number ", set);
      }
      T* const to = output->mutable_data<T>() + set;
      for (int64_t i = 0; i < count; ++i) to[i * sets] = from[i];
    }
    return OkStatus();
  }

  // Returns the shape to which the four parameters broadcast. InvalidArgument if they do not.
  static StatusOr<Shape> ParametersShape(const KernelContext& ctx) {
    PartialShape all = ctx.input(2).shape();
    for (int i = 3; i <= 5; ++i) {
      const auto both = Broadcast(all, ctx.input(i).shape());
      if (!both.ok()) {
        return InvalidArgument(
            "means, stddevs, minvals, maxvals must have compatible batch dimensions: ",
            ctx.input(2).shape().ToString(), " vs. ", ctx.input(3).shape().ToString(), " vs. ",
            ctx.input(4).shape().ToString(), " vs. ", ctx.input(5).shape().ToString());
      }
      all = *both;
    }
    return all.ToShape();
  }
};

Status StatelessParameterizedShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(1, 1).status());
  PartialShape all = s.input(2);
  for (int i = 3; i <= 5; ++i) {
    ASSIGN_OR_RETURN(all, Broadcast(all, s.input(i)));
  }
  return ParameterizedShape(s);
}

OP(StatelessParameterizedTruncatedNormal) {
  return {
      .doc =
          "Draws normal numbers of a given mean and standard deviation, truncated to [minval, "
          "maxval], as a function of the seed. The parameters broadcast; the last dimensions of "
          "`shape` must be the dimensions of the broadcast tensor.",
      .inputs = {{"shape", "S"},
                 {"seed", "Tseed"},
                 {"means", "dtype"},
                 {"stddevs", "dtype"},
                 {"minvals", "dtype"},
                 {"maxvals", "dtype"}},
      .outputs = {{"output", "dtype"}},
      .types = {{"S", kIndex},
                {"Tseed", kIndex, DType::kInt64},
                {"dtype", {DType::kHalf, DType::kFloat, DType::kDouble}}},
      .shape = StatelessParameterizedShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2}, {3, 2}}},
                               {{{2}, {1, 2}}},
                               {{{2}, {0, 5}}},
                               {{{}, {1}}},
                               {{{}, {-1}}},
                               {{{2}, {1, 3}}}}}},
  };
}
KERNEL_BY("dtype", StatelessParameterizedTruncatedNormal, StatelessParameterizedKernel, half, float,
          double);

}  // namespace
}  // namespace penstock
