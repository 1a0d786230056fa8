// SPDX-License-Identifier: Apache-2.0
//
// Blocking: the engine of every resource whose operations may have to wait for one another: queues,
// barriers, accumulators.
//
// Operations wait in lines, first come, first served. One that waits holds no thread: whoever
// changes the state carries on those at the heads of the lines, on its own thread, and calls their
// Done without any lock. Every wait ends with the step's cancellation (which deadlines are, too) or
// when the resource is dropped. Thread-safe.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "core/base/cancellation.h"
#include "core/base/done.h"
#include "core/base/mutex.h"
#include "core/op/resource.h"

namespace penstock {

// The caller of an operation: the cancellation that ends its wait, and the origin of its changes.
// Both are borrowed until its Done is called.
struct Caller {
  Caller(Cancellation* cancellation,
         const UpdateOrigin& origin = {})  // NOLINT: tests have no origin
      : cancellation(cancellation), origin(origin) {}
  Cancellation* cancellation;  // null: nothing does
  UpdateOrigin origin;
};

class Blocking : public Resource, public std::enable_shared_from_this<Blocking> {
 public:
  class Operation;
  using Line = std::list<std::shared_ptr<Operation>>;

  // One operation of one caller.
  class Operation {
   public:
    enum class Progress { kNone, kSome, kDone };

    Operation(const Caller& caller, Done done)
        : cancellation_(caller.cancellation), origin_(caller.origin), done_(std::move(done)) {}
    virtual ~Operation() = default;

    // Does as much as the state allows. kNone: the state is what it was. An error ends the
    // operation. REQUIRES the resource's mu_, as AssertHeld says in overriding functions: the
    // analysis does not know here which one that is.
    virtual StatusOr<Progress> Try() = 0;
    // Gives back what it has taken: it will not come to an end. REQUIRES mu_ as well.
    virtual void Undo() {}
    // Hands over its results. Without the lock, after kDone.
    virtual Status Deliver() { return OkStatus(); }
    const UpdateOrigin& origin() const { return origin_; }

   private:
    friend class Blocking;
    Cancellation* const cancellation_;
    const UpdateOrigin origin_;
    Cancellation::Token token_ = 0;
    bool registered_ = false;
    Line* line_ = nullptr;  // null: not in one, or not any more
    Line::iterator position_;
    Status status_;
    Done done_;
  };

  const std::string& name() const { return name_; }
  const char* TypeName() const override { return type_; }
  // Ends all that wait, and all that come later, with Cancelled.
  void Shutdown() override ABSL_LOCKS_EXCLUDED(mu_);

 protected:
  using Ended = absl::InlinedVector<std::shared_ptr<Operation>, 4>;

  // `type` lives for ever ("FIFOQueue"). Operations of earlier lines are tried first.
  Blocking(const char* type, std::string name, int lines)
      : type_(type), name_(std::move(name)), lines_(lines) {}

  // Puts `operation` at the end of a line and does what can be done.
  void Start(int line, std::shared_ptr<Operation> operation) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends everything that waits in `line`, by their Undo and `why`. Then call Finish.
  void EndAll(int line, const Status& why, Ended* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Tries the heads of the lines until nothing changes any more. Then call Finish.
  void Advance(Ended* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // REQUIRES that no lock is held: calls each Done.
  static void Finish(const Ended& ended);

  // Whether anything waits.
  const Line& line(int i) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return lines_[i]; }

  mutable Mutex mu_;  // locked before a Cancellation's

 private:
  void End(const std::shared_ptr<Operation>& operation, Status status, Ended* ended)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Withdraw(const std::shared_ptr<Operation>& operation, const Status& why)
      ABSL_LOCKS_EXCLUDED(mu_);

  const char* const type_;
  const std::string name_;
  std::vector<Line> lines_ ABSL_GUARDED_BY(mu_);
  bool dropped_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace penstock
