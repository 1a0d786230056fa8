// SPDX-License-Identifier: Apache-2.0
//
// Records the checkpoints that ops of this process have finished writing, and those that they could
// not write. The task's report shows them, so that people can see how much work a failure would
// lose now; nothing else uses them. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/status.h"

namespace penstock {

struct FinishedCheckpoint {
  std::string path;         // as passed to the op
  int64_t step = -1;        // the number at the end, of "model.ckpt-120"; -1: there is none
  int64_t finished_ns = 0;  // Env::NowNanos()
};

// Records that the checkpoint is complete and visible. Ignores the partial checkpoints that a saver
// keeps in a folder "..._temp_..." until it merges them. If paths differ only in the number at the
// end, keeps only the newest record. When there are more than 8 records, drops the oldest.
void NoteFinishedCheckpoint(const std::string& path, Env& env);

// Returns the recorded checkpoints, newest first.
std::vector<FinishedCheckpoint> LastCheckpoints();

// The failed saves to one path (without the number at its end) since the last successful save.
struct FailedSave {
  std::string path;   // of the newest failure: that of the checkpoint, even if only a part failed
  int64_t step = -1;  // the number at the end of `path`; -1: there is none
  std::string node;   // the name of the op's node
  Status status;
  int64_t failed_ns = 0, first_failed_ns = 0;  // Env::NowNanos()
  int64_t times = 0;
};

// Records that an op could not write the checkpoint, or a part of it in a folder "..._temp_...".
// Ignores cancelled ops. A later NoteFinishedCheckpoint of the same path, or of a part of it,
// removes the record. When there are more than 8 records, drops the oldest.
void NoteFailedSave(const std::string& path, const std::string& node, const Status& status,
                    Env& env);

// Returns the recorded failures, newest first.
std::vector<FailedSave> FailedSaves();

}  // namespace penstock
