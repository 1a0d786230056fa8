// SPDX-License-Identifier: Apache-2.0
#include "client/examples/recommender_model.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "client/optimizers/adam_variants.h"
#include "client/optimizers/adaptive.h"
#include "core/op/gradient.h"

namespace penstock::examples {
namespace {

constexpr char kWide[] = "wide/";
constexpr int64_t kHidden = 32;
constexpr int64_t kKinds = 3;  // users, films, genres
// The learning rate of the wide weights, as a multiple of the other weights' rate; and their L2
// penalty.
constexpr double kWideRate = 10, kWideL2 = 1e-3;

Output Placeholder(client::Program& program, DType dtype, string_view name) {
  return CallIn(program, "Placeholder", {}, {{"dtype", dtype}, {"shape", PartialShape({-1})}},
                name);
}

Output Axis(client::Program& program, int32_t axis) {
  return Constant(program, Tensor::Scalar(axis));
}

}  // namespace

Recommender::Tables Recommender::MakeTables(client::Program& program, const std::string& name,
                                            const RecommenderSize& size, int64_t units,
                                            const TableRules& rules) {
  const auto table = [&](const char* kind, int64_t rows) -> Table {
    if (size.dynamic_tables) {
      return client::DynamicTable(program, name + kind, units, rules.dynamic_initializer,
                                  rules.method,
                                  {.parts = size.parts,
                                   .max_rows = size.max_rows,
                                   .spill_directory = size.spill_directory});
    }
    const int parts = static_cast<int>(std::min<int64_t>(size.parts, rows));
    return client::PartitionedVariable(program, name + kind, {rows, units}, rules.initializer,
                                       {.parts = parts});
  };
  return {table("users", size.users), table("films", size.films), table("genres", size.genres)};
}

Recommender::Recommender(client::Program& program, const RecommenderSize& size,
                         double learning_rate)
    : program_(program),
      learning_rate_(learning_rate),
      wide_(MakeTables(program, kWide, size, 1,
                       {client::Zeros(), client::TableInitializer::Constant(0),
                        client::TableMethod::Ftrl(kWideRate * learning_rate, 0, kWideL2)})),
      deep_(MakeTables(
          program, "deep/", size, size.units,
          {client::RandomNormal(0, 0.1, 17), client::TableInitializer::Normal(0, 0.1f, 17),
           client::TableMethod::Adam(learning_rate)})),
      // The input of the hidden layer: the concatenated vectors, and the product of each two of
      // them.
      hidden_(program, "deep/hidden", kKinds * size.units + kKinds, kHidden,
              {.activation = "Relu", .kernel = client::GlorotUniform(18)}),
      last_(program, "deep/last", kHidden, 1, {.kernel = client::GlorotUniform(19)}) {}

Recommender::Inputs Recommender::MakeInputs(client::Program& program) {
  return {Placeholder(program, DType::kInt64, "users"),
          Placeholder(program, DType::kInt64, "films"),
          Placeholder(program, DType::kInt64, "genres"),
          Placeholder(program, DType::kInt64, "genre_splits"),
          Placeholder(program, DType::kFloat, "liked")};
}

Outputs Recommender::Tables::Rows(const Inputs& inputs) const {
  const auto rows = [](const Table& table, Output ids) {
    return std::visit([&](const auto& each) { return client::EmbeddingLookup(each, ids); }, table);
  };
  const auto lists = client::IdLists::FromRagged(inputs.genres, inputs.genre_splits);
  return {rows(users, inputs.users), rows(films, inputs.films),
          std::visit([&](const auto& each) { return client::EmbeddingLookupSparse(each, lists); },
                     genres)};
}

Output Recommender::Logits(const Inputs& inputs) const {
  const Outputs vectors = deep_.Rows(inputs);
  Outputs features = vectors;
  for (size_t i = 0; i < vectors.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      features.push_back(Sum(vectors[i] * vectors[j], Axis(program_, 1), true));
    }
  }
  const Output deep = last_(hidden_(ConcatV2(features, Axis(program_, 1))));
  return Reshape(deep + AddN(wide_.Rows(inputs)),
                 Constant(program_, Tensor::Vector<int32_t>({-1})));
}

std::vector<client::DynamicTable> Recommender::DynamicTables() const {
  std::vector<client::DynamicTable> tables;
  for (const Tables* kind : {&wide_, &deep_}) {
    for (const Table* table : {&kind->users, &kind->films, &kind->genres}) {
      const auto* const dynamic = std::get_if<client::DynamicTable>(table);
      if (dynamic != nullptr) tables.push_back(*dynamic);
    }
  }
  return tables;
}

Output Recommender::Train(Output loss, const Average& average) const {
  client::Ftrl ftrl(kWideRate * learning_rate_, {.l2 = kWideL2});
  client::LazyAdam adam(learning_rate_);
  const std::vector<client::DynamicTable> tables = DynamicTables();
  client::LossGradients gradients = client::ComputeGradients(program_, loss, tables);
  if (average != nullptr) gradients.variables = average(gradients.variables);
  std::vector<client::VariableGradient> wide, deep;
  for (const auto& each : gradients.variables) {
    (absl::StartsWith(each.variable.name(), kWide) ? wide : deep).push_back(each);
  }
  Outputs updates = {adam.ApplyGradients(program_, deep)};
  if (!wide.empty()) updates.push_back(ftrl.ApplyGradients(program_, wide));
  for (size_t i = 0; i < tables.size(); ++i) {
    const Outputs own = tables[i].Apply(gradients.tables[i]);
    updates.insert(updates.end(), own.begin(), own.end());
  }
  const client::Variable step = program_.GlobalStep();
  const auto after = program_.ControlDependencies({program_.Group(updates, "train")});
  return step.AssignAdd(ConstantLike(step, 1));
}

}  // namespace penstock::examples
