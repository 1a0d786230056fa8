// SPDX-License-Identifier: Apache-2.0
#include "kernels/data/accumulator.h"

namespace penstock {

class Accumulator::TakeOperation final : public Operation {
 public:
  TakeOperation(Accumulator& accumulator, int64_t required, Receive receive,
                Cancellation* cancellation, Done done)
      : Operation(cancellation, std::move(done)),
        accumulator_(accumulator),
        required_(required),
        mean_(accumulator.spec_.mean),
        receive_(std::move(receive)) {}

  StatusOr<Progress> Try() override {
    accumulator_.mu_.AssertHeld();
    if (accumulator_.count_ < required_) return Progress::kNone;
    taken_ = std::exchange(accumulator_.sum_, accumulator_.NewSum());
    accumulator_.count_ = 0;
    ++accumulator_.global_step_;
    return Progress::kDone;
  }
  Status Deliver() override {
    ASSIGN_OR_RETURN(SummedGradient gradient, taken_->Finish(mean_));
    return std::move(receive_)(std::move(gradient));
  }

 private:
  Accumulator& accumulator_;
  const int64_t required_;
  const bool mean_;
  Receive receive_;
  std::unique_ptr<GradientSum> taken_;
};

Status Accumulator::Add(int64_t step, SummedGradient gradient) {
  if (gradient.values.dtype() != spec_.dtype) {
    return InvalidArgument("a gradient of type ", Name(gradient.values.dtype()), " for the ",
                           TypeName(), " '", name(), "' of type ", Name(spec_.dtype));
  }
  Ended ended;
  {
    MutexLock lock(mu_);
    if (step < global_step_) return OkStatus();
    RETURN_IF_ERROR(sum_->Add(std::move(gradient)));
    ++count_;
    Advance(&ended);
  }
  Finish(ended);
  return OkStatus();
}

void Accumulator::Take(int64_t required, Receive receive, Cancellation* cancellation, Done done) {
  Start(0, std::make_shared<TakeOperation>(*this, required, std::move(receive), cancellation,
                                           std::move(done)));
}

int64_t Accumulator::num_accumulated() const {
  MutexLock lock(mu_);
  return count_;
}

void Accumulator::set_global_step(int64_t step) {
  MutexLock lock(mu_);
  global_step_ = step;
}

std::string Accumulator::DebugString() const {
  MutexLock lock(mu_);
  return StrCat(TypeName(), " '", name(), "' of ", Name(spec_.dtype), spec_.shape.ToString(), ", ",
                count_, " gradients of step ", global_step_, " or later");
}

}  // namespace penstock
