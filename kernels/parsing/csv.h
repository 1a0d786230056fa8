// SPDX-License-Identifier: Apache-2.0
//
// Records of RFC 4180 by the rules of TensorFlow's DecodeCSV: SplitCsvRecord splits a record into
// its fields, ParseCsvField reads the value of a field.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

struct CsvFormat {
  char delimiter = ',';
  bool quotes = true;  // fields may be in double quotes, where "" stands for one "
};

// Splits a record. An empty record has no fields. InvalidArgument if a quote or a line end is in a
// wrong place.
Status SplitCsvRecord(string_view record, const CsvFormat& format,
                      std::vector<std::string>* fields);

// Returns the types that columns can have.
DTypes CsvTypes();
// Parses `field` into element `i` of `column`, which has one of CsvTypes(). Returns false if the
// field is not a value of that type.
bool ParseCsvField(const std::string& field, int64_t i, Tensor* column);

}  // namespace penstock
