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
                                            const client::Initializer& initializer) {
  const auto table = [&](const char* kind, int64_t rows) {
    const int parts = static_cast<int>(std::min<int64_t>(size.parts, rows));
    return client::PartitionedVariable(program, name + kind, {rows, units}, initializer,
                                       {.parts = parts});
  };
  return {table("users", size.users), table("films", size.films), table("genres", size.genres)};
}

Recommender::Recommender(client::Program& program, const RecommenderSize& size)
    : program_(program),
      units_(size.units),
      wide_(MakeTables(program, kWide, size, 1, client::Zeros())),
      deep_(MakeTables(program, "deep/", size, size.units, client::RandomNormal(0, 0.1, 17))),
      // The vectors one after the other, and the product of each two of them.
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
  return {client::EmbeddingLookup(users, inputs.users),
          client::EmbeddingLookup(films, inputs.films),
          client::EmbeddingLookupSparse(
              genres, client::IdLists::FromRagged(inputs.genres, inputs.genre_splits))};
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

Output Recommender::Train(Output loss, double learning_rate) const {
  client::Ftrl ftrl(10 * learning_rate, {.l2 = 1e-3});
  client::LazyAdam adam(learning_rate);
  std::vector<client::VariableGradient> wide, deep;
  for (const auto& each : adam.ComputeGradients(program_, loss)) {
    (absl::StartsWith(each.variable.name(), kWide) ? wide : deep).push_back(each);
  }
  const Output both = program_.Group(
      {ftrl.ApplyGradients(program_, wide), adam.ApplyGradients(program_, deep)}, "train");
  const client::Variable step = program_.GlobalStep();
  const auto after = program_.ControlDependencies({both});
  return step.AssignAdd(ConstantLike(step, 1));
}

}  // namespace penstock::examples
