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
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "core/base/cancellation.h"
#include "core/base/done.h"
#include "core/op/resource.h"

namespace penstock {

// Who calls: what ends its wait, and whom its changes are put down to. Both are borrowed until its
// Done is called.
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

  // What one caller wants done, once.
  class Operation {
   public:
    enum class Progress { kNone, kSome, kDone };

    Operation(const Caller& caller, Done done)
        : cancellation_(caller.cancellation), origin_(caller.origin), done_(std::move(done)) {}
    virtual ~Operation() = default;

    // Does as much as the state allows. kNone: the state is what it was. An error ends the
    // operation. REQUIRES the lock.
    virtual StatusOr<Progress> Try() = 0;
    // Gives back what it has taken: it will not come to an end. REQUIRES the lock.
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
  void Shutdown() override;

 protected:
  using Ended = absl::InlinedVector<std::shared_ptr<Operation>, 4>;

  // `type` lives for ever ("FIFOQueue"). Operations of earlier lines are tried first.
  Blocking(const char* type, std::string name, int lines)
      : type_(type), name_(std::move(name)), lines_(lines) {}

  // Puts `operation` at the end of a line and does what can be done.
  void Start(int line, std::shared_ptr<Operation> operation);
  // Ends everything that waits in `line`, by their Undo and `why`. REQUIRES mu_; then Finish.
  void EndAll(int line, const Status& why, Ended* ended);
  // Tries the heads of the lines until nothing changes any more. REQUIRES mu_; then Finish.
  void Advance(Ended* ended);
  // REQUIRES that the lock is not held.
  static void Finish(const Ended& ended);

  // Whether anything waits. REQUIRES mu_.
  const Line& line(int i) const { return lines_[i]; }

  mutable std::mutex mu_;

 private:
  void End(const std::shared_ptr<Operation>& operation, Status status, Ended* ended);
  void Withdraw(const std::shared_ptr<Operation>& operation, const Status& why);

  const char* const type_;
  const std::string name_;
  std::vector<Line> lines_;
  bool dropped_ = false;
};

}  // namespace penstock
