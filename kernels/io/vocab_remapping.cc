// SPDX-License-Identifier: Apache-2.0
//
// GenerateVocabRemapping and LoadAndRemapMatrix: for warm starts. They load a matrix whose rows or
// columns belong to the words of an old vocabulary, and rearrange it for a new vocabulary.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_split.h"
#include "core/base/env.h"
#include "core/checkpoint/checkpoint_reader.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/io/file_kernel.h"

namespace penstock {
namespace {

// The value in a remapping for a row (or column) that the old matrix does not have.
constexpr int64_t kAbsent = -1;

// Returns the lines of a text. Borrows the text.
std::vector<string_view> LinesOf(const std::string& text) {
  std::vector<string_view> lines = absl::StrSplit(text, '\n');
  if (lines.back().empty()) lines.pop_back();
  for (string_view& line : lines) {
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  }
  return lines;
}

class VocabRemappingKernel final : public FileKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("new_vocab_offset", &offset_));
    RETURN_IF_ERROR(node.Attr("num_new_vocab", &count_));
    return node.Attr("old_vocab_size", &old_size_);
  }

 protected:
  Status Run(KernelContext& ctx) const override {
    ASSIGN_OR_RETURN(const std::string new_path, StringInput(ctx, 0, "new_vocab_file"));
    ASSIGN_OR_RETURN(const std::string old_path, StringInput(ctx, 1, "old_vocab_file"));
    ASSIGN_OR_RETURN(const std::string old_text, ctx.step().env->ReadFile(old_path));
    ASSIGN_OR_RETURN(const auto old_words, OldWords(old_path, old_text));
    ASSIGN_OR_RETURN(const std::string new_text, ctx.step().env->ReadFile(new_path));
    const std::vector<string_view> new_words = LinesOf(new_text);
    const int64_t found = static_cast<int64_t>(new_words.size());
    if (offset_ > found || count_ > found - offset_) {
      return InvalidArgument("new_vocab_offset ", offset_, " and num_new_vocab ", count_,
                             " go beyond the ", found, " lines of ", new_path);
    }
    Tensor *remapping, *present;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape({count_}), &remapping));
    RETURN_IF_ERROR(ctx.Allocate(1, Shape(), &present));
    int32_t num_present = 0;
    for (int64_t i = 0; i < count_; ++i) {
      const auto old = old_words.find(new_words[offset_ + i]);
      const bool known = old != old_words.end();
      remapping->mutable_data<int64_t>()[i] = known ? old->second : kAbsent;
      num_present += known ? 1 : 0;
    }
    *present->mutable_data<int32_t>() = num_present;
    return OkStatus();
  }

 private:
  using Words = absl::flat_hash_map<string_view, int64_t>;

  // Returns the first old_vocab_size words of `text` (all, if that is negative), each with its line
  // number, counted from 0. InvalidArgument if there are fewer, or if a word occurs twice.
  StatusOr<Words> OldWords(const std::string& path, const std::string& text) const {
    std::vector<string_view> lines = LinesOf(text);
    if (old_size_ > static_cast<int64_t>(lines.size())) {
      return InvalidArgument("old_vocab_size is ", old_size_, ", but ", path, " has ", lines.size(),
                             " lines");
    }
    if (old_size_ >= 0) lines.resize(old_size_);
    Words words;
    for (size_t i = 0; i < lines.size(); ++i) {
      const auto [first, added] = words.try_emplace(lines[i], static_cast<int64_t>(i));
      if (added) continue;
      return InvalidArgument(path, " has the word '", lines[i], "' in lines ", first->second,
                             " and ", i, "; a vocabulary has every word once");
    }
    return words;
  }

  int64_t offset_ = 0, count_ = 0, old_size_ = -1;
};

// The old row (or column) for each row (or column) of the new matrix.
class Remapping {
 public:
  // Makes a remapping from `ids`. InvalidArgument unless there are `count` ids; Unimplemented if an
  // old row (or column) occurs twice.
  static StatusOr<Remapping> Make(const Tensor& ids, const char* name, int64_t count) {
    Remapping remapping;
    remapping.name_ = name;
    if (ids.rank() != 1 || ids.dim(0) != count) {
      return InvalidArgument(name, " must be a vector of ", count, " numbers, has shape ",
                             ids.shape().ToString());
    }
    absl::flat_hash_set<int64_t> seen;
    for (const int64_t id : ids.flat<int64_t>()) {
      remapping.old_.push_back(id < 0 ? kAbsent : id);
      if (id >= 0 && !seen.insert(id).second) {
        return Unimplemented(name, " has ", id, " twice; expected every old ",
                             name[0] == 'r' ? "row" : "column", " once at most");
      }
    }
    return remapping;
  }
  static Remapping Identity(int64_t count) {
    Remapping remapping;
    remapping.name_ = "num_cols";
    for (int64_t i = 0; i < count; ++i) remapping.old_.push_back(i);
    return remapping;
  }

  int64_t size() const { return static_cast<int64_t>(old_.size()); }
  int64_t operator[](int64_t i) const { return old_[i]; }
  Status CheckWithin(int64_t bound) const {
    for (size_t i = 0; i < old_.size(); ++i) {
      if (old_[i] < bound) continue;
      return InvalidArgument(name_, "[", i, "] is ", old_[i], ", but the old matrix has ", bound);
    }
    return OkStatus();
  }

 private:
  const char* name_ = "";
  std::vector<int64_t> old_;
};

class LoadAndRemapMatrixKernel final : public FileKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("num_rows", &num_rows_));
    RETURN_IF_ERROR(node.Attr("num_cols", &num_cols_));
    return node.Attr("max_rows_in_memory", &max_rows_);
  }

 protected:
  Status Run(KernelContext& ctx) const override {
    const Tensor &path = ctx.input(0), &initial = ctx.input(4);
    if (path.num_elements() != 1) {
      return InvalidArgument("ckpt_path must be one string, has shape ", path.shape().ToString());
    }
    ASSIGN_OR_RETURN(const std::string name, StringInput(ctx, 1, "old_tensor_name"));
    ASSIGN_OR_RETURN(const Remapping rows,
                     Remapping::Make(ctx.input(2), "row_remapping", num_rows_));
    Remapping columns = Remapping::Identity(0);
    if (ctx.input(3).num_elements() > 0) {
      ASSIGN_OR_RETURN(columns, Remapping::Make(ctx.input(3), "col_remapping", num_cols_));
    }
    ASSIGN_OR_RETURN(const auto reader,
                     OpenCheckpoint(*ctx.step().env, path.scalar<std::string>()));
    ASSIGN_OR_RETURN(const SavedTensor saved, reader->Describe(name));
    if (saved.dtype != DType::kFloat || saved.shape.rank() != 2) {
      return InvalidArgument("tensor '", name, "' must be a float matrix, is ", Name(saved.dtype),
                             saved.shape.ToString());
    }
    if (columns.size() == 0) {
      if (saved.shape.dim(1) != num_cols_) {
        return InvalidArgument("tensor '", name, "' has ", saved.shape.dim(1), " columns, not ",
                               num_cols_, " as num_cols says; there is no col_remapping");
      }
      columns = Remapping::Identity(num_cols_);
    }
    RETURN_IF_ERROR(rows.CheckWithin(saved.shape.dim(0)));
    RETURN_IF_ERROR(columns.CheckWithin(saved.shape.dim(1)));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(Dims{num_rows_, num_cols_}));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    RETURN_IF_ERROR(CopyOldRows(ctx, *reader, name, rows, columns, output));
    return FillIn(initial, rows, columns, output);
  }

 private:
  // Reads the old rows that the new matrix needs, at most max_rows_in_memory at a time, in the
  // order of the file.
  Status CopyOldRows(KernelContext& ctx, const CheckpointReader& reader, const std::string& name,
                     const Remapping& rows, const Remapping& columns, Tensor* output) const {
    std::vector<std::pair<int64_t, int64_t>> wanted;  // old row, new row
    for (int64_t i = 0; i < rows.size(); ++i) {
      if (rows[i] != kAbsent) wanted.emplace_back(rows[i], i);
    }
    std::sort(wanted.begin(), wanted.end());
    for (size_t next = 0; next < wanted.size();) {
      RETURN_IF_ERROR(CheckNotCancelled(ctx));
      const int64_t first = wanted[next].first, last = wanted.back().first;
      const int64_t count =
          max_rows_ > 0 ? std::min(max_rows_, last - first + 1) : last - first + 1;
      const TensorSlice slice = {{{first, count}, {0, TensorSlice::kWhole}}};
      ASSIGN_OR_RETURN(const Tensor block, reader.ReadSlice(name, slice, ctx.allocator()));
      for (; next < wanted.size() && wanted[next].first < first + count; ++next) {
        const float* from = block.data<float>() + (wanted[next].first - first) * block.dim(1);
        float* to = output->mutable_data<float>() + wanted[next].second * columns.size();
        for (int64_t c = 0; c < columns.size(); ++c) {
          if (columns[c] != kAbsent) to[c] = from[columns[c]];
        }
      }
    }
    return OkStatus();
  }

  // Writes the initializing values, in order, to the elements that have no old row or column.
  // InvalidArgument if there are more or fewer values than such elements.
  static Status FillIn(const Tensor& initial, const Remapping& rows, const Remapping& columns,
                       Tensor* output) {
    int64_t missing = 0;
    const auto visit = [&](auto&& put) {
      for (int64_t r = 0; r < rows.size(); ++r) {
        for (int64_t c = 0; c < columns.size(); ++c) {
          if (rows[r] == kAbsent || columns[c] == kAbsent) put(r * columns.size() + c);
        }
      }
    };
    visit([&](int64_t) { ++missing; });
    if (missing != initial.num_elements()) {
      return InvalidArgument("initializing_values must have ", missing,
                             " numbers, one for each element without an old row or column; has ",
                             initial.num_elements());
    }
    const float* next = initial.data<float>();
    visit([&](int64_t at) { output->mutable_data<float>()[at] = *next++; });
    return OkStatus();
  }

  int64_t num_rows_ = 0, num_cols_ = 0, max_rows_ = -1;
};

Status RemappingShape(ShapeScope& s) {
  for (int i = 0; i < 2; ++i) RETURN_IF_ERROR(s.WithRank(i, 0).status());
  s.set_output(0, PartialShape({s.attr<int64_t>("num_new_vocab")}));
  s.set_output(1, PartialShape::Scalar());
  return OkStatus();
}

Status MatrixShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(1, 0).status());
  // initializing_values may have any shape, because TensorFlow's warm start passes a matrix.
  for (const int i : {2, 3}) RETURN_IF_ERROR(s.WithRank(i, 1).status());
  s.set_output(0, PartialShape({s.attr<int64_t>("num_rows"), s.attr<int64_t>("num_cols")}));
  return OkStatus();
}

}  // namespace

OP(GenerateVocabRemapping) {
  return {
      .doc =
          "Returns, for the words [new_vocab_offset, new_vocab_offset + num_new_vocab) of a "
          "vocabulary file with one word per line, the line of each word in the old "
          "vocabulary file, or -1; and the number of words found. Only the first "
          "old_vocab_size lines of the old file are used (-1: all).",
      .inputs = {{"new_vocab_file", "string"}, {"old_vocab_file", "string"}},
      .outputs = {{"remapping", "int64"}, {"num_present", "int32"}},
      .attrs = {{"new_vocab_offset", Ints{.min = 0}},
                {"num_new_vocab", Ints{.min = 0}},
                {"old_vocab_size", Ints{.min = -1}, -1}},
      .shape = RemappingShape,
      .gradient = NoGradient,
      .stateful = true,
      .acts_outside = true,
      .untestable_alone = "reads files: kernels/io has its tests",
  };
}
KERNEL_ANY_TYPE(GenerateVocabRemapping, VocabRemappingKernel);

OP(LoadAndRemapMatrix) {
  return {
      .doc =
          "Loads a matrix from a checkpoint. Row i is the old row row_remapping[i], and "
          "column j the old column col_remapping[j] (column j if col_remapping is empty). "
          "Where either is negative, the next element of initializing_values is used. Reads "
          "at most max_rows_in_memory rows at a time (-1: all at once).",
      .inputs = {{"ckpt_path", "string"},
                 {"old_tensor_name", "string"},
                 {"row_remapping", "int64"},
                 {"col_remapping", "int64"},
                 {"initializing_values", "float"}},
      .outputs = {{"output_matrix", "float"}},
      .attrs = {{"num_rows", Ints{.min = 0}},
                {"num_cols", Ints{.min = 1}},
                {"max_rows_in_memory", -1}},
      .shape = MatrixShape,
      .gradient = NoGradient,
      .stateful = true,
      .acts_outside = true,
      .untestable_alone = "reads files: kernels/io has its tests",
  };
}
KERNEL_ANY_TYPE(LoadAndRemapMatrix, LoadAndRemapMatrixKernel);

}  // namespace penstock
