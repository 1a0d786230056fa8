// SPDX-License-Identifier: Apache-2.0
//
// Damaged files, for tests: all of them must end in errors.
#pragma once

#include <functional>
#include <string>

#include "core/base/status.h"

namespace penstock {

// Reads a file of these contents.
using ReadContents = std::function<Status(const std::string& contents)>;

void ExpectFlippedBitsAreDetected(const std::string& contents, const ReadContents& read);
void ExpectTruncationsAreDetected(const std::string& contents, const ReadContents& read);
// Pieces of the file copied to other places of it, 20,000 times.
void ExpectCopiedPiecesAreDetected(const std::string& contents, const ReadContents& read);

}  // namespace penstock
