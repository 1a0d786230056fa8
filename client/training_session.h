// SPDX-License-Identifier: Apache-2.0
//
// TrainingSession: the session of a TrainingLoop. Waits for the tasks, makes a session, and gives
// the variables their values: the chief initialises or restores them, the other workers wait until
// they have values. Private to TrainingLoop.
//
// Used by the thread of TrainingLoop::Run only. Borrows its arguments.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/training_context.h"
#include "client/training_saves.h"
#include "client/training_steps.h"

namespace penstock::client {

class TrainingSession {
 public:
  // The nodes that initialise the variables, and that ask whether they have values.
  struct Nodes {
    Output initialize, initialize_locals, are_initialized;
  };
  static Nodes AddNodes(const TrainingContext& context);

  TrainingSession(TrainingContext& context, Nodes nodes, TrainingSaves& saves, TrainingSteps& steps)
      : context_(context), nodes_(std::move(nodes)), saves_(saves), steps_(steps) {}

  // Makes a new session in which steps can run, and sets the global step. Waits for tasks that do
  // not answer; returns DeadlineExceeded after wait_seconds, Cancelled if RequestStop or a signal
  // ends the training meanwhile, and Unavailable if others_have_ended(). REQUIRES: no save and no
  // step runs.
  Status Connect();
  // Makes a session with this worker's task only, in which the hooks can end after the other
  // members of the group have ended. Variables that were lost with the task get the values of the
  // newest checkpoint. REQUIRES: the training has a group; no save and no step runs.
  Status ConnectAlone();
  // Looks for the other members of the group. Returns whether this worker need not look for them
  // again: all steps were taken, the last checkpoint is there, and too few others take part.
  // REQUIRES: the training has a group.
  bool AskWhetherOthersHaveEnded();
  // Returns whether the last Connect has given up because the other members have ended. Then
  // session() is one of ConnectAlone.
  bool others_have_ended() const { return others_have_ended_; }
  // Calls SessionEnds of the hooks. session() stays valid until the next Connect.
  void End();

  // REQUIRES: Connect or ConnectAlone has made a session.
  Session& session() { return *session_; }

 private:
  bool MayEndAlone() const;
  Status TryConnect();
  Status NewSession(const std::vector<std::string>& device_filters);
  Status NewSessionOfGroup();
  Status InitializeOrRestore();
  Status AgreeOnVariables();
  Status JoinGroup();
  Status RestoreForGroup(bool started);
  Status WaitForVariables();
  StatusOr<std::vector<std::string>> Uninitialized();
  void SayWaiting(const std::string& line);
  void Sleep(double seconds);

  TrainingContext& context_;
  const Nodes nodes_;
  TrainingSaves& saves_;
  TrainingSteps& steps_;
  std::unique_ptr<Session> session_;
  // true if the variables have had values in a session of this loop
  bool prepared_ = false;
  bool others_have_ended_ = false;
  std::string last_line_;
  int64_t last_line_ns_ = 0;
};

}  // namespace penstock::client
