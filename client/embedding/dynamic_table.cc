// SPDX-License-Identifier: Apache-2.0
#include "client/embedding/dynamic_table.h"

#include <utility>

#include "client/embedding/table_view.h"
#include "client/ops/line_scope.h"
#include "client/saved_tables.h"
#include "core/op/gradient.h"

namespace penstock::client {
namespace {

Status CheckOptions(const DynamicTableOptions& options) {
  constexpr int kBucketsMax = 1024, kPartRowsMin = 16;
  if (options.buckets < 1 || options.buckets > kBucketsMax) {
    return InvalidArgument("buckets must be from 1 to ", kBucketsMax, ", are ", options.buckets);
  }
  if (options.parts < 1 || options.parts > options.buckets) {
    return InvalidArgument("parts must be from 1 to ", options.buckets,
                           ", which are the buckets; are ", options.parts);
  }
  for (const auto& [limit, value] :
       {std::pair("max_rows", options.max_rows), std::pair("max_bytes", options.max_bytes),
        std::pair("max_age", options.max_age),
        std::pair("spill_max_bytes", options.spill_max_bytes)}) {
    if (value < 0) return InvalidArgument(limit, " must not be negative, is ", value);
  }
  if (!options.spill_directory.empty() && options.max_rows == 0 && options.max_bytes == 0) {
    return InvalidArgument(
        "spill_directory needs max_rows or max_bytes: the limit beyond which "
        "rows go to files");
  }
  if (options.max_rows == 0 || options.max_rows >= kPartRowsMin * options.parts) return OkStatus();
  return InvalidArgument("max_rows must be 0 (no limit), or ", kPartRowsMin,
                         " and more for each of the ", options.parts, " parts; is ",
                         options.max_rows);
}

// Returns a part's share of `limit`, a maximum of rows or bytes of the whole table; 0: no limit.
int64_t ShareOfPart(int64_t limit, int parts) { return limit > 0 ? limit / parts : limit; }

Output PartOf(const DynamicTable& table, Output ids) {
  return Call(
      "DynamicTablePart", {ids},
      {{"buckets", int64_t{table.options().buckets}}, {"parts", int64_t{table.options().parts}}});
}

TableView ViewOf(const DynamicTable& table) {
  return {.program = &table.program(),
          .name = table.name(),
          .shape = PartialShape({-1, table.width()}),
          .parts = static_cast<int>(table.parts().size()),
          .places =
              [&table](Output ids) {
                return TableView::Places{PartOf(table, ids), ids};
              },
          .rows_of =
              [&table](int part, Output ids) {
                const Output handle = table.parts()[part];
                const auto device_scope = table.program().ColocateWith(handle);
                return Call("DynamicTablePull", {handle, ids});
              }};
}

// Returns whether `ids` are int64; sets the program's error if not. Returns true for an invalid
// output, because then the program has an error already.
bool CheckIds(const DynamicTable& table, Output ids) {
  if (!ids.valid() || ids.dtype() == DType::kInt64) return true;
  table.program().Fail(InvalidArgument("ids of table '", table.name(), "' must be int64, '",
                                       ids.name(), "' is ", Name(ids.dtype()),
                                       "; ops::Cast makes int64 of it"));
  return false;
}

}  // namespace

TableMethod TableMethod::GradientDescent(Hyperparameter learning_rate) {
  return {"GradientDescent", {}, {learning_rate}};
}

TableMethod TableMethod::Adagrad(Hyperparameter learning_rate, float initial_accumulator) {
  return {"Adagrad", {initial_accumulator}, {learning_rate}};
}

TableMethod TableMethod::Adam(Hyperparameter learning_rate, double beta1, double beta2,
                              double epsilon) {
  return {"Adam", {0, 0}, {learning_rate, beta1, beta2, epsilon}};
}

TableMethod TableMethod::Ftrl(Hyperparameter learning_rate, double l1, double l2,
                              float initial_accumulator) {
  return {"Ftrl", {initial_accumulator, 0}, {learning_rate, l1, l2, -0.5}};
}

DynamicTable::DynamicTable(Program& program, string_view name, int64_t width,
                           const TableInitializer& initializer, const TableMethod& method,
                           const Options& options, SourceLine line)
    : program_(&program), width_(width), method_(method), options_(options) {
  const auto scope = program.NameScope(name);
  const CallerLine source(program, line);
  name_ = program.name_scope();
  if (!name_.empty()) name_.pop_back();  // removes the '/'
  const Status checked = CheckOptions(options);
  if (!checked.ok()) {
    program.Fail(Annotate(checked, StrCat("table '", name_, "'")));
    return;
  }
  for (int part = 0; part < options.parts && program.status().ok(); ++part) {
    AddPart(part, initializer);
  }
  if (!program.status().ok()) parts_.clear();
}

void DynamicTable::AddPart(int part, const TableInitializer& initializer) {
  Program& program = *program_;
  const auto scope = program.NameScope(StrCat("part_", part));
  const std::string own_name = StrCat(name_, "/part_", part);
  const std::string ready_name = own_name + "/ready";
  const Output handle =
      CallIn(program, "DynamicTable", {},
             {{"width", width_},
              {"initializer", initializer.kind},
              {"a", initializer.a},
              {"b", initializer.b},
              {"seed", initializer.seed},
              {"slots", method_.slots},
              {"admit_after", options_.admit_after},
              {"default_value", options_.default_value},
              {"filter_counters", options_.filter_bytes},
              {"max_rows", ShareOfPart(options_.max_rows, options_.parts)},
              {"max_bytes", ShareOfPart(options_.max_bytes, options_.parts)},
              {"max_age", options_.max_age},
              {"spill_directory", options_.spill_directory},
              {"spill_max_bytes", ShareOfPart(options_.spill_max_bytes, options_.parts)},
              {"shared_name", own_name},
              {kTableNameAttr, name_},
              {kTablePartAttr, int64_t{part}},
              {kTablePartsAttr, int64_t{options_.parts}},
              {kTableBucketsAttr, int64_t{options_.buckets}},
              {kTableReadyAttr, ready_name}},
             "table");
  parts_.push_back(handle);
  if (!handle.valid()) return;
  // A variable on the device of the table. Both are lost together, so the variable is initialised
  // if and only if the table is. Its initialiser clears the rows that an earlier training has left
  // in the table.
  const auto device_scope = program.ColocateWith(handle);
  const Output clear = CallIn(program, "DynamicTableClear", {handle}, {}, "clear");
  const auto after = program.ControlDependencies({clear});
  const Variable ready(program, "ready",
                       Identity(penstock::Constant(program, Tensor::Scalar(true))),
                       {.dtype = DType::kBool, .trainable = false});
  if (!program.status().ok() || ready.name() == ready_name) return;
  program.Fail(InvalidArgument("table '", name_, "' needs the name '", ready_name,
                               "' for a variable, but another node has it"));
}

Output DynamicTable::Size(SourceLine line) const {
  const CallerLine source(*program_, line);
  if (parts_.empty()) return {program_, -1, 0};
  const auto scope = program_->NameScope(StrCat(name_, "/"));
  Outputs sizes;
  for (const Output& part : parts_) {
    const auto device_scope = program_->ColocateWith(part);
    sizes.push_back(Call("DynamicTableSize", {part}));
  }
  return sizes.size() == 1 ? sizes[0] : AddN(sizes);
}

Output DynamicTable::Erase(const LocatedOutput& located) const {
  const CallerLine source(*program_, located.line());
  const Output ids = located.output();
  if (parts_.empty() || !CheckIds(*this, ids)) return {program_, -1, 0};
  const auto scope = program_->NameScope(StrCat(name_, "/erase"));
  Outputs own = {ids};
  if (parts_.size() > 1) {
    own = CallN("DynamicPartition", {ids, PartOf(*this, ids)},
                {{"num_partitions", std::ssize(parts_)}});
  }
  Outputs erased;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const auto device_scope = program_->ColocateWith(parts_[i]);
    erased.push_back(CallIn(*program_, "DynamicTableErase", {parts_[i], own[i]}));
  }
  return program_->Group(erased, "all");
}

Outputs DynamicTable::Apply(const std::vector<Gradient>& gradients, SourceLine line) const {
  const CallerLine source(*program_, line);
  const auto scope = program_->NameScope(StrCat(name_, "/update"));
  Output step;
  {
    // The age of rows is measured in global steps. The global step has to be sent to each part, so
    // it is read only if there is a maximum age.
    const auto control_scope = program_->ClearControlDependencies();
    step = options_.max_age > 0 ? program_->GlobalStep().Read()
                                : penstock::Constant(*program_, Tensor::Scalar<int64_t>(0));
  }
  Outputs updates;
  for (size_t i = 0; i < parts_.size() && i < gradients.size(); ++i) {
    if (gradients[i].none() || !program_->status().ok()) continue;
    Gradient rows;
    {
      const auto device_scope = program_->ColocateWith(gradients[i].values);
      rows = DistinctRows(*program_, gradients[i]);
    }
    const auto device_scope = program_->ColocateWith(parts_[i]);
    std::vector<NodeInput> inputs = {parts_[i], rows.indices, rows.values, step};
    for (const Hyperparameter& h : method_.hyperparameters) inputs.push_back(h.Like(rows.values));
    updates.push_back(CallIn(*program_, "DynamicTableApply" + method_.name, inputs));
  }
  return updates;
}

Output EmbeddingLookup(const DynamicTable& table, const LocatedOutput& ids,
                       const EmbeddingLookupOptions& options) {
  const CallerLine source(table.program(), ids.line());
  if (!CheckIds(table, ids.output())) return {&table.program(), -1, 0};
  return Lookup(ViewOf(table), ids, options);
}

Output EmbeddingLookupSparse(const DynamicTable& table, const IdLists& lists,
                             const EmbeddingLookupSparseOptions& options, SourceLine line) {
  const CallerLine source(table.program(), line);
  if (!CheckIds(table, lists.ids)) return {&table.program(), -1, 0};
  return LookupSparse(ViewOf(table), lists, options);
}

LossGradients ComputeGradients(Program& program, const LocatedOutput& located,
                               const std::vector<DynamicTable>& tables,
                               const std::vector<Variable>& variables) {
  const CallerLine source(program, located.line());
  const Output loss = located.output();
  const std::vector<Variable> wanted = variables.empty() ? program.trainable() : variables;
  Outputs handles;
  for (const Variable& variable : wanted) handles.push_back(variable.handle());
  for (const DynamicTable& table : tables) {
    handles.insert(handles.end(), table.parts().begin(), table.parts().end());
  }
  const std::vector<Gradient> gradients = Gradients(program, {loss}, handles);
  LossGradients result;
  bool any = false;
  for (const Gradient& gradient : gradients) any |= !gradient.none();
  if (!any) {
    program.Fail(InvalidArgument("the loss '", loss.name(), "' depends on none of the ",
                                 wanted.size(), " variables and ", tables.size(),
                                 " tables to train"));
  }
  auto next = gradients.begin();
  for (const Variable& variable : wanted) result.variables.push_back({*next++, variable});
  for (const DynamicTable& table : tables) {
    const auto begin = next;
    next += std::ssize(table.parts());
    result.tables.emplace_back(begin, next);
  }
  return result;
}

Output Minimize(Program& program, Optimizer& optimizer, const LocatedOutput& loss,
                const std::vector<DynamicTable>& tables) {
  const CallerLine source(program, loss.line());
  const LossGradients gradients = ComputeGradients(program, loss, tables);
  Outputs updates;
  for (size_t i = 0; i < tables.size(); ++i) {
    const Outputs own = tables[i].Apply(gradients.tables[i]);
    updates.insert(updates.end(), own.begin(), own.end());
  }
  if (!gradients.variables.empty()) {
    updates.push_back(optimizer.ApplyGradients(program, gradients.variables));
  }
  if (!program.status().ok()) return {&program, -1, 0};
  const Variable step = program.GlobalStep();
  const auto after = program.ControlDependencies({program.Group(updates, "train")});
  return step.AssignAdd(ConstantLike(step, 1));
}

}  // namespace penstock::client
