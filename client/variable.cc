// SPDX-License-Identifier: Apache-2.0
#include "client/variable.h"

#include <utility>

#include "absl/strings/str_join.h"
#include "client/ops/line_scope.h"
#include "client/program.h"
#include "core/op/private_attrs.h"

namespace penstock::client {

Variable::Variable(Program& program, string_view name, const Shape& shape,
                   const Initializer& initializer, const Options& options, SourceLine line)
    : program_(&program),
      dtype_(options.dtype),
      shape_(shape),
      options_(options),
      line_(ProgramLine(line)) {
  const auto unordered = program.ClearControlDependencies();
  AddHandle(name);
  if (!handle_.valid()) return;
  {
    const auto scope = program.NameScope(StrCat(name_, "/Initializer/"));
    const auto source = program.SourceLineScope(line_);
    const auto device_scope = program.ColocateWith(handle_);
    const auto& part = options_.part;
    initializer_ =
        initializer(program, dtype_,
                    part ? InitialShape(shape, part->whole, part->start) : InitialShape(shape));
  }
  initializer_ = Assign({initializer_, line_.file, line_.line});
  Register();
}

Variable::Variable(Program& program, string_view name, Output initial_value, const Options& options,
                   SourceLine line)
    : program_(&program),
      dtype_(initial_value.dtype()),
      shape_(initial_value.shape()),
      options_(options),
      line_(ProgramLine(line)) {
  const auto unordered = program.ClearControlDependencies();
  AddHandle(name);
  if (!handle_.valid()) return;
  initializer_ = Assign({initial_value, line_.file, line_.line});
  Register();
}

void Variable::AddHandle(string_view name) {
  if (program_->context() != nullptr) {
    program_->Fail(InvalidArgument(
        "variable '", program_->name_scope(), name,
        "' is made inside of a branch or a loop, or in a function; make it outside"));
  }
  // If no shared name is given, the runtime uses the node's name.
  Attrs attrs = {{"dtype", dtype_},
                 {"shape", shape_},
                 {"container", options_.container},
                 {"shared_name", options_.shared_name}};
  if (options_.local) attrs[kLocalAttr] = true;
  program_->NoteSourceLine(line_);
  handle_ = CallIn(*program_, options_.ref ? "VariableV2" : "VarHandleOp", {}, attrs, name);
  if (!handle_.valid()) return;
  const Node& node = *program_->NodeOf(handle_);
  name_ = node.name();
  line_ = program_->SourceLineOf(node);  // an enclosing SourceLineScope's line, if there is one
}

void Variable::Register() {
  fetched_ = Read();
  program_->variables_.push_back(*this);
}

std::string Variable::device() const {
  return handle_.valid() ? program_->NodeOf(handle_)->requested_device() : "";
}

std::string Variable::saved_slice() const {
  if (!part()) return "";
  const Shape& whole = part()->whole;
  std::string slice = absl::StrJoin(whole.dims(), " ");
  StrAppend(&slice, " ", part()->start, ",", shape_.dim(0));
  for (int d = 1; d < whole.rank(); ++d) StrAppend(&slice, ":0,", whole.dim(d));
  return slice;
}

Output Variable::Read() const {
  return Beside(ref() ? "Identity" : "ReadVariableOp", {handle_},
                ref() ? Attrs{} : Attrs{{"dtype", dtype_}}, "Read", line_);
}

Output Variable::Assign(const LocatedOutput& value) const {
  // An assignment must not change the variable's shape, even if the value comes from a checkpoint.
  return Beside(ref() ? "Assign" : "AssignVariableOp", {handle_, value.output()},
                {{"validate_shape", true}}, "Assign", value.line());
}

Output Variable::AssignAdd(const LocatedOutput& value) const {
  return Beside(ref() ? "AssignAdd" : "AssignAddVariableOp", {handle_, value.output()}, {},
                "AssignAdd", value.line());
}

Output Variable::AssignSub(const LocatedOutput& value) const {
  return Beside(ref() ? "AssignSub" : "AssignSubVariableOp", {handle_, value.output()}, {},
                "AssignSub", value.line());
}

Output Variable::IsInitialized() const {
  return Beside(ref() ? "IsVariableInitialized" : "VarIsInitializedOp", {handle_}, {},
                "IsInitialized", line_);
}

Output Variable::Beside(string_view op, const std::vector<NodeInput>& inputs, Attrs attrs,
                        string_view name, SourceLine line) const {
  if (!handle_.valid()) return {program_, -1, 0};
  const auto scope = program_->NameScope(StrCat(name_, "/"));
  const auto device_scope = program_->ColocateWith(handle_);
  program_->NoteSourceLine(line);
  return CallIn(*program_, op, inputs, std::move(attrs), name);
}

}  // namespace penstock::client
