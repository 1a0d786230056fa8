// SPDX-License-Identifier: Apache-2.0
//
// Accumulator: collects gradients until there are enough, and returns their mean or sum, so that
// several mini-batches or several workers make one update.
//
// Each gradient belongs to a global step. Gradients of steps before the accumulator's step are
// dropped silently. Each Take raises the accumulator's step by one. Thread-safe.
//
// Actions in a StateLog: "add" {step, values}, or for a sparse gradient {step, values, indices} and
// optionally the shape of the full gradient; "take" {}; "set_step" {step}.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "kernels/data/blocking.h"
#include "kernels/data/gradient_sum.h"

namespace penstock {

inline constexpr char kSparseAccumulator[] = "SparseConditionalAccumulator";

// The properties of an accumulator. All nodes that use one accumulator must give the same
// properties.
struct AccumulatorSpec {
  const char* type = "ConditionalAccumulator";
  DType dtype = DType::kInvalid;
  PartialShape shape;
  bool mean = true;
  bool sparse = false;
};

class Accumulator final : public Blocking {
 public:
  using Receive = absl::AnyInvocable<Status(SummedGradient) &&>;

  Accumulator(std::string name, AccumulatorSpec spec)
      : Blocking(spec.type, std::move(name), 1), spec_(std::move(spec)), sum_(NewSum()) {}

  const AccumulatorSpec& spec() const { return spec_; }
  std::string DebugString() const override;
  const char* OpaqueReason() const override { return nullptr; }
  std::vector<Tensor> Describe() const override;
  Status Replay(const ResourceChange& change, const UpdateOrigin& origin) override;

  Status Add(int64_t step, SummedGradient gradient, const UpdateOrigin& origin);
  // Waits for `required` gradients, takes all gradients that have arrived, and passes their sum or
  // mean to `receive`.
  void Take(int64_t required, Receive receive, const Caller& caller, Done done);

  int64_t num_accumulated() const;
  // Sets the global step of the accumulator, which may go back.
  void set_global_step(int64_t step, const UpdateOrigin& origin);

 private:
  class TakeOperation;
  // All changes of the state go through these functions, both in operations and in replay of a log.
  Status AddNow(int64_t step, SummedGradient gradient, const UpdateOrigin& origin)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::unique_ptr<GradientSum> TakeNow(const UpdateOrigin& origin)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SetStep(int64_t step, const UpdateOrigin& origin) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status ReplayAdd(const ResourceChange& change, const UpdateOrigin& origin)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::unique_ptr<GradientSum> NewSum() const {
    return spec_.sparse ? NewSparseSum(spec_.shape) : NewDenseSum(spec_.shape);
  }

  const AccumulatorSpec spec_;
  std::unique_ptr<GradientSum> sum_ ABSL_GUARDED_BY(mu_);
  int64_t count_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t global_step_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace penstock
