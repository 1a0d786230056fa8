// SPDX-License-Identifier: Apache-2.0
//
// ChiefHook: a hook that only the chief has, such as one that writes summaries. With an
// ElasticGroup the chief may change with every new session:
//
//   ChiefHook summaries([&] { return group.is_chief(); }, [&] { ... return a SummaryHook ... });
//   loop.AddHook(&summaries);
//
// When this worker becomes chief, a new hook is made. It gets all calls until this worker is in a
// session of which it is not the chief; then the hook is destroyed without a call of End, because
// the training goes on. A hook that collects data must write them in its destructor, or pass them
// to an object that outlives it, as SummaryHook passes them to its SummaryWriter.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/training_hook.h"

namespace penstock::client {

class ChiefHook final : public TrainingHook {
 public:
  using Make = std::function<StatusOr<std::unique_ptr<TrainingHook>>()>;
  // `is_chief` is called when a session is ready. An error of `make` ends the training.
  ChiefHook(std::function<bool()> is_chief, Make make)
      : is_chief_(std::move(is_chief)), make_(std::move(make)) {}

  Status SessionBegins(const HookSession& begun) override {
    if (!is_chief_()) {
      hook_ = nullptr;
      return OkStatus();
    }
    if (hook_ == nullptr) {
      ASSIGN_OR_RETURN(hook_, make_());
    }
    return hook_->SessionBegins(begun);
  }
  Status BeforeStep(int64_t global_step) override {
    return hook_ == nullptr ? OkStatus() : hook_->BeforeStep(global_step);
  }
  Outputs ExtraFetches(int64_t global_step) override {
    return hook_ == nullptr ? Outputs() : hook_->ExtraFetches(global_step);
  }
  void Fetched(std::vector<Tensor> values) override {
    if (hook_ != nullptr) hook_->Fetched(std::move(values));
  }
  Status AfterStep(const StepResult& result, bool* stop) override {
    return hook_ == nullptr ? OkStatus() : hook_->AfterStep(result, stop);
  }
  void AfterSave(const std::string& checkpoint, int64_t global_step) override {
    if (hook_ != nullptr) hook_->AfterSave(checkpoint, global_step);
  }
  void HoldUpdates() override {
    if (hook_ != nullptr) hook_->HoldUpdates();
  }
  void ReleaseUpdates() override {
    if (hook_ != nullptr) hook_->ReleaseUpdates();
  }
  Status StepFailed(const Status& why) override {
    return hook_ == nullptr ? why : hook_->StepFailed(why);
  }
  void SessionEnds() override {
    if (hook_ != nullptr) hook_->SessionEnds();
  }
  Status End(Session& session, int64_t global_step) override {
    return hook_ == nullptr ? OkStatus() : hook_->End(session, global_step);
  }

 private:
  const std::function<bool()> is_chief_;
  const Make make_;
  std::unique_ptr<TrainingHook> hook_;  // null: this worker is not the chief
};

}  // namespace penstock::client
