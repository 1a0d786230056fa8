// SPDX-License-Identifier: Apache-2.0
//
// Tests a dynamic table through its ops: compares random operations with a std::map that follows
// the same rules; limits, admission, concurrent steps, the StateLog.
#include "kernels/dynamic_table/dynamic_table.h"

#include <cmath>
#include <list>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "core/op/testing/recording_log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/dynamic_table/testing/table.h"

namespace penstock {
namespace {

using testing::HasSubstr;

// An optimizer's update, in double precision.
struct Method {
  const char* name;
  std::vector<float> slots, hyperparameters;
  void (*update)(std::vector<double>& state, double grad, int updates);  // state: value, slots
};

const Method kMethods[] = {
    {"GradientDescent", {}, {0.1f}, [](auto& s, double g, int) { s[0] -= 0.1 * g; }},
    {"Adagrad",
     {0.1f},
     {0.2f},
     [](auto& s, double g, int) {
       s[1] += g * g;
       s[0] -= 0.2 * g / std::sqrt(s[1]);
     }},
    {"Adam",
     {0, 0},
     {0.01f, 0.9f, 0.99f, 1e-6f},
     [](auto& s, double g, int t) {
       s[1] = 0.9 * s[1] + 0.1 * g;
       s[2] = 0.99 * s[2] + 0.01 * g * g;
       const double m = s[1] / (1 - std::pow(0.9, t)), v = s[2] / (1 - std::pow(0.99, t));
       s[0] -= 0.01 * m / (std::sqrt(v) + 1e-6 / std::sqrt(1 - std::pow(0.99, t)));
     }},
    {"Ftrl",
     {0.1f, 0},
     {0.5f, 0.01f, 0.1f, -0.5f},
     [](auto& s, double g, int) {
       const double sum = s[1] + g * g;
       s[2] += g - (std::sqrt(sum) - std::sqrt(s[1])) / 0.5 * s[0];
       s[1] = sum;
       s[0] = std::abs(s[2]) > 0.01
                  ? ((s[2] > 0 ? 0.01 : -0.01) - s[2]) / (std::sqrt(sum) / 0.5 + 2 * 0.1)
                  : 0;
     }},
};

// A model of a table: the rows that the table should have after updates by one method.
class Model {
 public:
  Model(const Method& method, int64_t width) : method_(method), width_(width) {}

  // Applies a push. The initial rows are those that `fresh`, a table without updates, returns.
  void Push(const TestTable& fresh, const std::vector<int64_t>& ids, const Tensor& grad) {
    for (size_t i = 0; i < ids.size(); ++i) {
      auto [it, added] = rows_.try_emplace(ids[i]);
      if (added) it->second = New(fresh, ids[i]);
      Row& row = it->second;
      ++row.updates;
      for (int64_t k = 0; k < width_; ++k) {
        method_.update(row.state[k], grad.data<float>()[i * width_ + k], row.updates);
      }
    }
  }
  void Erase(const std::vector<int64_t>& ids) {
    for (const int64_t id : ids) rows_.erase(id);
  }
  int64_t size() const { return std::ssize(rows_); }
  void Check(const TestTable& table, const TestTable& fresh,
             const std::vector<int64_t>& ids) const {
    const Tensor pulled = table.Pull(ids), initial = fresh.Pull(ids);
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto it = rows_.find(ids[i]);
      for (int64_t k = 0; k < width_; ++k) {
        const float found = pulled.data<float>()[i * width_ + k];
        const double wanted =
            it != rows_.end() ? it->second.state[k][0] : initial.data<float>()[i * width_ + k];
        ASSERT_NEAR(found, wanted, 2e-4) << method_.name << " key " << ids[i];
      }
    }
  }

 private:
  struct Row {
    int updates = 0;
    std::vector<std::vector<double>> state;
  };
  Row New(const TestTable& fresh, int64_t id) const {
    Row row;
    const Tensor initial = fresh.Pull({id});
    for (const float x : initial.flat<float>()) {
      row.state.push_back({x});
      row.state.back().insert(row.state.back().end(), method_.slots.begin(), method_.slots.end());
    }
    return row;
  }

  const Method& method_;
  const int64_t width_;
  std::map<int64_t, Row> rows_;
};

class DynamicTableMethods : public testing::TestWithParam<Method> {};
INSTANTIATE_TEST_SUITE_P(All, DynamicTableMethods, testing::ValuesIn(kMethods),
                         [](const auto& info) { return info.param.name; });

TEST_P(DynamicTableMethods, RandomOperationsGiveWhatAMapGives) {
  const Method& method = GetParam();
  constexpr int64_t kWidth = 5;
  const Attrs attrs = Uniform(kWidth, method.slots);
  const TestTable fresh(attrs);
  auto table = std::make_unique<TestTable>(attrs);
  Model model(method, kWidth);
  std::mt19937_64 random(3);
  const auto some = [&](size_t count) {
    std::vector<int64_t> ids(count);
    for (int64_t& id : ids) id = static_cast<int64_t>((random() % 400) * 0x123456789ABCDEF - 7);
    return ids;
  };
  for (int round = 0; round < 120; ++round) {
    const std::vector<int64_t> ids = some(random() % 60);
    const Tensor grad = Gradients(random, std::ssize(ids), kWidth);
    ASSERT_TRUE(table->Apply(method.name, ids, grad, method.hyperparameters, round).ok());
    model.Push(fresh, ids, grad);
    if (round % 10 == 3) {
      const auto gone = some(20);
      ASSERT_TRUE(table->Do("DynamicTableErase", {Ids(gone)}).ok());
      model.Erase(gone);
    }
    if (round % 30 == 29) {  // save in three parts, and restore
      const int64_t n = 4;
      const auto one = table->Export(n, {0, 2}), two = table->Export(n, {3}),
                 three = table->Export(n, {1});
      std::vector<std::vector<Tensor>> lists(5);
      for (int k = 0; k < 5; ++k) lists[k] = {one[2 * k], two[k], one[2 * k + 1], three[k]};
      table = std::make_unique<TestTable>(attrs);
      ASSERT_TRUE(table->Import(lists).ok());
    }
    ASSERT_EQ(table->Size(), model.size());
    model.Check(*table, fresh, some(50));
  }
  ASSERT_TRUE(table->Do("DynamicTableClear", {}).ok());
  EXPECT_EQ(table->Size(), 0);
}

TEST(DynamicTable, RowsOfTheBucketsMakeTheWhole) {
  const TestTable table(Uniform(2, {0.5f}));
  std::vector<int64_t> ids(1000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i * i);
  std::mt19937_64 random(5);
  ASSERT_TRUE(table.Apply("Adagrad", ids, Gradients(random, 1000, 2), {0.1f}, 12).ok());
  std::set<int64_t> seen;
  for (int64_t bucket = 0; bucket < 8; ++bucket) {
    const auto rows = table.Export(8, {bucket});
    const int64_t n = rows[0].dim(0);
    EXPECT_GT(n, 80);
    EXPECT_EQ(rows[2].shape(), Shape({n, 1, 2}));
    for (int64_t i = 0; i < n; ++i) {
      const int64_t key = rows[0].data<int64_t>()[i];
      EXPECT_EQ(BucketOf(key, 8), bucket);
      EXPECT_TRUE(seen.insert(key).second) << key;
      EXPECT_EQ(rows[3].data<int64_t>()[i], 1);
      EXPECT_EQ(rows[4].data<int64_t>()[i], 12);
      EXPECT_EQ(rows[1].Slice(i, i + 1).ToString(), table.Pull({key}).ToString());
    }
  }
  EXPECT_EQ(seen, std::set<int64_t>(ids.begin(), ids.end()));
}

// Returns keys that all belong to one shard, so that few rows reach its limit.
std::vector<int64_t> KeysOfShard(uint64_t shard, size_t count) {
  std::vector<int64_t> keys;
  for (int64_t key = 0; keys.size() < count; ++key) {
    if (HashKey(key) >> 60 == shard) keys.push_back(key);
  }
  return keys;
}

TEST(DynamicTable, DropsTheLeastRecentlyUpdatedRows) {
  Attrs attrs = Uniform(3);
  attrs["max_rows"] = int64_t{16 * 10};
  const TestTable table(attrs);
  const auto keys = KeysOfShard(9, 100);
  std::list<int64_t> model;  // keys, the last updated at the end
  std::mt19937_64 random(6);
  for (int round = 0; round < 300; ++round) {
    std::vector<int64_t> ids(random() % 6);
    for (int64_t& id : ids) id = keys[random() % (round < 150 ? 100 : 14)];
    ASSERT_TRUE(
        table.Apply("GradientDescent", ids, Gradients(random, std::ssize(ids), 3), {0.1f}).ok());
    for (const int64_t id : ids) {
      model.remove(id);
      model.push_back(id);
    }
    while (model.size() > 10) model.pop_front();
    // The export returns the rows in the model's order.
    const auto rows = table.Export(1, {0});
    const auto exported = rows[0].flat<int64_t>();
    ASSERT_EQ(std::list<int64_t>(exported.begin(), exported.end()), model) << round;
  }
}

TEST(DynamicTable, KeepsTheOrderOfUpdatesWhenRestored) {
  Attrs attrs = Uniform(1);
  attrs["max_rows"] = int64_t{16 * 4};
  const TestTable table(attrs), restored(attrs);
  const auto keys = KeysOfShard(3, 5);
  const Tensor grad = Tensor::Of<float>({1, 1}, {1});
  for (const int i : {3, 1, 0, 2, 3}) {
    ASSERT_TRUE(table.Apply("GradientDescent", {keys[i]}, grad, {0.1f}, i + 10).ok());
  }
  std::vector<std::vector<Tensor>> lists;
  for (const Tensor& tensor : table.Export(1, {0})) lists.push_back({tensor});
  ASSERT_TRUE(restored.Import(lists).ok());
  ASSERT_TRUE(restored.Apply("GradientDescent", {keys[4]}, grad, {0.1f}, 14).ok());
  const auto rows = restored.Export(1, {0});
  EXPECT_EQ(rows[0].ToString(), Ids({keys[0], keys[2], keys[3], keys[4]}).ToString());
}

TEST(DynamicTable, KeepsTheNewestRowsOfACheckpointThatIsTooLarge) {
  Attrs attrs = Uniform(1);
  const TestTable table(attrs);
  attrs["max_rows"] = int64_t{16 * 2};
  const TestTable smaller(attrs);
  const auto keys = KeysOfShard(5, 4);
  const Tensor grad = Tensor::Of<float>({1, 1}, {1});
  for (const int i : {3, 1, 0, 2}) {
    ASSERT_TRUE(table.Apply("GradientDescent", {keys[i]}, grad, {0.1f}, 10 - i).ok());
  }
  std::vector<std::vector<Tensor>> lists;
  for (const Tensor& tensor : table.Export(1, {0})) lists.push_back({tensor});
  ASSERT_TRUE(smaller.Import(lists).ok());
  // The step of a shard never decreases, so the last two updates count as updates of the step
  // before them.
  const auto rows = smaller.Export(1, {0});
  EXPECT_EQ(rows[0].ToString(), Ids({keys[0], keys[2]}).ToString());
}

TEST(DynamicTable, ALimitOfBytesBoundsTheRows) {
  Attrs attrs = Uniform(64, {0.1f});
  const int64_t row_bytes = TableSpec{.width = 64, .slots = {0.1f}}.row_bytes();
  attrs["max_bytes"] = 16 * 20 * row_bytes;
  const TestTable table(attrs);
  std::mt19937_64 random(7);
  for (int round = 0; round < 20; ++round) {
    std::vector<int64_t> ids(100);
    for (int64_t& id : ids) id = static_cast<int64_t>(random());
    ASSERT_TRUE(table.Apply("Adagrad", ids, Gradients(random, 100, 64), {0.1f}).ok());
    EXPECT_LE(table.Size(), 16 * 20);
  }
  EXPECT_GT(table.Size(), 16 * 18);
}

TEST(DynamicTable, DropsOldRows) {
  Attrs attrs = Uniform(1);
  attrs["max_age"] = int64_t{10};
  const TestTable table(attrs);
  const Tensor grad = Tensor::Of<float>({1, 1}, {1});
  const auto keys = KeysOfShard(0, 3);
  const auto push = [&](int64_t key, int64_t step) {
    CHECK_OK(table.Apply("GradientDescent", {key}, grad, {0.1f}, step));
    return table.Size();
  };
  EXPECT_EQ(push(keys[0], 100), 1);
  EXPECT_EQ(push(keys[1], 105), 2);
  EXPECT_EQ(push(keys[2], 90), 3);   // an earlier step counts as step 105
  EXPECT_EQ(push(keys[2], 110), 3);  // the row of keys[0] is 10 steps old
  EXPECT_EQ(push(keys[2], 111), 2);
  EXPECT_EQ(push(keys[2], 200), 1);
}

TEST(DynamicTable, AdmitsKeysThatComeOften) {
  Attrs attrs = Uniform(2);
  attrs["admit_after"] = int64_t{3};
  attrs["default_value"] = 0.25f;
  const TestTable table(attrs), fresh(Uniform(2));
  const Tensor grad = Tensor::Of<float>({1, 2}, {1, 2});
  const auto push = [&] { CHECK_OK(table.Apply("GradientDescent", {5}, grad, {0.5f})); };
  push();
  push();
  EXPECT_EQ(table.Pull({5}).ToString(), "float[1,2] 0.25 0.25");
  EXPECT_EQ(table.Size(), 0);
  push();
  EXPECT_EQ(table.Size(), 1);
  const Tensor initial = fresh.Pull({5}), now = table.Pull({5});
  EXPECT_FLOAT_EQ(now.data<float>()[0], initial.data<float>()[0] - 0.5f);
  EXPECT_FLOAT_EQ(now.data<float>()[1], initial.data<float>()[1] - 1.0f);
  // Each occurrence of a key in a batch counts.
  const Tensor three = Tensor::Of<float>({3, 2}, {1, 1, 1, 1, 1, 1});
  ASSERT_TRUE(table.Apply("GradientDescent", {8, 8, 8}, three, {0.5f}).ok());
  EXPECT_FLOAT_EQ(table.Pull({8}).data<float>()[0], fresh.Pull({8}).data<float>()[0] - 0.5f);
}

TEST(DynamicTable, ErrorsSayWhatIsWrong) {
  const TestTable table(Uniform(2, {0.1f}));
  const auto message = [](const auto& result) { return std::string(result.message()); };
  const Tensor grad = Tensor::Of<float>({1, 2}, {1, 2});
  EXPECT_THAT(message(table.Apply("Adam", {1}, grad, {0.1f, 0.9f, 0.9f, 0.1f})),
              HasSubstr("table 't' has 1 slots, this method needs 2"));
  EXPECT_THAT(message(table.Apply("Adagrad", {1, 2}, grad, {0.1f})),
              HasSubstr("grad must be a row of table 't', of width 2, for each of ids; is [1,2]"));
  EXPECT_THAT(message(table.Do("DynamicTablePull", {Tensor::Scalar<int64_t>(1)}).status()),
              HasSubstr("ids"));
  EXPECT_FALSE(table.Do("DynamicTablePull", {Tensor::Vector<int32_t>({1})}).ok());
  const TestTable two(Uniform(2, {0, 0}));
  EXPECT_THAT(message(two.Apply("Adam", {1}, grad, {0.1f, 1.0f, 0.9f, 0.1f})),
              HasSubstr("beta1 must be at least 0 and below 1, is 1"));
  EXPECT_THAT(message(two.Apply("Ftrl", {1}, grad, {0, 0, 0, 0})),
              HasSubstr("lr is not a positive scalar: 0"));
  EXPECT_EQ(two.Size(), 0);
  EXPECT_THAT(message(TestTable(Uniform(3, {0.1f}), table.store()).status()),
              HasSubstr("table 't' exists with rows of width 2 and 1 slots; this node says width "
                        "3 and 1 slots"));
  Attrs limited = Uniform(2, {0.1f});
  limited["max_rows"] = int64_t{100};
  EXPECT_THAT(message(TestTable(limited, table.store()).status()),
              HasSubstr("exists with another initializer, admission or limit"));
  limited["max_rows"] = int64_t{-1};
  EXPECT_THAT(message(TestTable(limited).status()), HasSubstr("max_rows must be 0 (no limit)"));
  const auto wanted = [&](const std::vector<int64_t>& buckets) {
    TestTable other(Uniform(2, {0.1f}), table.store());
    return std::string(other.TryExport(4, buckets).status().message());
  };
  EXPECT_THAT(wanted({4}), HasSubstr("wanted must be from 0 to 3, has 4"));
  EXPECT_THAT(wanted({-1}), HasSubstr("wanted must be from 0 to 3, has -1"));
  EXPECT_THAT(wanted({1, 2, 1}), HasSubstr("wanted must have each bucket once, has 1 twice"));
  // Imports rows of a table with a different number of slots, which must fail.
  ASSERT_TRUE(table.Apply("Adagrad", {1}, grad, {0.1f}).ok());
  std::vector<std::vector<Tensor>> lists;
  for (const Tensor& tensor : table.Export(1, {0})) lists.push_back({tensor});
  EXPECT_THAT(message(two.Import(lists)),
              HasSubstr("slots must be float[1,2,2], are float[1,1,2]. A checkpoint restores to a "
                        "table of the same width and optimizer"));
  for (auto& list : lists) list.push_back(list[0]);
  EXPECT_THAT(message(TestTable(Uniform(2, {0.1f})).Import(lists)), HasSubstr("key 1 comes twice"));
}

// Checks that no reader sees a row that is half updated, and that no update is lost.
TEST(DynamicTable, StepsMayOverlap) {
  const TestTable table({{"width", int64_t{16}}, {"slots", std::vector<float>{}}});
  constexpr int kThreads = 4, kRounds = 60;
  std::vector<int64_t> ids(200);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i);
  const Tensor ones = Tensor::Of<float>({200, 16}, std::vector<float>(200 * 16, 1));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        CHECK_OK(table.Apply("GradientDescent", ids, ones, {-1.0f}));
        const Tensor rows = table.Pull(ids);
        for (size_t i = 0; i < ids.size(); ++i) {
          const float* const row = rows.data<float>() + i * 16;
          for (int k = 1; k < 16; ++k) ASSERT_EQ(row[k], row[0]);
        }
        CHECK(table.Export(2, {0}).size() == 5);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Tensor rows = table.Pull(ids);
  for (const float x : rows.flat<float>()) EXPECT_EQ(x, kThreads * kRounds);
}

TEST(DynamicTable, ReplayMakesTheSameTable) {
  RecordingLog log;
  const auto store = std::make_shared<ResourceStore>();
  ASSERT_TRUE(store->AttachLog(&log).ok());
  Attrs attrs = Uniform(3, {0.1f});
  attrs["admit_after"] = int64_t{2};
  attrs["filter_counters"] = int64_t{1024};
  attrs["max_rows"] = int64_t{16 * 8};
  attrs["max_age"] = int64_t{40};
  const TestTable table(attrs, store);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int round = 0; round < 60; ++round) {
        std::vector<int64_t> ids(random() % 40);
        for (int64_t& id : ids) id = static_cast<int64_t>(random() % 500);
        CHECK_OK(table.Apply("Adagrad", ids, Gradients(random, std::ssize(ids), 3), {0.1f}, round));
        if (round % 7 == 0) CHECK_OK(table.Do("DynamicTableErase", {Ids({1, 2, 3, 4})}).status());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto replica = std::make_shared<ResourceStore>();
  const Status replayed = log.ReplayOn(*replica);
  ASSERT_TRUE(replayed.ok()) << replayed;
  const TestTable copy(attrs, replica);
  const auto text = [](const TestTable& t) {
    std::string all;
    for (const Tensor& tensor : t.Export(1, {0})) StrAppend(&all, tensor.ToString(1 << 20), "\n");
    return all;
  };
  EXPECT_EQ(text(copy), text(table));
  EXPECT_GT(table.Size(), 60);
  // Both tables behave the same from now on, so the state that an export does not show is equal,
  // too.
  std::mt19937_64 random(9);
  for (int round = 0; round < 20; ++round) {
    std::vector<int64_t> ids(40);
    for (int64_t& id : ids) id = static_cast<int64_t>(random() % 500);
    const Tensor grad = Gradients(random, 40, 3);
    for (const TestTable* each : {&table, &copy}) {
      ASSERT_TRUE(each->Apply("Adagrad", ids, grad, {0.1f}, 60 + round).ok());
    }
    ASSERT_EQ(text(copy), text(table));
  }
}

TEST(DynamicTable, ReplayRefusesWhatDoesNotFit) {
  RecordingLog log;
  const auto store = std::make_shared<ResourceStore>();
  ASSERT_TRUE(store->AttachLog(&log).ok());
  const TestTable table(Uniform(2), store);
  const Tensor grad = Tensor::Of<float>({1, 2}, {1, 2});
  ASSERT_TRUE(table.Apply("GradientDescent", {5}, grad, {0.1f}).ok());
  const auto entries = log.entries();
  ASSERT_EQ(entries.size(), 2u);
  const auto replay = [&](const char* action, std::vector<Tensor> values) {
    ResourceStore replica;
    StateReplayer replayer(replica, Env::Real());
    const auto apply = [&](const RecordingLog::Part& part, const std::string& as,
                           const std::vector<Tensor>& with) {
      const ResourceChange change{.resource = {part.container, part.name, part.type, part.id},
                                  .version = part.version,
                                  .action = as,
                                  .values = with};
      return replayer.Apply({.parts = {&change, 1}});
    };
    CHECK_OK(apply(entries[0].parts[0], entries[0].parts[0].action, entries[0].parts[0].values));
    return std::string(apply(entries[1].parts[0], action, values).message());
  };
  const auto good = entries[1].parts[0].values;
  EXPECT_EQ(replay("push", good), "");
  EXPECT_THAT(replay("push", {good[0], good[1]}), HasSubstr("2 values, expected 3"));
  EXPECT_THAT(replay("push", {good[0], Tensor::Of<float>({1, 3}, {1, 2, 3}), good[2]}),
              HasSubstr("rows must be float[?, 2]"));
  EXPECT_THAT(replay("push", {good[0], Tensor(DType::kFloat, {0, 2}), good[2]}),
              HasSubstr("0 rows, but 1 keys have one"));
  EXPECT_THAT(replay("push", {Ids({1, 2, 3, 4, 5, 6, 7, 8}), good[1], good[2]}),
              HasSubstr("the keys must be of one shard"));
  EXPECT_THAT(replay("erase", {Tensor::Scalar(1.0f)}), HasSubstr("ids of table"));
  EXPECT_THAT(replay("import", {good[2], good[0], good[1], good[0]}), HasSubstr("expected 5"));
  EXPECT_THAT(replay("import", {Tensor::Scalar<int64_t>(16), good[0], good[1], good[0], good[0]}),
              HasSubstr("the values are not the rows of a shard"));
  EXPECT_THAT(replay("grow", {}), HasSubstr("there is no such action"));
}

}  // namespace
}  // namespace penstock
