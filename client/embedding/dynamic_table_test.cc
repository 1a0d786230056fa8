// SPDX-License-Identifier: Apache-2.0
//
// Dynamic tables in programs: trained like a partitioned variable they give what that gives, in one
// process and on a cluster; checkpoints go from some parts to others.
#include "client/embedding/dynamic_table.h"

#include <functional>
#include <memory>
#include <optional>

#include "client/device_setter.h"
#include "client/embedding/partitioned_variable.h"
#include "client/optimizers.h"
#include "client/optimizers/adaptive.h"
#include "client/saver.h"
#include "client/session.h"
#include "core/op/gradient.h"
#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

constexpr int64_t kRows = 300, kWidth = 4;

std::vector<int64_t> BatchOf(int64_t step) {
  return {2, step, 2, 7 * step % kRows, kRows - 1, step, 2, 2, 149, 150 + step};
}

Tensor AllIds() {
  std::vector<int64_t> ids(kRows);
  for (int64_t i = 0; i < kRows; ++i) ids[i] = i;
  return Tensor::Vector(ids);
}

// A loss over lookups of both kinds, and one more variable.
struct Model {
  Model(const TableInitializer& initializer, const TableMethod& method,
        const DynamicTableOptions& options, const std::optional<std::string>& worker = {},
        int64_t width = kWidth) {
    std::optional<GraphBuilder::Scope> placed;
    if (worker) {
      placed.emplace(program.DeviceFunctionScope(
          ReplicaDeviceSetter({.ps_tasks = 2, .worker_device = *worker})));
    }
    AddInputs();
    table.emplace(program, "table", width, initializer, method, options);
    bias.emplace(program, "bias", Shape({1}), Zeros());
    optimizer = std::make_unique<GradientDescent>(0.005);
    train = Minimize(program, *optimizer,
                     Loss(EmbeddingLookup(*table, ids),
                          EmbeddingLookupSparse(*table, IdLists::FromRagged(ids, splits))),
                     {*table});
    all = EmbeddingLookup(*table, Constant(program, AllIds()));
    size = table->Size();
    Finish();
  }
  // The same with a variable.
  Model(const Initializer& initializer, std::unique_ptr<Optimizer> method) {
    AddInputs();
    const PartitionedVariable variable(program, "table", {kRows, kWidth}, initializer);
    bias.emplace(program, "bias", Shape({1}), Zeros());
    optimizer = std::make_unique<GradientDescent>(0.005);
    const Output loss = Loss(EmbeddingLookup(variable, ids),
                             EmbeddingLookupSparse(variable, IdLists::FromRagged(ids, splits)));
    const auto rows = method->ComputeGradients(program, loss, variable.parts());
    const auto rest = method->ComputeGradients(program, loss, {*bias});
    train = program.Group(
        {method->ApplyGradients(program, rows), optimizer->ApplyGradients(program, rest)}, "train");
    all = variable.Read();
    slots_owner = std::move(method);
    Finish();
  }

  Status Open(const std::string& target = "") {
    ASSIGN_OR_RETURN(session, Session::New(program, target));
    return OkStatus();
  }
  Status Step(int64_t step) {
    const auto batch = BatchOf(step);
    const int64_t n = std::ssize(batch);
    return session->Execute(train, {{ids, Tensor::Vector<int64_t>(batch)},
                                    {splits, Tensor::Vector<int64_t>({0, n / 2, n})}});
  }
  Tensor All() { return *session->Fetch(all); }
  int64_t Size() { return session->Fetch(size)->scalar<int64_t>(); }

  Program program;
  std::optional<DynamicTable> table;
  std::optional<Variable> bias;
  std::unique_ptr<Optimizer> optimizer, slots_owner;
  Output ids, splits, train, all, size, init;
  std::optional<Saver> saver;
  std::unique_ptr<Session> session;

 private:
  void AddInputs() {
    ids = CallIn(program, "Placeholder", {},
                 {{"dtype", DType::kInt64}, {"shape", PartialShape({-1})}});
    splits = CallIn(program, "Placeholder", {},
                    {{"dtype", DType::kInt64}, {"shape", PartialShape({-1})}});
  }
  Output Loss(Output rows, Output means) {
    const Output both = Constant(program, Tensor::Vector<int32_t>({0, 1}));
    return Sum(Square(rows + *bias), both) + Sum(Square(means * 3), both);
  }
  void Finish() {
    (void)program.GlobalStep();
    init = program.Initialize(program.globals());
    saver.emplace(program);
  }
};

void ExpectNear(const Tensor& found, const Tensor& wanted) {
  ASSERT_EQ(found.shape(), wanted.shape());
  for (int64_t i = 0; i < found.num_elements(); ++i) {
    ASSERT_NEAR(found.flat<float>()[i], wanted.flat<float>()[i], 1e-5) << "element " << i;
  }
}

struct Pair {
  const char* name;
  TableMethod table;
  std::function<std::unique_ptr<Optimizer>()> variable;
};

std::vector<Pair> Pairs() {
  return {
      {"GradientDescent", TableMethod::GradientDescent(0.002),
       [] { return std::make_unique<GradientDescent>(0.002); }},
      {"Adagrad", TableMethod::Adagrad(0.3), [] { return std::make_unique<Adagrad>(0.3); }},
      {"Ftrl", TableMethod::Ftrl(0.3, 0.01, 0.1),
       [] { return std::make_unique<Ftrl>(0.3, FtrlOptions{.l1 = 0.01, .l2 = 0.1}); }},
  };
}

class DynamicTableMethod : public testing::TestWithParam<Pair> {};
INSTANTIATE_TEST_SUITE_P(All, DynamicTableMethod, testing::ValuesIn(Pairs()),
                         [](const auto& info) { return info.param.name; });

TEST_P(DynamicTableMethod, TrainsAsAVariableDoes) {
  Model variable(Filled(0.5), GetParam().variable());
  Model table(TableInitializer::Constant(0.5f), GetParam().table, {.parts = 3});
  for (Model* model : {&variable, &table}) {
    ASSERT_TRUE(model->Open().ok()) << model->program.status();
    ASSERT_TRUE(model->session->Execute(model->init).ok());
    for (int64_t step = 0; step < 8; ++step) {
      const Status done = model->Step(step);
      ASSERT_TRUE(done.ok()) << done;
    }
  }
  ExpectNear(table.All(), variable.All());
  ExpectNear(*table.session->Fetch(*table.bias), *variable.session->Fetch(*variable.bias));
}

// 2, 149, 299, and those that depend on the step, of 6 steps.
constexpr int64_t kTrainedRows = 3 + 5 + 6 + 5;

TEST(DynamicTable, IsRestoredToOtherNumbersOfParts) {
  const std::string directory =
      StrCat(testing::TempDir(), "/dynamic_table_", Env::Real().RandomU64());
  ASSERT_TRUE(Env::Real().CreateDirectories(directory).ok());
  const auto initializer = TableInitializer::Normal(0, 1, 5);
  Model saved(initializer, TableMethod::Adam(0.01), {.parts = 2, .max_age = 100});
  ASSERT_TRUE(saved.Open().ok()) << saved.program.status();
  ASSERT_TRUE(saved.session->Execute(saved.init).ok());
  const Tensor initial = saved.All();
  for (int64_t step = 0; step < 6; ++step) ASSERT_TRUE(saved.Step(step).ok());
  EXPECT_NE(saved.All().ToString(2000), initial.ToString(2000));
  const int64_t rows = saved.Size();
  EXPECT_LE(rows, kTrainedRows);
  EXPECT_GT(rows, 10);
  const auto checkpoint = saved.saver->Save(*saved.session, directory + "/model", 6);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  ASSERT_TRUE(saved.Step(6).ok());
  for (const int parts : {1, 2, 5}) {
    Model restored(initializer, TableMethod::Adam(0.01), {.parts = parts, .max_age = 100});
    ASSERT_TRUE(restored.Open().ok());
    const auto found = restored.saver->RestoreNewestGood(*restored.session, directory);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(restored.Size(), rows);
    // With the slots and counts it goes on as the other did.
    ASSERT_TRUE(restored.Step(6).ok());
    ExpectNear(restored.All(), saved.All());
    // All is initialised: a training would go on.
    const Tensor made =
        *restored.session->Fetch(restored.program.AreInitialized(restored.program.globals()));
    for (const bool each : made.flat<bool>()) EXPECT_TRUE(each);
  }
  const auto error = [&](Model& model) {
    CHECK_OK(model.Open());
    return std::string(
        model.saver->RestoreNewestGood(*model.session, directory).status().message());
  };
  Model wider(initializer, TableMethod::Adam(0.01), {}, {}, 6);
  EXPECT_THAT(error(wider), HasSubstr("rows for table 'table/part_0': values must be float"));
  Model other(initializer, TableMethod::Adagrad(0.01), {});
  EXPECT_THAT(error(other), HasSubstr("slots must be float"));
  Model buckets(initializer, TableMethod::Adam(0.01), {.buckets = 8});
  // Tensors are read at the same time: it may be any of them.
  EXPECT_THAT(error(buckets), ContainsRegex("Key table/bucket_[0-7]_of_8/.* not found"));
}

TEST(DynamicTable, IsEmptiedWhenItIsInitialised) {
  Model model(TableInitializer::Constant(1), TableMethod::GradientDescent(0.1), {.parts = 2});
  ASSERT_TRUE(model.Open().ok());
  ASSERT_TRUE(model.session->Execute(model.init).ok());
  ASSERT_TRUE(model.Step(1).ok());
  EXPECT_GT(model.Size(), 0);
  ASSERT_TRUE(model.session->Execute(model.init).ok());
  EXPECT_EQ(model.Size(), 0);
}

TEST(DynamicTable, DropsRowsOnRequest) {
  Model model(TableInitializer::Constant(1), TableMethod::GradientDescent(0.1), {.parts = 2});
  const Output erase =
      model.table->Erase(Constant(model.program, Tensor::Vector<int64_t>({2, 149, 77})));
  ASSERT_TRUE(model.Open().ok()) << model.program.status();
  ASSERT_TRUE(model.session->Execute(model.init).ok());
  ASSERT_TRUE(model.Step(1).ok());
  const int64_t before = model.Size();
  ASSERT_TRUE(model.session->Execute(erase).ok());
  EXPECT_EQ(model.Size(), before - 2);
}

TEST(DynamicTable, IsNotSavedIfARowIsNotFinite) {
  const std::string directory =
      StrCat(testing::TempDir(), "/dynamic_table_", Env::Real().RandomU64());
  ASSERT_TRUE(Env::Real().CreateDirectories(directory).ok());
  for (const bool background : {false, true}) {
    Program program;
    const DynamicTable table(program, "t", 2, TableInitializer::Constant(1),
                             TableMethod::GradientDescent(1e30));
    const Output rows = EmbeddingLookup(table, Constant(program, Tensor::Vector<int64_t>({3})));
    GradientDescent none(0.1);  // there are no variables
    const Output train =
        Minimize(program, none,
                 Sum(Square(rows), Constant(program, Tensor::Vector<int32_t>({0, 1}))), {table});
    const Output init = program.Initialize(program.globals());
    Saver saver(program, {}, {.background = background, .finite_only = true});
    const auto session = Session::New(program, "");
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_TRUE((*session)->Execute(init).ok());
    const auto save = [&](const std::string& name) -> Status {
      if (!background) return saver.Save(**session, directory + "/model", 1).status();
      RETURN_IF_ERROR(saver.CopyAhead(**session, name));
      RETURN_IF_ERROR(saver.Cut(**session, name));
      return saver.SaveCut(**session, name, directory + "/model", 1).status();
    };
    ASSERT_TRUE((*session)->Execute(train).ok());
    EXPECT_TRUE(save("good").ok());
    ASSERT_TRUE((*session)->Execute(train).ok());
    const Status saved = save("bad");
    EXPECT_TRUE(saver.IsNonFinite(saved)) << saved;
    EXPECT_THAT(std::string(saved.message()),
                HasSubstr("a row of table 't' is not finite and is not saved"));
  }
}

TEST(DynamicTable, MistakesAreNamed) {
  const auto error = [](const DynamicTableOptions& options, int64_t width = 2,
                        DType ids = DType::kInt64) {
    Program program;
    const DynamicTable table(program, "t", width, TableInitializer::Constant(0),
                             TableMethod::GradientDescent(0.1), options);
    EmbeddingLookup(
        table, CallIn(program, "Placeholder", {}, {{"dtype", ids}, {"shape", PartialShape({-1})}}));
    return std::string(program.status().message());
  };
  EXPECT_EQ(error({}), "");
  EXPECT_THAT(error({.parts = 0}), HasSubstr("parts must be from 1 to 32"));
  EXPECT_THAT(error({.parts = 33}), HasSubstr("parts must be from 1 to 32"));
  EXPECT_THAT(error({.buckets = 0}), HasSubstr("buckets must be from 1 to 1024"));
  EXPECT_THAT(error({.max_rows = -5}), HasSubstr("max_rows must not be negative, is -5"));
  EXPECT_THAT(error({.max_age = -5}), HasSubstr("max_age must not be negative, is -5"));
  EXPECT_THAT(error({.parts = 4, .max_rows = 40}), HasSubstr("16 and more for each of the 4"));
  EXPECT_THAT(error({}, 0), HasSubstr("width"));
  EXPECT_THAT(error({}, 2, DType::kInt32), HasSubstr("ids of table 't' must be int64"));
}

// Two workers of a cluster train, in turn, what one process trains.
TEST(DynamicTable, TrainsOnACluster) {
  TestCluster cluster({{"ps", 2}, {"worker", 2}});
  const auto make = [](const std::optional<std::string>& worker) {
    return std::make_unique<Model>(TableInitializer::Uniform(-1, 1, 9), TableMethod::Adagrad(0.3),
                                   DynamicTableOptions{.parts = 2}, worker);
  };
  const auto local = make({});
  std::vector<std::unique_ptr<Model>> workers;
  for (int i = 0; i < 2; ++i) {
    workers.push_back(make(StrCat("/job:worker/task:", i)));
    ASSERT_TRUE(workers[i]->Open(cluster.target("worker", i)).ok()) << workers[i]->program.status();
  }
  EXPECT_NE(workers[0]->program.NodeOf(workers[0]->table->parts()[0])->requested_device(),
            workers[0]->program.NodeOf(workers[0]->table->parts()[1])->requested_device());
  ASSERT_TRUE(local->Open().ok());
  ASSERT_TRUE(local->session->Execute(local->init).ok());
  ASSERT_TRUE(workers[0]->session->Execute(workers[0]->init).ok());
  for (int64_t step = 0; step < 6; ++step) {
    ASSERT_TRUE(local->Step(step).ok());
    const Status done = workers[step % 2]->Step(step);
    ASSERT_TRUE(done.ok()) << done;
  }
  ExpectNear(workers[1]->All(), local->All());
  EXPECT_EQ(workers[0]->Size(), local->Size());
}

}  // namespace
}  // namespace penstock::client
