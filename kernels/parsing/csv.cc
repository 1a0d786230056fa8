// SPDX-License-Identifier: Apache-2.0
#include "kernels/parsing/csv.h"

#include "absl/strings/numbers.h"

namespace penstock {
namespace {

// Reads the quoted field that begins at record[*at]; sets *at to the position after the closing
// quote. InvalidArgument if a quote is in a wrong place or missing.
Status TakeQuoted(string_view record, char delimiter, size_t* at, std::string* field) {
  for (++*at; *at < record.size(); ++*at) {
    if (record[*at] != '"') {
      *field += record[*at];
      continue;
    }
    const size_t next = *at + 1;
    if (next == record.size() || record[next] == delimiter) {
      *at = next;
      return OkStatus();
    }
    if (record[next] != '"') {
      return InvalidArgument("Quote inside a string has to be escaped by another quote");
    }
    *field += '"';
    *at = next;
  }
  return InvalidArgument("Quoted field has to end with quote followed by delim or end");
}

}  // namespace

Status SplitCsvRecord(string_view record, const CsvFormat& format,
                      std::vector<std::string>* fields) {
  fields->clear();
  if (record.empty()) return OkStatus();
  size_t at = 0;
  while (true) {
    std::string field;
    if (format.quotes && at < record.size() && record[at] == '"') {
      RETURN_IF_ERROR(TakeQuoted(record, format.delimiter, &at, &field));
    } else {
      const size_t end = std::min(record.find(format.delimiter, at), record.size());
      field.assign(record.data() + at, end - at);
      if (field.find_first_of(format.quotes ? "\"\n\r" : "\n\r") != std::string::npos) {
        return InvalidArgument("Unquoted fields cannot have quotes/CRLFs inside");
      }
      at = end;
    }
    fields->push_back(std::move(field));
    if (at == record.size()) return OkStatus();
    ++at;  // the delimiter
  }
}

DTypes CsvTypes() {
  return {DType::kFloat, DType::kDouble, DType::kInt32, DType::kInt64, DType::kString};
}

bool ParseCsvField(const std::string& field, int64_t i, Tensor* column) {
  switch (column->dtype()) {
    case DType::kInt32:
      return absl::SimpleAtoi(field, &column->mutable_data<int32_t>()[i]);
    case DType::kInt64:
      return absl::SimpleAtoi(field, &column->mutable_data<int64_t>()[i]);
    case DType::kFloat:
      return absl::SimpleAtof(field, &column->mutable_data<float>()[i]);
    case DType::kDouble:
      return absl::SimpleAtod(field, &column->mutable_data<double>()[i]);
    default:
      column->mutable_data<std::string>()[i] = field;
      return true;
  }
}

}  // namespace penstock
