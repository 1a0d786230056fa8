// SPDX-License-Identifier: Apache-2.0
//
// SplitCsvRecord: splits one record of RFC 4180 into its fields, by the rules of TensorFlow's
// DecodeCSV.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace penstock {

struct CsvFormat {
  char delimiter = ',';
  bool quotes = true;  // fields may be in double quotes, where "" stands for one "
};

// An empty record has no fields. InvalidArgument if a quote or a line end is in a wrong place.
Status SplitCsvRecord(string_view record, const CsvFormat& format,
                      std::vector<std::string>* fields);

}  // namespace penstock
