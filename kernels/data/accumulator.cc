// SPDX-License-Identifier: Apache-2.0
#include "kernels/data/accumulator.h"

#include "core/base/mutex.h"
#include "core/op/state_replay.h"

namespace penstock {
namespace {

constexpr char kAddAction[] = "add", kTakeAction[] = "take", kSetStepAction[] = "set_step";

}  // namespace

class Accumulator::TakeOperation final : public Operation {
 public:
  TakeOperation(Accumulator& accumulator, int64_t required, Receive receive, const Caller& caller,
                Done done)
      : Operation(caller, std::move(done)),
        accumulator_(accumulator),
        required_(required),
        mean_(accumulator.spec_.mean),
        receive_(std::move(receive)) {}

  StatusOr<Progress> Try() override {
    accumulator_.mu_.AssertHeld();
    if (accumulator_.count_ < required_) return Progress::kNone;
    taken_ = accumulator_.TakeNow(origin());
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

Status Accumulator::AddNow(int64_t step, SummedGradient gradient, const UpdateOrigin& origin) {
  std::vector<Tensor> values;
  if (logged()) {
    values = {Value(step), gradient.values};
    if (gradient.indices.valid()) values.push_back(gradient.indices);
    if (gradient.shape.valid()) values.push_back(gradient.shape);
  }
  RETURN_IF_ERROR(sum_->Add(std::move(gradient)));
  ++count_;
  Changed(origin, kAddAction, [&] { return std::move(values); });
  return OkStatus();
}

std::unique_ptr<GradientSum> Accumulator::TakeNow(const UpdateOrigin& origin) {
  std::unique_ptr<GradientSum> taken = std::exchange(sum_, NewSum());
  count_ = 0;
  ++global_step_;
  Changed(origin, kTakeAction, [] { return std::vector<Tensor>(); });
  return taken;
}

void Accumulator::SetStep(int64_t step, const UpdateOrigin& origin) {
  global_step_ = step;
  Changed(origin, kSetStepAction, [&] { return std::vector<Tensor>{Value(step)}; });
}

Status Accumulator::Add(int64_t step, SummedGradient gradient, const UpdateOrigin& origin) {
  if (gradient.values.dtype() != spec_.dtype) {
    return InvalidArgument("a gradient of type ", Name(gradient.values.dtype()), " for the ",
                           TypeName(), " '", name(), "' of type ", Name(spec_.dtype));
  }
  Ended ended;
  {
    MutexLock lock(mu_);
    if (step < global_step_) return OkStatus();
    RETURN_IF_ERROR(AddNow(step, std::move(gradient), origin));
    Advance(&ended);
  }
  Finish(ended);
  return OkStatus();
}

void Accumulator::Take(int64_t required, Receive receive, const Caller& caller, Done done) {
  Start(0, std::make_shared<TakeOperation>(*this, required, std::move(receive), caller,
                                           std::move(done)));
}

int64_t Accumulator::num_accumulated() const {
  MutexLock lock(mu_);
  return count_;
}

void Accumulator::set_global_step(int64_t step, const UpdateOrigin& origin) {
  MutexLock lock(mu_);
  SetStep(step, origin);
}

std::string Accumulator::DebugString() const {
  MutexLock lock(mu_);
  return StrCat(TypeName(), " '", name(), "' of ", Name(spec_.dtype), spec_.shape.ToString(), ", ",
                count_, " gradients of step ", global_step_, " or later");
}

std::vector<Tensor> Accumulator::Describe() const {
  return {Value(spec_.dtype), Value(spec_.shape), Value(int64_t{spec_.mean}),
          Value(int64_t{spec_.sparse})};
}

Status Accumulator::ReplayAdd(const ResourceChange& change, const UpdateOrigin& origin) {
  const ReplayValues values(change);
  RETURN_IF_ERROR(values.ExpectAtLeast(spec_.sparse ? 3 : 2));
  ASSIGN_OR_RETURN(const int64_t step, values.Int(0));
  SummedGradient gradient{values.Get(1)};
  if (gradient.values.dtype() != spec_.dtype) {
    return values.Error(StrCat("a gradient of type ", Name(gradient.values.dtype())));
  }
  if (spec_.sparse) gradient.indices = values.Get(2);
  if (spec_.sparse && values.size() > 3) gradient.shape = values.Get(3);
  for (const Tensor* ints : {&gradient.indices, &gradient.shape}) {
    if (!ints->valid() || (ints->dtype() == DType::kInt64 && ints->rank() == 1)) continue;
    return values.Error("indices and shape must be int64 vectors");
  }
  return AddNow(step, std::move(gradient), origin);
}

Status Accumulator::Replay(const ResourceChange& change, const UpdateOrigin& origin) {
  const ReplayValues values(change);
  MutexLock lock(mu_);
  if (change.action == kAddAction) return ReplayAdd(change, origin);
  if (change.action == kTakeAction) {
    TakeNow(origin);
    return OkStatus();
  }
  if (change.action != kSetStepAction) return values.UnknownAction();
  RETURN_IF_ERROR(values.Expect(1));
  ASSIGN_OR_RETURN(const int64_t step, values.Int(0));
  SetStep(step, origin);
  return OkStatus();
}

namespace {

StatusOr<std::shared_ptr<Resource>> MakeAccumulator(const std::string& name,
                                                    const ReplayValues& values, Env&) {
  RETURN_IF_ERROR(values.Expect(4));
  AccumulatorSpec spec;
  ASSIGN_OR_RETURN(spec.dtype, values.Type(0));
  if (!IsFloating(spec.dtype)) return values.Error("gradients must be floating-point numbers");
  ASSIGN_OR_RETURN(spec.shape, values.GetShape(1));
  ASSIGN_OR_RETURN(const int64_t mean, values.Int(2));
  ASSIGN_OR_RETURN(const int64_t sparse, values.Int(3));
  spec.mean = mean != 0;
  spec.sparse = sparse != 0;
  if (spec.sparse) spec.type = kSparseAccumulator;
  return std::make_shared<Accumulator>(name, spec);
}
const ResourceMakerDeclaration makers[] = {
    {AccumulatorSpec().type, MakeAccumulator},
    {kSparseAccumulator, MakeAccumulator},
};

}  // namespace

}  // namespace penstock
