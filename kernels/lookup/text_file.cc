// SPDX-License-Identifier: Apache-2.0
//
// InitializeTableFromTextFile, with a ref edge and with a resource handle: fills a table with the
// lines of a file.
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/env.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/data/handle_kernel.h"
#include "kernels/lookup/lookup_table.h"

namespace penstock {
namespace {

constexpr int64_t kWholeLine = -2, kLineNumber = -1;  // other values are column numbers

struct Column {
  const char* what;  // "Key" or "Value"
  int64_t index;
  DType type;
};

Status CheckColumn(const Column& column) {
  if (column.index == kLineNumber && column.type != DType::kInt64) {
    return InvalidArgument(column.what, " index for line number requires table ", column.what,
                           " dtype of int64, got ", Name(column.type));
  }
  const bool fits =
      column.type == DType::kString || column.type == DType::kInt32 || column.type == DType::kInt64;
  if (column.index == kWholeLine && !fits) {
    return InvalidArgument(column.what, " index for whole line requires table ", column.what,
                           " dtype of string or integer, got ", Name(column.type));
  }
  return OkStatus();
}

template <class T>
bool ParseNumber(string_view text, T* value) {
  if constexpr (std::is_same_v<T, float>) {
    return absl::SimpleAtof(text, value);
  } else if constexpr (std::is_same_v<T, double>) {
    return absl::SimpleAtod(text, value);
  } else {
    return absl::SimpleAtoi(text, value);
  }
}

// Parses `field` into element `i` of `to`. InvalidArgument, which names the line, if the field does
// not have the type of `to`.
Status SetElement(string_view field, int64_t line, Tensor* to, int64_t i) {
  bool valid = true;
  switch (to->dtype()) {
    case DType::kString:
      to->mutable_data<std::string>()[i] = std::string(field);
      break;
    case DType::kInt64:
      valid = ParseNumber(field, &to->mutable_data<int64_t>()[i]);
      break;
    case DType::kInt32:
      valid = ParseNumber(field, &to->mutable_data<int32_t>()[i]);
      break;
    case DType::kFloat:
      valid = ParseNumber(field, &to->mutable_data<float>()[i]);
      break;
    case DType::kDouble:
      valid = ParseNumber(field, &to->mutable_data<double>()[i]);
      break;
    default:
      return InvalidArgument("Data type ", Name(to->dtype()), " not supported in text files");
  }
  if (valid) return OkStatus();
  return InvalidArgument("Field ", field, " in line ", line, " is not a valid ", Name(to->dtype()),
                         ".");
}

class TextFileKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("key_index", &key_index_));
    RETURN_IF_ERROR(node.Attr("value_index", &value_index_));
    RETURN_IF_ERROR(node.Attr("vocab_size", &vocab_size_));
    RETURN_IF_ERROR(node.Attr("delimiter", &delimiter_));
    RETURN_IF_ERROR(node.Attr("offset", &offset_));
    if (delimiter_.size() == 1) return OkStatus();
    return InvalidArgument("delimiter should be only 1 char, is '", delimiter_, "'");
  }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto table, ResourceInput<LookupTable>(ctx, 0));
    if (ctx.input(1).rank() != 0) {
      return InvalidArgument("filename should be a single string, but got shape ",
                             ctx.input(1).shape().ToString());
    }
    const std::string& path = ctx.input(1).scalar<std::string>();
    if (path.empty()) return InvalidArgument("filename cannot be empty.");
    const Column key = {"Key", key_index_, table->spec().key};
    const Column value = {"Value", value_index_, table->spec().value};
    RETURN_IF_ERROR(CheckColumn(key));
    RETURN_IF_ERROR(CheckColumn(value));
    ASSIGN_OR_RETURN(const std::string text, ctx.step().env->ReadFile(path));
    std::vector<string_view> lines = absl::StrSplit(text, '\n');
    if (lines.back().empty()) lines.pop_back();
    const int64_t found = static_cast<int64_t>(lines.size());
    if (vocab_size_ > found) {
      return InvalidArgument("Invalid vocab_size in ", path, ": expected ", vocab_size_,
                             " but got ", found);
    }
    if (vocab_size_ >= 0) lines.resize(vocab_size_);
    ASSIGN_OR_RETURN(Tensor keys, Read(path, lines, key));
    ASSIGN_OR_RETURN(Tensor values, Read(path, lines, value));
    return table->Initialize(keys, values, ctx.origin());
  }

 private:
  StatusOr<Tensor> Read(const std::string& path, const std::vector<string_view>& lines,
                        const Column& column) const {
    Tensor out(column.type, Shape{static_cast<int64_t>(lines.size())});
    for (int64_t i = 0; i < out.dim(0); ++i) {
      string_view line = lines[i];
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      if (column.index == kLineNumber) {
        out.mutable_data<int64_t>()[i] = i + offset_;
        continue;
      }
      string_view field = line;
      if (column.index != kWholeLine) {
        const std::vector<string_view> fields = absl::StrSplit(line, delimiter_);
        const int64_t count = static_cast<int64_t>(fields.size());
        if (column.index >= count) {
          return InvalidArgument("Invalid number of columns in ", path, " line ", i, " (", line,
                                 ") : expected at least ", column.index + 1, " got ", count);
        }
        field = fields[column.index];
      }
      RETURN_IF_ERROR(SetElement(field, i, &out, i));
    }
    return out;
  }

  int64_t key_index_ = 0, value_index_ = 0, vocab_size_ = -1, offset_ = 0;
  std::string delimiter_;
};

OpDef TextFileOp(HandleForm form) {
  return {
      .doc =
          "Fills a table from the lines of a file. Keys and values each come from a column, "
          "from the complete line (-2), or from the line number plus offset (-1).",
      .inputs = {{"table_handle", HandleType(form)}, {"filename", "string"}},
      .attrs = {{"key_index", Ints{.min = -2}},
                {"value_index", Ints{.min = -2}},
                {"vocab_size", Ints{.min = -1}, -1},
                {"delimiter", "\t"},
                {"offset", 0}},
      .shape = NoOutputs,
      .gradient = NoGradient,
      .stateful = true,
  };
}

}  // namespace

OP(InitializeTableFromTextFile) { return TextFileOp(HandleForm::kRef); }
OP(InitializeTableFromTextFileV2) { return TextFileOp(HandleForm::kResource); }
KERNEL_ANY_TYPE(InitializeTableFromTextFile, TextFileKernel);
KERNEL_ANY_TYPE(InitializeTableFromTextFileV2, TextFileKernel);

}  // namespace penstock
