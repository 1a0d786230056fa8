// SPDX-License-Identifier: Apache-2.0
#include "kernels/data/blocking.h"

namespace penstock {

void Blocking::Start(int line, std::shared_ptr<Operation> operation) {
  Ended ended;
  {
    MutexLock lock(mu_);
    Operation& op = *operation;
    op.line_ = &lines_[line];
    op.position_ = op.line_->insert(op.line_->end(), operation);
    if (dropped_) {
      End(operation, Cancelled(type_, " '", name_, "' was dropped"), &ended);
    } else {
      Advance(&ended);
    }
    if (op.line_ != nullptr && op.cancellation_ != nullptr) {
      const auto self = shared_from_this();
      op.registered_ = op.cancellation_->Register(
          [self, operation](const Status& why) { self->Withdraw(operation, why); }, &op.token_);
      if (!op.registered_) {
        End(operation, op.cancellation_->status(), &ended);
        Advance(&ended);
      }
    }
  }
  Finish(ended);
}

void Blocking::Advance(Ended* ended) {
  for (bool changed = true; changed;) {
    changed = false;
    for (Line& line : lines_) changed |= AdvanceLine(line, ended);
  }
}

bool Blocking::AdvanceLine(Line& line, Ended* ended) {
  using Progress = Operation::Progress;
  bool changed = false;
  for (auto next = line.begin(); next != line.end();) {
    Operation& operation = **next;
    ++next;
    const Progress progress = TryOne(operation, ended);
    changed |= progress != Progress::kNone;
    if (progress != Progress::kDone && order_ == Order::kFirstComeFirstServed) break;
  }
  return changed;
}

Blocking::Operation::Progress Blocking::TryOne(Operation& operation, Ended* ended) {
  using Progress = Operation::Progress;
  const StatusOr<Progress> tried = operation.Try();
  if (tried.ok() && *tried != Progress::kDone) return *tried;
  End(std::shared_ptr<Operation>(*operation.position_), tried.status(), ended);
  return Progress::kDone;
}

void Blocking::End(const std::shared_ptr<Operation>& operation, Status status, Ended* ended) {
  operation->line_->erase(operation->position_);
  operation->line_ = nullptr;
  if (!status.ok()) operation->Undo();
  operation->status_ = std::move(status);
  ended->push_back(operation);
}

void Blocking::EndAll(int line, const Status& why, Ended* ended) {
  // Ends the last operation first, so that elements that operations put back keep their order.
  while (!lines_[line].empty()) End(std::shared_ptr<Operation>(lines_[line].back()), why, ended);
}

void Blocking::Withdraw(const std::shared_ptr<Operation>& operation, const Status& why) {
  Ended ended;
  {
    MutexLock lock(mu_);
    if (operation->line_ == nullptr) return;
    operation->registered_ = false;  // the cancellation calls this only once
    End(operation, why, &ended);
    Advance(&ended);  // the ended operation may have blocked others, or put elements back
  }
  Finish(ended);
}

void Blocking::Finish(const Ended& ended) {
  for (const std::shared_ptr<Operation>& operation : ended) {
    if (operation->registered_) operation->cancellation_->Deregister(operation->token_);
    Status status = std::move(operation->status_);
    if (status.ok()) status = operation->Deliver();
    std::move(operation->done_)(std::move(status));
  }
}

void Blocking::Shutdown() {
  Ended ended;
  {
    MutexLock lock(mu_);
    dropped_ = true;
    const Status why = Cancelled(type_, " '", name_, "' was dropped");
    for (size_t line = 0; line < lines_.size(); ++line) EndAll(static_cast<int>(line), why, &ended);
  }
  Finish(ended);
}

}  // namespace penstock
