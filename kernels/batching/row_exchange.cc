// SPDX-License-Identifier: Apache-2.0
#include "kernels/batching/row_exchange.h"

#include <algorithm>

namespace penstock {

class RowExchange::TakeOperation final : public Operation {
 public:
  TakeOperation(RowExchange& exchange, std::vector<int64_t> ids, int64_t deadline_ns,
                Receive receive, const Caller& caller, Done done)
      : Operation(caller, std::move(done)),
        exchange_(exchange),
        ids_(std::move(ids)),
        deadline_ns_(deadline_ns),
        receive_(std::move(receive)) {}

  int64_t deadline_ns() const { return deadline_ns_; }

  StatusOr<Progress> Try() override {
    exchange_.mu_.AssertHeld();
    auto& kept = exchange_.kept_;
    for (const int64_t id : ids_) {
      if (kept.contains(id)) continue;
      if (exchange_.env_.NowNanos() < deadline_ns_) return Progress::kNone;
      return DeadlineExceeded("Batched data did not arrive within timeout window.");
    }
    for (const int64_t id : ids_) taken_.push_back(std::move(kept.extract(id).mapped().tensor));
    exchange_.Changed(origin(), "take", [] { return std::vector<Tensor>(); });
    return Progress::kDone;
  }
  Status Deliver() override {
    std::move(receive_)(std::move(taken_));
    return OkStatus();
  }

 private:
  RowExchange& exchange_;
  const std::vector<int64_t> ids_;  // distinct
  const int64_t deadline_ns_;
  Receive receive_;
  std::vector<Tensor> taken_;
};

StatusOr<std::shared_ptr<RowExchange>> RowExchange::Make(const char* type, std::string name,
                                                         Scheduler& threads, Env& env) {
  std::shared_ptr<RowExchange> made(new RowExchange(type, std::move(name), env));
  ASSIGN_OR_RETURN(made->alarm_,
                   Alarm::Make(threads, env, [weak = std::weak_ptr<RowExchange>(made)] {
                     if (const std::shared_ptr<RowExchange> exchange = weak.lock())
                       exchange->OnAlarm();
                   }));
  return made;
}

Status RowExchange::Put(std::vector<std::pair<int64_t, Tensor>> tensors, int64_t keep_ns,
                        const UpdateOrigin& origin) {
  const int64_t until_ns = After(keep_ns);
  Ended ended;
  {
    MutexLock lock(mu_);
    DropExpired(env_.NowNanos());
    for (const auto& [id, tensor] : tensors) {
      if (kept_.contains(id)) return InvalidArgument("there are rows of id ", id, " already");
    }
    if (static_cast<int64_t>(kept_.size() + tensors.size()) > kTensorsMax) {
      return ResourceExhausted(TypeName(), " '", name(), "' already keeps ", kept_.size(),
                               " tensors for other steps; there may be ", kTensorsMax);
    }
    for (auto& [id, tensor] : tensors) kept_[id] = {std::move(tensor), until_ns};
    Changed(origin, "put", [] { return std::vector<Tensor>(); });
    Advance(&ended);
    if (!kept_.empty()) alarm_->Set(until_ns);
  }
  Finish(ended);
  return OkStatus();
}

void RowExchange::Take(std::vector<int64_t> ids, int64_t wait_ns, Receive receive,
                       const Caller& caller, Done done) {
  const int64_t deadline_ns = After(wait_ns);
  Start(0, std::make_shared<TakeOperation>(*this, std::move(ids), deadline_ns, std::move(receive),
                                           caller, std::move(done)));
  alarm_->Set(deadline_ns);
}

int64_t RowExchange::After(int64_t ns) const {
  int64_t at_ns = 0;
  return __builtin_add_overflow(env_.NowNanos(), ns, &at_ns) ? Condition::kNever : at_ns;
}

void RowExchange::DropExpired(int64_t now_ns) {
  std::erase_if(kept_, [now_ns](const auto& entry) { return entry.second.until_ns <= now_ns; });
}

void RowExchange::OnAlarm() {
  Ended ended;
  {
    MutexLock lock(mu_);
    DropExpired(env_.NowNanos());
    Advance(&ended);
    int64_t next_ns = Condition::kNever;
    for (const auto& [id, kept] : kept_) next_ns = std::min(next_ns, kept.until_ns);
    for (const auto& operation : line(0)) {
      next_ns = std::min(next_ns, static_cast<const TakeOperation&>(*operation).deadline_ns());
    }
    alarm_->Set(next_ns);
  }
  Finish(ended);
}

std::string RowExchange::DebugString() const {
  MutexLock lock(mu_);
  return StrCat(TypeName(), " '", name(), "': keeps ", kept_.size(), " tensors for other steps, ",
                line(0).size(), " steps wait");
}

}  // namespace penstock
