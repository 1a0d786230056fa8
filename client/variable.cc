// SPDX-License-Identifier: Apache-2.0
#include "client/variable.h"

#include <utility>

#include "client/program.h"

namespace penstock::client {

Variable::Variable(Program& program, string_view name, const Shape& shape,
                   const Initializer& initializer, const Options& options)
    : program_(&program), dtype_(options.dtype), shape_(shape), options_(options) {
  const auto unordered = program.ClearControlDependencies();
  AddHandle(name);
  if (!handle_.valid()) return;
  {
    const auto scope = program.NameScope(StrCat(name_, "/Initializer/"));
    const auto here = program.ColocateWith(handle_);
    initializer_ = initializer(program, dtype_, shape);
  }
  initializer_ = Assign(initializer_);
  program.variables_.push_back(*this);
}

Variable::Variable(Program& program, string_view name, Output initial_value, const Options& options)
    : program_(&program),
      dtype_(initial_value.dtype()),
      shape_(initial_value.shape()),
      options_(options) {
  const auto unordered = program.ClearControlDependencies();
  AddHandle(name);
  if (!handle_.valid()) return;
  initializer_ = Assign(initial_value);
  program.variables_.push_back(*this);
}

void Variable::AddHandle(string_view name) {
  Attrs attrs = {{"dtype", dtype_}, {"shape", shape_}, {"container", options_.container}};
  // The name is known once the node exists, but has to be among its attributes. Where the program
  // gives none, the runtime takes the node's name.
  attrs["shared_name"] = options_.shared_name;
  const char* const op = options_.ref ? "VariableV2" : "VarHandleOp";
  handle_ = {program_, program_->AddNode(op, {}, std::move(attrs), name), 0};
  if (handle_.valid()) name_ = program_->NodeOf(handle_)->name();
}

std::string Variable::device() const {
  return handle_.valid() ? program_->NodeOf(handle_)->requested_device() : "";
}

Output Variable::Read() const {
  if (!handle_.valid()) return {program_, -1, 0};
  const auto scope = program_->NameScope(StrCat(name_, "/"));
  const auto here = program_->ColocateWith(handle_);
  return {program_,
          options_.ref
              ? program_->AddNode("Identity", {handle_}, {}, "read")
              : program_->AddNode("ReadVariableOp", {handle_}, {{"dtype", dtype_}}, "Read"),
          0};
}

Output Variable::Update(string_view verb, Output value) const {
  if (!handle_.valid()) return {program_, -1, 0};
  const auto scope = program_->NameScope(StrCat(name_, "/"));
  const auto here = program_->ColocateWith(handle_);
  const std::string op = options_.ref ? std::string(verb) : StrCat(verb, "VariableOp");
  return {program_, program_->AddNode(op, {handle_, value}, {}, verb), 0};
}

Output Variable::IsInitialized() const {
  if (!handle_.valid()) return {program_, -1, 0};
  const auto scope = program_->NameScope(StrCat(name_, "/"));
  const auto here = program_->ColocateWith(handle_);
  const char* const op = options_.ref ? "IsVariableInitialized" : "VarIsInitializedOp";
  return {program_, program_->AddNode(op, {handle_}, {}, "IsInitialized"), 0};
}

}  // namespace penstock::client
