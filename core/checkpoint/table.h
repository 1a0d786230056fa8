// SPDX-License-Identifier: Apache-2.0
//
// Tables of sorted keys and values in LevelDB's format, which a bundle's index is (FORMAT.md).
// LevelDB's own builder writes them. The reader is ours, because LevelDB's allocates whatever a
// hostile file asks for: this one checks every offset, length and checksum before it follows it,
// and needs memory in proportion to the file.
#pragma once

#include <map>
#include <string>

#include "absl/functional/function_ref.h"
#include "core/base/status.h"

namespace penstock {

// Calls visit(key, value) in ascending order of keys. DataLoss says what is wrong and where;
// nothing is visited of a block before its checksum has been verified. The views end with the call.
Status VisitTable(string_view file, absl::FunctionRef<Status(string_view, string_view)> visit);

// The file that holds `entries`.
StatusOr<std::string> BuildTable(const std::map<std::string, std::string>& entries);

}  // namespace penstock
