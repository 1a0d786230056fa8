// SPDX-License-Identifier: Apache-2.0
//
// DecodeCSV: parses CSV records into columns. DecodeJSONExample: converts Examples from JSON to
// serialized ones.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/elements.h"
#include "kernels/parsing/csv.h"
#include "kernels/parsing/example.h"

namespace penstock {
namespace {

class DecodeCsvKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    std::string delimiter;
    RETURN_IF_ERROR(node.Attr("field_delim", &delimiter));
    RETURN_IF_ERROR(node.Attr("use_quote_delim", &format_.quotes));
    RETURN_IF_ERROR(node.Attr("na_value", &na_value_));
    RETURN_IF_ERROR(node.Attr("select_cols", &selected_));
    if (delimiter.size() != 1) return InvalidArgument("field_delim should be only 1 char");
    format_.delimiter = delimiter[0];
    for (size_t i = 0; i < selected_.size(); ++i) {
      if (selected_[i] < 0 || (i > 0 && selected_[i] <= selected_[i - 1])) {
        return InvalidArgument("select_cols should be strictly increasing indices");
      }
    }
    if (!selected_.empty() && selected_.size() != node.output_types.size()) {
      return InvalidArgument("select_cols has ", selected_.size(), " entries for ",
                             node.output_types.size(), " columns");
    }
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    for (int c = 0; c < ctx.num_outputs(); ++c) {
      const int64_t defaults = ctx.input(1 + c).num_elements();
      if (defaults > 1 || ctx.input(1 + c).rank() > 1) {
        return InvalidArgument("There should only be 1 default per field but field ", c, " has ",
                               defaults);
      }
    }
    const auto records = ctx.input(0).flat<std::string>();
    std::vector<Tensor*> columns(ctx.num_outputs());
    for (int c = 0; c < ctx.num_outputs(); ++c) {
      RETURN_IF_ERROR(ctx.Allocate(c, ctx.input(0).shape(), &columns[c]));
    }
    std::vector<std::string> fields;
    for (size_t r = 0; r < records.size(); ++r) {
      RETURN_IF_ERROR(SplitCsvRecord(records[r], format_, &fields));
      RETURN_IF_ERROR(Select(ctx.num_outputs(), r, &fields));
      for (int c = 0; c < ctx.num_outputs(); ++c) {
        RETURN_IF_ERROR(Fill(fields[c], ctx.input(1 + c), static_cast<int64_t>(r), c, columns[c]));
      }
    }
    return OkStatus();
  }

 private:
  // Keeps the fields of the selected columns. InvalidArgument unless `count` fields remain.
  Status Select(int count, size_t record, std::vector<std::string>* fields) const {
    if (!selected_.empty()) {
      size_t kept = 0;
      for (const int64_t column : selected_) {
        if (column >= static_cast<int64_t>(fields->size())) break;
        if (column != static_cast<int64_t>(kept)) (*fields)[kept] = std::move((*fields)[column]);
        ++kept;
      }
      fields->resize(kept);
    }
    if (fields->size() == static_cast<size_t>(count)) return OkStatus();
    return InvalidArgument("Expect ", count, " fields but have ", fields->size(), " in record ",
                           record);
  }

  Status Fill(const std::string& field, const Tensor& default_value, int64_t record, int index,
              Tensor* column) const {
    if (field.empty() || field == na_value_) {
      if (default_value.num_elements() == 0) {
        return InvalidArgument("Field ", index, " is required but missing in record ", record, "!");
      }
      CopyElements(column->dtype(), default_value.raw_data(),
                   ElementAt(column->mutable_raw_data(), column->dtype(), record), 1);
      return OkStatus();
    }
    if (ParseCsvField(field, record, column)) return OkStatus();
    return InvalidArgument("Field ", index, " in record ", record, " is not a valid ",
                           Name(column->dtype()), ": ", field);
  }

  CsvFormat format_;
  std::string na_value_;
  std::vector<int64_t> selected_;  // empty if all columns are selected
};

class DecodeJsonExampleKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const auto json = ctx.input(0).flat<std::string>();
    Tensor* examples;
    RETURN_IF_ERROR(ctx.Allocate(0, ctx.input(0).shape(), &examples));
    for (size_t i = 0; i < json.size(); ++i) {
      auto bytes = ExampleRecord::BytesOfJson(json[i]);
      if (!bytes.ok()) {
        return InvalidArgument("Error while parsing JSON Example ", i, ": ",
                               bytes.status().message());
      }
      examples->mutable_data<std::string>()[i] = *std::move(bytes);
    }
    return OkStatus();
  }
};

OP(DecodeCSV) {
  return {
      .doc =
          "Parses CSV records (RFC 4180) into one tensor for each column. A field may be "
          "empty only if its column has a default.",
      .inputs = {{"records", "string"}, {"record_defaults", List("OUT_TYPE")}},
      .outputs = {{"output", List("OUT_TYPE")}},
      .attrs = {{"OUT_TYPE", TypeList{.min_length = 1, .allowed = CsvTypes()}},
                {"field_delim", ","},
                {"use_quote_delim", true},
                {"na_value", ""},
                {"select_cols", IntList{}, EmptyList()}},
      .shape = SameShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{0}}}, {{{1}}}}}},
  };
}
KERNEL_ANY_TYPE(DecodeCSV, DecodeCsvKernel);

OP(DecodeJSONExample) {
  return {
      .doc = "Converts Examples from protobuf's JSON format to serialized Examples.",
      .inputs = {{"json_examples", "string"}},
      .outputs = {{"binary_examples", "string"}},
      .shape = SameShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{0}}}}}},
  };
}
KERNEL_ANY_TYPE(DecodeJSONExample, DecodeJsonExampleKernel);

}  // namespace
}  // namespace penstock
