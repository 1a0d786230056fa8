// SPDX-License-Identifier: Apache-2.0
//
// Damages files in many ways, for tests, and expects an error each time.
#pragma once

#include <functional>
#include <string>

#include "core/base/status.h"

namespace penstock {

// Reads a file with these contents.
using ReadContents = std::function<Status(const std::string& contents)>;

void ExpectFlippedBitsAreDetected(const std::string& contents, const ReadContents& read);
void ExpectTruncationsAreDetected(const std::string& contents, const ReadContents& read);
// Copies pieces of the file to other places in it, 20,000 times; expects `read` to fail.
void ExpectCopiedPiecesAreDetected(const std::string& contents, const ReadContents& read);

}  // namespace penstock
