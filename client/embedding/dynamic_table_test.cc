// SPDX-License-Identifier: Apache-2.0
//
// Tests dynamic tables in programs: training gives the same results as with a partitioned variable,
// in one process and on a cluster; checkpoints are restored into other numbers of parts.
#include "client/embedding/dynamic_table.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "client/device_setter.h"
#include "client/embedding/partitioned_variable.h"
#include "client/optimizers.h"
#include "client/optimizers/adaptive.h"
#include "client/saver.h"
#include "client/session.h"
#include "core/checkpoint/base_checkpoints.h"
#include "core/checkpoint/checkpoints.h"
#include "core/op/gradient.h"
#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

constexpr int64_t kKeys = 300, kWidth = 4;

std::vector<int64_t> KeysOf(int64_t step) {
  return {2, step, 2, 7 * step % kKeys, kKeys - 1, step, 2, 2, 149, 150 + step};
}

Tensor AllIds() {
  std::vector<int64_t> ids(kKeys);
  for (int64_t i = 0; i < kKeys; ++i) ids[i] = i;
  return Tensor::Vector(ids);
}

// Trains a table and the variable `bias`. The loss uses EmbeddingLookup and EmbeddingLookupSparse.
struct TableModel {
  TableModel(const TableInitializer& initializer, const TableMethod& method,
             const DynamicTableOptions& options, const std::optional<std::string>& worker = {},
             int64_t width = kWidth, const SaverOptions& saving = {}) {
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
    Finish(saving);
  }
  // The same model, with a partitioned variable in place of the dynamic table.
  TableModel(const Initializer& initializer, std::unique_ptr<Optimizer> method) {
    AddInputs();
    const PartitionedVariable variable(program, "table", {kKeys, kWidth}, initializer);
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
    const auto batch = KeysOf(step);
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
  void Finish(const SaverOptions& saving = {}) {
    (void)program.GlobalStep();
    init = program.Initialize(program.globals());
    saver.emplace(program, std::vector<Variable>(), saving);
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
  TableModel variable(Filled(0.5), GetParam().variable());
  TableModel table(TableInitializer::Constant(0.5f), GetParam().table, {.parts = 3});
  for (TableModel* model : {&variable, &table}) {
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

// The most rows that 6 steps can train: the ids 2, 149 and 299 of each step, and the ids that
// depend on the step.
constexpr int64_t kTrainedRows = 3 + 5 + 6 + 5;

TEST(DynamicTable, IsRestoredToOtherNumbersOfParts) {
  const std::string directory =
      StrCat(testing::TempDir(), "/dynamic_table_", Env::Real().RandomU64());
  ASSERT_TRUE(Env::Real().CreateDirectories(directory).ok());
  const auto initializer = TableInitializer::Normal(0, 1, 5);
  TableModel saved(initializer, TableMethod::Adam(0.01), {.parts = 2, .max_age = 100});
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
    // The memory has room for a row of each shard; the rest is on disk.
    TableModel restored(initializer, TableMethod::Adam(0.01),
                        {.parts = parts,
                         .max_rows = 16 * parts,
                         .max_age = 100,
                         .spill_directory = directory + "/spill"});
    ASSERT_TRUE(restored.Open().ok());
    const auto found = restored.saver->RestoreNewestGood(*restored.session, directory);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(restored.Size(), rows);
    // With the restored slots and counts, the next step has the same result as in the first
    // session.
    ASSERT_TRUE(restored.Step(6).ok());
    ExpectNear(restored.All(), saved.All());
    // Everything is initialised, so a training loop would not restore a checkpoint.
    const Tensor made =
        *restored.session->Fetch(restored.program.AreInitialized(restored.program.globals()));
    for (const bool each : made.flat<bool>()) EXPECT_TRUE(each);
  }
  const auto error = [&](TableModel& model) {
    CHECK_OK(model.Open());
    return std::string(
        model.saver->RestoreNewestGood(*model.session, directory).status().message());
  };
  TableModel wider(initializer, TableMethod::Adam(0.01), {}, {}, 6);
  EXPECT_THAT(error(wider), HasSubstr("rows for table 'table/part_0': values must be float"));
  TableModel other(initializer, TableMethod::Adagrad(0.01), {});
  EXPECT_THAT(error(other), HasSubstr("slots must be float"));
  TableModel buckets(initializer, TableMethod::Adam(0.01), {.buckets = 8});
  // Several tensors are read at the same time, so the error may name any of them.
  EXPECT_THAT(error(buckets), ContainsRegex("Key table/bucket_[0-7]_of_8/.* not found"));
}

// Saves of changes, on the training's thread or in the background, restore to the same table.
class IncrementalSaves : public testing::TestWithParam<bool> {
 protected:
  static constexpr int kIncremental = 2;

  IncrementalSaves() { CHECK_OK(Env::Real().CreateDirectories(directory_)); }
  static std::unique_ptr<TableModel> Make(int parts, int keep = 0, int incremental = kIncremental) {
    auto model = std::make_unique<TableModel>(
        TableInitializer::Normal(0, 1, 5), TableMethod::Adam(0.01),
        DynamicTableOptions{.parts = parts, .max_age = 100}, std::nullopt, kWidth,
        SaverOptions{.keep = keep, .incremental = incremental, .background = GetParam()});
    CHECK_OK(model->Open());
    return model;
  }
  std::string Save(TableModel& model, int64_t step) const {
    const auto saved = [&]() -> StatusOr<std::string> {
      if (!GetParam()) return model.saver->Save(*model.session, directory_ + "/model", step);
      const std::string name = StrCat("cut ", step);
      RETURN_IF_ERROR(model.saver->TakeSnapshot(*model.session, name));
      return model.saver->SaveSnapshot(*model.session, name, directory_ + "/model", step);
    }();
    CHECK_OK(saved.status());
    return *saved;
  }
  // Returns the checkpoint on which the checkpoint of this step builds.
  std::string Base(int64_t step) const {
    const auto base = BaseOf(Env::Real(), StrCat(directory_, "/model-", step));
    CHECK_OK(base.status());
    return base->substr(base->rfind('/') + 1);
  }
  std::vector<std::string> Checkpoints() const {
    std::vector<std::string> names;
    const auto paths = ListCheckpoints(Env::Real(), directory_);
    CHECK_OK(paths.status());
    for (const std::string& path : *paths) {
      names.push_back(path.substr(path.rfind('/') + 1));
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  const std::string directory_ =
      StrCat(testing::TempDir(), "/incremental_", Env::Real().RandomU64());
};
INSTANTIATE_TEST_SUITE_P(InTheBackground, IncrementalSaves, testing::Bool());

TEST_P(IncrementalSaves, AreRestoredToOtherNumbersOfParts) {
  const auto saved = Make(2);
  ASSERT_TRUE(saved->session->Execute(saved->init).ok());
  for (int64_t step = 1; step <= 5; ++step) {
    ASSERT_TRUE(saved->Step(step).ok());
    if (step == 3) {
      const Output gone = Constant(saved->program, Tensor::Vector<int64_t>({2}));
      ASSERT_TRUE(saved->session->Execute(saved->table->Erase(gone)).ok());
    }
    Save(*saved, step);
  }
  EXPECT_EQ(Base(1), "");
  EXPECT_EQ(Base(2), "model-1");
  EXPECT_EQ(Base(3), "model-2");
  EXPECT_EQ(Base(4), "") << "two in a row hold changes";
  EXPECT_EQ(Base(5), "model-4");
  ASSERT_TRUE(saved->Step(6).ok());
  for (const int parts : {1, 3}) {
    // A saver without incremental saves can also restore incremental checkpoints.
    const auto restored = Make(parts, 0, parts == 1 ? 0 : kIncremental);
    const auto found = restored->saver->RestoreNewestGood(*restored->session, directory_);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_TRUE(restored->Step(6).ok());
    EXPECT_EQ(restored->Size(), saved->Size());
    EXPECT_EQ(restored->All().ToString(5000), saved->All().ToString(5000));
  }
}

TEST_P(IncrementalSaves, KeepWhatTheyBuildOn) {
  const auto model = Make(1, /*keep=*/2);
  ASSERT_TRUE(model->session->Execute(model->init).ok());
  using Names = std::vector<std::string>;
  const Names wanted[] = {{"model-1"},
                          {"model-1", "model-2"},
                          {"model-1", "model-2", "model-3"},
                          {"model-1", "model-2", "model-3", "model-4"},
                          {"model-4", "model-5"},
                          {"model-4", "model-5", "model-6"}};
  for (int64_t step = 1; step <= 6; ++step) {
    ASSERT_TRUE(model->Step(step).ok());
    Save(*model, step);
    EXPECT_EQ(Checkpoints(), wanted[step - 1]);
  }
}

TEST_P(IncrementalSaves, AreSkippedIfTheirBaseIsDamaged) {
  const auto model = Make(1);
  ASSERT_TRUE(model->session->Execute(model->init).ok());
  Tensor all;
  for (int64_t step = 1; step <= 6; ++step) {
    ASSERT_TRUE(model->Step(step).ok());
    Save(*model, step);
    if (step == 3) all = model->All();
  }
  // Checkpoint 4, on which 5 and 6 build, is damaged; the newest good one is 3, which builds on 1
  // and 2.
  const std::string data = directory_ + "/model-4.data-00000-of-00001";
  std::string bytes = *Env::Real().ReadFile(data);
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(Env::Real().WriteFileAtomically(data, bytes).ok());
  const auto restored = Make(1);
  const auto found = restored->saver->RestoreNewestGood(*restored->session, directory_);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->prefix, directory_ + "/model-3");
  EXPECT_EQ(found->skipped.size(), 3u);
  EXPECT_EQ(restored->All().ToString(5000), all.ToString(5000));
  // The restored rows are saved completely.
  Save(*restored, 7);
  EXPECT_EQ(Base(7), "");
}

// A part whose ps was lost does not have the rows of the base checkpoint, so the save has all of
// its rows.
TEST_P(IncrementalSaves, AreCompleteForATableThatIsNew) {
  const auto model = Make(1);
  ASSERT_TRUE(model->session->Execute(model->init).ok());
  ASSERT_TRUE(model->Step(1).ok());
  Save(*model, 1);
  ASSERT_TRUE(model->Open().ok());
  ASSERT_TRUE(model->session->Execute(model->init).ok());
  ASSERT_TRUE(model->Step(2).ok());
  Save(*model, 2);
  EXPECT_EQ(Base(2), "");
}

TEST(DynamicTable, IsEmptiedWhenItIsInitialised) {
  TableModel model(TableInitializer::Constant(1), TableMethod::GradientDescent(0.1), {.parts = 2});
  ASSERT_TRUE(model.Open().ok());
  ASSERT_TRUE(model.session->Execute(model.init).ok());
  ASSERT_TRUE(model.Step(1).ok());
  EXPECT_GT(model.Size(), 0);
  ASSERT_TRUE(model.session->Execute(model.init).ok());
  EXPECT_EQ(model.Size(), 0);
}

TEST(DynamicTable, DropsRowsOnRequest) {
  TableModel model(TableInitializer::Constant(1), TableMethod::GradientDescent(0.1), {.parts = 2});
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
      RETURN_IF_ERROR(saver.TakeSnapshot(**session, name));
      return saver.SaveSnapshot(**session, name, directory + "/model", 1).status();
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
  EXPECT_THAT(error({.spill_directory = "/tmp"}),
              HasSubstr("spill_directory needs max_rows or max_bytes"));
  EXPECT_THAT(error({.spill_max_bytes = -1}), HasSubstr("spill_max_bytes must not be negative"));
  EXPECT_THAT(error({.parts = 4, .max_rows = 40}), HasSubstr("16 and more for each of the 4"));
  EXPECT_THAT(error({}, 0), HasSubstr("width"));
  EXPECT_THAT(error({}, 2, DType::kInt32), HasSubstr("ids of table 't' must be int64"));
}

// Two workers of a cluster train in turn, with the same result as one process.
TEST(DynamicTable, TrainsOnACluster) {
  TestCluster cluster({{"ps", 2}, {"worker", 2}});
  const auto make = [](const std::optional<std::string>& worker) {
    return std::make_unique<TableModel>(TableInitializer::Uniform(-1, 1, 9),
                                        TableMethod::Adagrad(0.3), DynamicTableOptions{.parts = 2},
                                        worker);
  };
  const auto local = make({});
  std::vector<std::unique_ptr<TableModel>> workers;
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
