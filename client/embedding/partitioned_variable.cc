// SPDX-License-Identifier: Apache-2.0
#include "client/embedding/partitioned_variable.h"

#include "client/ops/line_scope.h"
#include "core/op/gradient.h"

namespace penstock::client {

PartitionedVariable::PartitionedVariable(Program& program, string_view name, const Shape& shape,
                                         const Initializer& initializer, const Options& options,
                                         SourceLine line)
    : program_(&program),
      shape_(shape),
      dtype_(options.variable.dtype),
      strategy_(options.strategy),
      line_(line) {
  const auto scope = program.NameScope(name);
  name_ = program.name_scope();
  if (!name_.empty()) name_.pop_back();  // removes the '/'
  const int64_t rows = shape.rank() == 0 ? 0 : shape.dim(0);
  if (options.parts < 1 || options.parts > rows) {
    const CallerLine source(program, line);
    program.Fail(InvalidArgument("variable '", name_, "' of shape ", shape.ToString(),
                                 " cannot have ", options.parts,
                                 " parts: expected 1 or more, and at most one for each row"));
    return;
  }
  int64_t start = 0;
  for (int i = 0; i < options.parts; ++i) {
    Shape own = shape;
    own.set_dim(0, rows / options.parts + (i < rows % options.parts ? 1 : 0));
    VariableOptions part = options.variable;
    part.part = {.whole_name = name_,
                 .whole = shape,
                 .start = start,
                 .interleaved = strategy_ == PartitionStrategy::kMod && options.parts > 1};
    if (!part.shared_name.empty()) StrAppend(&part.shared_name, "/part_", i);
    parts_.emplace_back(program, StrCat("part_", i), own, initializer, part, line);
    starts_.push_back(start);
    start += own.dim(0);
  }
  line_ = parts_[0].source_line();  // an enclosing SourceLineScope's line, if there is one
}

PartitionedVariable::PartitionedVariable(const Variable& whole)
    : program_(&whole.program()),
      name_(whole.name()),
      shape_(whole.shape()),
      dtype_(whole.dtype()),
      parts_{whole},
      starts_{0},
      line_(whole.source_line()) {}

Output PartitionedVariable::Read() const {
  if (parts_.empty()) return {program_, -1, 0};
  if (parts_.size() == 1) return parts_[0].Read();
  const CallerLine source(*program_, line_);
  const auto scope = program_->NameScope(StrCat(name_, "/"));
  return ConcatV2({parts_.begin(), parts_.end()}, Constant(*program_, Tensor::Scalar<int32_t>(0)));
}

Output PartitionedVariable::initializer() const {
  const CallerLine source(*program_, line_);
  const auto scope = program_->NameScope(StrCat(name_, "/"));
  return program_->Initialize(parts_);
}

}  // namespace penstock::client
