// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints that hold only changes since an older checkpoint, their base. Such a checkpoint has
// string scalars with names that end in kBaseSuffix. The value of each is the file name of the
// base, in the same directory; an empty string means that this checkpoint has complete values.
#pragma once

#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/status.h"

namespace penstock {

inline constexpr char kBaseSuffix[] = "/base_checkpoint";

// Returns the prefix of the base of the checkpoint `prefix`; empty if the checkpoint is complete.
// DataLoss if a tensor that names the base is not a string scalar with one file name, or if the
// tensors name several bases.
StatusOr<std::string> BaseOf(Env& env, const std::string& prefix);
// Returns the prefixes of the checkpoints that are needed to restore `prefix`: a complete
// checkpoint, then each checkpoint that has the one before as its base, up to `prefix`. NotFound if
// one is missing, DataLoss if one is damaged or the bases form a cycle. Verifies only the bytes
// that it reads.
StatusOr<std::vector<std::string>> ChainOf(Env& env, const std::string& prefix);

}  // namespace penstock
