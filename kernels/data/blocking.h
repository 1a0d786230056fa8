// SPDX-License-Identifier: Apache-2.0
//
// Blocking: the base of resources whose operations may have to wait for one another: queues,
// barriers, accumulators.
//
// Operations wait in lines (queues of operations), first come, first served; with kAnyOrder, an
// operation that cannot continue yet does not delay the later ones of its line. A waiting operation
// holds no thread: the thread that changes the state also continues the operations at the heads of
// the lines, and calls their Done without a lock. Every wait ends when the step is cancelled (a
// deadline cancels it too) or when the resource is dropped. Thread-safe.
#pragma once

#include <cstdint>
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
// Both are borrowed until the operation's Done is called.
struct Caller {
  Caller(Cancellation* cancellation,
         const UpdateOrigin& origin = {})  // NOLINT: tests have no origin
      : cancellation(cancellation), origin(origin) {}
  Cancellation* cancellation;  // null if nothing cancels it
  UpdateOrigin origin;
};

class Blocking : public Resource, public std::enable_shared_from_this<Blocking> {
 public:
  class Operation;
  using Line = std::list<std::shared_ptr<Operation>>;
  enum class Order : uint8_t { kFirstComeFirstServed, kAnyOrder };

  // An operation of one caller.
  class Operation {
   public:
    enum class Progress { kNone, kSome, kDone };

    Operation(const Caller& caller, Done done)
        : cancellation_(caller.cancellation), origin_(caller.origin), done_(std::move(done)) {}
    virtual ~Operation() = default;

    // Does as much of the operation as the state allows. kNone: the state did not change. An error
    // ends the operation. REQUIRES: the caller holds the resource's mu_. Overriding functions call
    // AssertHeld, because the thread-safety analysis cannot name the mutex here.
    virtual StatusOr<Progress> Try() = 0;
    // Puts back the elements that the operation has taken, because it will not complete. REQUIRES:
    // the caller holds the resource's mu_.
    virtual void Undo() {}
    // Passes the results to the caller, after kDone. Called without the lock.
    virtual Status Deliver() { return OkStatus(); }
    const UpdateOrigin& origin() const { return origin_; }

   private:
    friend class Blocking;
    Cancellation* const cancellation_;
    const UpdateOrigin origin_;
    Cancellation::Token token_ = 0;
    bool registered_ = false;
    Line* line_ = nullptr;  // null: not in a line
    Line::iterator position_;
    Status status_;
    Done done_;
  };

  const std::string& name() const { return name_; }
  const char* TypeName() const override { return type_; }
  // Ends all waiting and all later operations with Cancelled.
  void Shutdown() override ABSL_LOCKS_EXCLUDED(mu_);

 protected:
  using Ended = absl::InlinedVector<std::shared_ptr<Operation>, 4>;

  // `type` (such as "FIFOQueue") must never be freed. Advance tries operations of lower lines
  // first.
  Blocking(const char* type, std::string name, int lines,
           Order order = Order::kFirstComeFirstServed)
      : type_(type), name_(std::move(name)), order_(order), lines_(lines) {}

  // Puts `operation` at the end of a line and advances the lines.
  void Start(int line, std::shared_ptr<Operation> operation) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends everything that waits in `line`: calls Undo, and sets the status `why`. Call Finish
  // afterwards.
  void EndAll(int line, const Status& why, Ended* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Tries the heads of the lines, or all operations if they continue in any order, until nothing
  // changes any more. Call Finish afterwards.
  void Advance(Ended* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Calls the Done of each ended operation. REQUIRES: the caller holds no lock.
  static void Finish(const Ended& ended);

  // Returns the operations that wait in line i.
  const Line& line(int i) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return lines_[i]; }

  mutable Mutex mu_;  // locked before the mutex of a Cancellation

 private:
  void End(const std::shared_ptr<Operation>& operation, Status status, Ended* ended)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Tries the operations of one line. Returns whether anything changed.
  bool AdvanceLine(Line& line, Ended* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Withdraw(const std::shared_ptr<Operation>& operation, const Status& why)
      ABSL_LOCKS_EXCLUDED(mu_);

  const char* const type_;
  const std::string name_;
  const Order order_;
  std::vector<Line> lines_ ABSL_GUARDED_BY(mu_);
  bool dropped_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace penstock
