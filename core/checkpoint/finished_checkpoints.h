// SPDX-License-Identifier: Apache-2.0
//
// The checkpoints that ops of this process have finished writing, so that people can see how much
// work a failure would lose now. Used for display only. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/env.h"

namespace penstock {

struct FinishedCheckpoint {
  std::string path;         // as passed to the op
  int64_t step = -1;        // the number at the end, of "model.ckpt-120"; -1: there is none
  int64_t finished_ns = 0;  // Env::NowNanos()
};

// Records that the checkpoint is complete and visible. Ignores the partial checkpoints that a saver
// keeps in a folder "..._temp_..." until they are merged. A checkpoint replaces the recorded one
// whose path differs only in the number at its end. If there are too many paths, forgets the
// oldest.
void NoteFinishedCheckpoint(const std::string& path, Env& env);

// Returns the recorded checkpoints, newest first.
std::vector<FinishedCheckpoint> LastCheckpoints();

}  // namespace penstock
