// SPDX-License-Identifier: Apache-2.0
//
// CSVDataset, CSVDatasetV2: the records of CSV files, one component for each column.
#include "kernels/parsing/csv.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "core/record/input_stream.h"
#include "kernels/dataset/batching.h"
#include "kernels/dataset/file_dataset.h"

namespace penstock {
namespace {

// Returns whether `line` ends inside of a quoted field. `quoted` says whether it begins there.
bool EndsInQuotes(string_view line, char delimiter, bool quoted) {
  char previous = delimiter;
  bool closed = false;  // `previous` has ended a quoted field; another quote continues it
  for (const char c : line) {
    const bool begins = !quoted && c == '"' && (previous == delimiter || closed);
    closed = quoted && c == '"';
    quoted = begins || (quoted && !closed);
    previous = c;
  }
  return quoted;
}

class CsvRecords final : public FilePieces {
 public:
  CsvRecords(std::unique_ptr<InputStream> stream, CsvFormat format)
      : stream_(std::move(stream)), format_(format) {}
  int64_t offset() const override { return stream_->offset(); }

  // Reads a record: one line, or several if a quoted field has line ends. InvalidArgument if the
  // file ends within a quoted field, ResourceExhausted if the record is too long.
  StatusOr<bool> Read(std::string* record) override {
    record->clear();
    bool quoted = false;
    do {
      const int64_t before = stream_->offset();
      std::string line;
      ASSIGN_OR_RETURN(const bool found, stream_->ReadLine(&line));
      if (!found && quoted) {
        return InvalidArgument("Reached end of file without closing quoted field in record: ",
                               stream_->path());
      }
      if (!found) return false;
      const auto size = static_cast<int64_t>(line.size());
      const int64_t line_end = stream_->offset() - before - size;  // in bytes
      if (static_cast<int64_t>(record->size()) + size > InputStream::kMaxRecordBytes) {
        return ResourceExhausted("a record of ", stream_->path(), " has more than ",
                                 InputStream::kMaxRecordBytes, " bytes");
      }
      quoted = format_.quotes && EndsInQuotes(line, format_.delimiter, quoted);
      *record += line;
      if (quoted) *record += line_end == 2 ? "\r\n" : "\n";
    } while (quoted);
    return true;
  }

 private:
  const std::unique_ptr<InputStream> stream_;
  const CsvFormat format_;
};

// Maps the fields of a record to the components of an element.
struct CsvColumns {
  CsvFormat format;
  std::string na_value;
  std::vector<int64_t> selected;  // ascending; empty: all but `excluded`
  std::vector<int64_t> excluded;  // ascending
  std::vector<Tensor> defaults;   // one per output; without elements: the column is required

  bool IsSelected(int64_t field) const {
    if (!selected.empty()) return std::binary_search(selected.begin(), selected.end(), field);
    return !std::binary_search(excluded.begin(), excluded.end(), field);
  }
};

class CsvDataset final : public Dataset {
 public:
  CsvDataset(ElementSpec spec, DatasetPtr records, CsvColumns columns)
      : Dataset(std::move(spec), {std::move(records)}), columns_(std::move(columns)) {}
  const char* Name() const override { return "CSV"; }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    return NewIteratorOf<Iterator>(this, ctx);
  }

 private:
  class Iterator final : public IteratorOf<CsvDataset> {
   public:
    using IteratorOf::IteratorOf;
    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      Element record;
      RETURN_IF_ERROR(input_->GetNext(ctx, &record, end));
      return *end ? OkStatus() : dataset().Parse(record[0].scalar<std::string>(), element);
    }
  };

  Status Parse(const std::string& record, Element* element) const {
    std::vector<std::string> fields;
    RETURN_IF_ERROR(SplitCsvRecord(record, columns_.format, &fields));
    if (fields.empty()) fields.emplace_back();  // an empty line is an empty field
    element->clear();
    const size_t count = spec().types.size();
    size_t taken = 0;
    for (size_t i = 0; i < fields.size(); ++i) {
      if (!columns_.IsSelected(static_cast<int64_t>(i))) continue;
      if (++taken > count) continue;
      Tensor value(spec().types[taken - 1], Shape());
      RETURN_IF_ERROR(Fill(fields[i], taken - 1, &value));
      element->push_back(std::move(value));
    }
    if (taken == count) return OkStatus();
    if (taken > count) return InvalidArgument("Expect ", count, " fields but have more in record");
    return InvalidArgument("Expect ", count, " fields but have ", taken, " in record");
  }

  Status Fill(const std::string& field, size_t output, Tensor* value) const {
    if (field.empty() || field == columns_.na_value) {
      const Tensor& given = columns_.defaults[output];
      if (given.num_elements() == 0) {
        return InvalidArgument("Field ", output, " is required but missing in record!");
      }
      *value = given.Reshaped(Shape());
      return OkStatus();
    }
    if (ParseCsvField(field, 0, value)) return OkStatus();
    return InvalidArgument("Field ", output, " in record is not a valid ",
                           ::penstock::Name(value->dtype()), ": ", field);
  }

  const CsvColumns columns_;
};

StatusOr<std::vector<int64_t>> ColumnsInput(const KernelContext& ctx, int i, const char* name) {
  const Tensor& input = ctx.input(i);
  if (input.rank() != 1) {
    return InvalidArgument(name, " must be a vector, has shape ", input.shape().ToString());
  }
  const auto columns = input.flat<int64_t>();
  for (size_t c = 0; c < columns.size(); ++c) {
    if (columns[c] < 0 || (c > 0 && columns[c] <= columns[c - 1])) {
      return InvalidArgument(name, " should be strictly increasing indices, is ", input.ToString());
    }
  }
  return std::vector<int64_t>(columns.begin(), columns.end());
}

class CsvKernel final : public DatasetKernel {
  static constexpr int kFirstDefault = 8;

  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(std::vector<std::string> files, FilesInput(ctx, 0));
    ASSIGN_OR_RETURN(const Compression compression, CompressionInput(ctx, 1));
    RETURN_IF_ERROR(CheckBufferSize(ctx, 2));
    ASSIGN_OR_RETURN(const bool header, ScalarInput<bool>(ctx, 3, "header"));
    ASSIGN_OR_RETURN(CsvColumns columns, Columns(ctx));
    const CsvFormat format = columns.format;
    DatasetPtr records = NewFileDataset(
        "CSV", std::move(files), {},
        [compression, header, format](Env& env, const std::string& path,
                                      int64_t offset) -> StatusOr<std::unique_ptr<FilePieces>> {
          ASSIGN_OR_RETURN(auto stream, InputStream::Open(env, path, compression));
          RETURN_IF_ERROR(stream->Skip(offset));
          std::string line;
          if (header && offset == 0) RETURN_IF_ERROR(stream->ReadLine(&line).status());
          return std::make_unique<CsvRecords>(std::move(stream), format);
        });
    return std::make_shared<CsvDataset>(spec(), std::move(records), std::move(columns));
  }

  StatusOr<CsvColumns> Columns(const KernelContext& ctx) const {
    CsvColumns columns;
    ASSIGN_OR_RETURN(const std::string delimiter, ScalarInput<std::string>(ctx, 4, "field_delim"));
    if (delimiter.size() != 1) return InvalidArgument("field_delim should be only 1 char");
    columns.format.delimiter = delimiter[0];
    ASSIGN_OR_RETURN(columns.format.quotes, ScalarInput<bool>(ctx, 5, "use_quote_delim"));
    ASSIGN_OR_RETURN(columns.na_value, ScalarInput<std::string>(ctx, 6, "na_value"));
    ASSIGN_OR_RETURN(columns.selected, ColumnsInput(ctx, 7, "select_cols"));
    const size_t count = spec().types.size();
    if (!columns.selected.empty() && columns.selected.size() != count) {
      return InvalidArgument("select_cols should match output size: it has ",
                             columns.selected.size(), " entries for ", count, " columns");
    }
    for (size_t i = 0; i < count; ++i) {
      const Tensor& given = ctx.input(kFirstDefault + static_cast<int>(i));
      if (given.rank() > 1 || given.num_elements() > 1) {
        return InvalidArgument("There should only be 1 default per field but field ", i, " has ",
                               given.num_elements());
      }
      columns.defaults.push_back(given);
    }
    const int after = kFirstDefault + static_cast<int>(count);
    if (after == ctx.num_inputs()) return columns;
    ASSIGN_OR_RETURN(columns.excluded, ColumnsInput(ctx, after, "exclude_cols"));
    if (columns.selected.empty() || columns.excluded.empty()) return columns;
    return InvalidArgument("Either select_cols or exclude_cols should be empty");
  }
};

OpDef CsvOp(bool excludes) {
  DatasetOp op{.doc =
                   "The records of CSV files (RFC 4180), one scalar component for each column. A "
                   "field may be empty, or na_value, only if its column has a default.",
               .inputs = {{"filenames", "string"},
                          {"compression_type", "string"},
                          {"buffer_size", "int64"},
                          {"header", "bool"},
                          {"field_delim", "string"},
                          {"use_quote_delim", "bool"},
                          {"na_value", "string"},
                          {"select_cols", "int64"},
                          {"record_defaults", List("output_types")}},
               .attrs = {{"output_types", TypeList{.min_length = 1, .allowed = CsvTypes()}},
                         {"output_shapes", ShapeList{}}},
               .spec = false,
               .metadata = false,
               .stateful = true,
               .acts_outside = true};
  if (excludes) op.inputs.push_back({"exclude_cols", "int64"});
  return op;
}
OP(CSVDataset) { return CsvOp(false); }
OP(CSVDatasetV2) { return CsvOp(true); }
OP(ExperimentalCSVDataset) { return CsvOp(false); }
KERNEL_ANY_TYPE(CSVDataset, CsvKernel);
KERNEL_ANY_TYPE(CSVDatasetV2, CsvKernel);
KERNEL_ANY_TYPE(ExperimentalCSVDataset, CsvKernel);

}  // namespace
}  // namespace penstock
