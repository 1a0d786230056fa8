// SPDX-License-Identifier: Apache-2.0
//
// TrainingGroup: the interface through which a TrainingLoop finds the workers with which it trains,
// if they may change during the training (elastic_group.h). Whenever the loop makes a session, it
// calls these functions in this order:
//
//   Leave           ends the collectives of the old session, if there is one
//   FindMembers     chooses the members, with which the loop makes the session
//   Join            forms the group; the plan says how members get the variables' values
//   ShareValues     gives all members the same values
//
// If one of them returns Unavailable, the loop calls all of them again. At the end the loop calls
// AwaitLastSave, and then Retire, which it also calls after an error. Used by the loop's thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/session.h"
#include "client/training_hook.h"

namespace penstock::client {

class TrainingGroup : public TrainingHook {
 public:
  struct Plan {
    // True if no member has usable values: the chief must restore a checkpoint or, unless
    // `started`, initialise the variables.
    bool restore = false;
    bool started = false;  // a member has trained before
    // Whether ShareValues sends values to this worker, whose variables must exist before that.
    bool receives = false;
  };

  // Returns whether this worker is the chief of the group that it has joined last.
  virtual bool is_chief() const = 0;
  // Returns whether this worker is in the group that it has joined last. Returns false while the
  // worker looks for members again, because the others may have gone on without it.
  virtual bool is_member() const = 0;
  // Returns whether the variables of this worker have the values of one step.
  virtual bool HasValues(Session& session) = 0;
  // Makes a session with this worker's task as its master.
  virtual StatusOr<std::unique_ptr<SessionInterface>> NewSession(
      const SessionOptions& options) const = 0;
  // Returns the name of this worker's task.
  virtual const std::string& task() const = 0;
  // Returns the tasks with which to train. Unavailable if too few take part, or if this worker's
  // own task does not answer.
  virtual StatusOr<std::vector<std::string>> FindMembers() = 0;
  // Returns whether the last FindMembers has failed because too few workers take part, although
  // this worker does.
  virtual bool too_few_members() const = 0;
  // Forms the group with the other members. `has_values`: whether the variables of this worker have
  // values from its own steps.
  virtual StatusOr<Plan> Join(Session& session, const RunOptions& options, bool has_values) = 0;
  // Copies the values to the members that need them. If the plan says `restore`, the chief restores
  // before this call.
  virtual Status ShareValues(Session& session, const RunOptions& options) = 0;
  // Returns when all members have called it. The chief calls it when it has saved the last
  // checkpoint. Aborted or Unavailable if a member is lost before; DeadlineExceeded, with the
  // chief's name, after the timeout of `options`.
  virtual Status AwaitLastSave(Session& session, const RunOptions& options) = 0;
  // Tells the other workers that this one takes part no more.
  virtual void Retire() = 0;
  // Ends the collectives of the session's group at all members, with Aborted.
  virtual void Leave(Session& session) = 0;
  // Notes that this worker's data have ended. The next Join tells the other members.
  virtual void NoteEndOfData() = 0;
  // Returns whether the training ends because the data of a member of the group have ended.
  virtual bool ends() const = 0;
  // Returns a text such as "trains with 2 of 3 workers: ...".
  virtual std::string Describe() const = 0;
};

}  // namespace penstock::client
