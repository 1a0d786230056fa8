// SPDX-License-Identifier: Apache-2.0
//
// SplitCsvRecord: one record of RFC 4180 in its fields, as TensorFlow's DecodeCSV reads it.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace penstock {

struct CsvFormat {
  char delimiter = ',';
  bool quotes = true;  // fields may stand in double quotes, and "" in them is one "
};

// An empty record has no fields. InvalidArgument where quotes or line ends stand where none may.
Status SplitCsvRecord(string_view record, const CsvFormat& format,
                      std::vector<std::string>* fields);

}  // namespace penstock
