// SPDX-License-Identifier: Apache-2.0
//
// The checkpoints that ops of this process have finished writing, for people who ask how much a
// failure would cost now. Nothing else depends on it. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/env.h"

namespace penstock {

struct FinishedCheckpoint {
  std::string path;         // as the op was given it
  int64_t step = -1;        // the number at the end, of "model.ckpt-120"; -1: there is none
  int64_t finished_ns = 0;  // Env::NowNanos()
};

// Notes that the checkpoint is complete and visible. Parts of one, which a saver keeps in a folder
// "..._temp_..." until they are merged, are left out. Replaces what was noted of a path that is the
// same but for the number. Of many paths, the oldest are forgotten.
void NoteFinishedCheckpoint(const std::string& path, Env& env);

// Returns those noted, the newest first.
std::vector<FinishedCheckpoint> LastCheckpoints();

}  // namespace penstock
