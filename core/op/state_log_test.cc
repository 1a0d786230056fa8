// SPDX-License-Identifier: Apache-2.0
#include "core/op/state_log.h"

#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "core/base/mutex.h"
#include "core/op/resource.h"
#include "core/op/state_replay.h"
#include "core/op/testing/recording_log.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using Texts = std::vector<std::string>;

// A number with an Add operation.
class LoggedCounter : public Resource {
 public:
  explicit LoggedCounter(const char* type = "LoggedCounter") : type_(type) {}
  const char* TypeName() const override { return type_; }
  std::string DebugString() const override { return StrCat("LoggedCounter ", count); }
  const char* OpaqueReason() const override {
    return type_ == string_view("LoggedCounter") ? nullptr : "it counts what is outside";
  }
  std::vector<Tensor> Describe() const override { return {Value(count)}; }
  Status Replay(const ResourceChange& change, const UpdateOrigin& origin) override {
    const ReplayValues values(change);
    if (change.action != "add") return values.UnknownAction();
    RETURN_IF_ERROR(values.Expect(1));
    ASSIGN_OR_RETURN(const int64_t amount, values.Int(0));
    Add(amount, origin);
    return OkStatus();
  }

  void Add(int64_t amount, const UpdateOrigin& origin) {
    MutexLock lock(mu);
    count += amount;
    Changed(origin, "add", [&] {
      ++records;
      return std::vector<Tensor>{Value(amount)};
    });
  }

  Mutex mu;
  int64_t count = 0;
  int records = 0;

 private:
  const char* const type_;
};

const ResourceMakerDeclaration maker("LoggedCounter",
                                     [](const std::string&, const ReplayValues& values,
                                        Env&) -> StatusOr<std::shared_ptr<Resource>> {
                                       RETURN_IF_ERROR(values.Expect(1));
                                       auto counter = std::make_shared<LoggedCounter>();
                                       ASSIGN_OR_RETURN(counter->count, values.Int(0));
                                       return counter;
                                     });

std::shared_ptr<LoggedCounter> CounterIn(ResourceStore& store, const char* container,
                                         const char* name, const char* type = "LoggedCounter",
                                         const UpdateOrigin& origin = {}) {
  const auto make = [&]() -> StatusOr<std::shared_ptr<Resource>> {
    return std::make_shared<LoggedCounter>(type);
  };
  const auto made = store.LookupOrCreate(container, name, type, make, origin);
  CHECK_OK(made.status());
  return std::static_pointer_cast<LoggedCounter>(*made);
}

TEST(StateLog, SeesEveryChangeAndWhoMadeIt) {
  RecordingLog log;
  ResourceStore store;
  ASSERT_TRUE(store.AttachLog(&log).ok());
  const UpdateOrigin origin{7, 9, "/job:ps/replica:0/task:1/device:CPU:0", "train/add"};
  CounterIn(store, "c", "a", "LoggedCounter", origin)->Add(5, origin);
  CounterIn(store, "c", "a")->Add(-1, {.step_id = 8});
  ASSERT_TRUE(store.Remove("c", "a", {.step_id = 9}).ok());
  EXPECT_EQ(log.Texts(), (Texts{"a 0 create int64[] 0", "a 1 add int64[] 5", "a 2 add int64[] -1",
                                "a 2 remove"}));
  const auto entries = log.entries();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(entries[i].step_id, 7);
    EXPECT_EQ(entries[i].incarnation, 9);
    EXPECT_EQ(entries[i].device, origin.device);
    EXPECT_EQ(entries[i].node, "train/add");
    EXPECT_EQ(entries[i].parts[0].container, "c");
    EXPECT_EQ(entries[i].parts[0].type, "LoggedCounter");
    EXPECT_EQ(entries[i].parts[0].opaque, "");
  }
  EXPECT_EQ(entries[3].step_id, 9);
}

TEST(StateLog, ARemovalById) {
  RecordingLog log;
  ResourceStore store;
  ASSERT_TRUE(store.AttachLog(&log).ok());
  CounterIn(store, "c", "a");
  const uint64_t first = log.entries()[0].parts[0].id;
  EXPECT_EQ(store.RemoveIfId("c", "b", first).code(), StatusCode::kNotFound);
  ASSERT_TRUE(store.Remove("c", "a").ok());
  CounterIn(store, "c", "a");
  log.Clear();
  // The new resource has another id.
  EXPECT_EQ(store.RemoveIfId("c", "a", first),
            NotFound("the resource 'a' in container 'c' is another one"));
  EXPECT_TRUE(store.Lookup("c", "a").ok());
  EXPECT_TRUE(store.RemoveIfId("c", "a", first + 1, {.step_id = 9}).ok());
  EXPECT_FALSE(store.Lookup("c", "a").ok());
  EXPECT_EQ(log.Texts(), Texts{"a 0 remove"});
  EXPECT_EQ(log.entries()[0].step_id, 9);

  ResourceStore unlogged;
  CounterIn(unlogged, "c", "a");
  EXPECT_EQ(unlogged.RemoveIfId("c", "a", first).code(), StatusCode::kNotFound);
}

TEST(StateLog, WithoutOneNothingIsPrepared) {
  ResourceStore store;
  const auto counter = CounterIn(store, "", "a");
  counter->Add(1, {});
  EXPECT_EQ(counter->records, 0);
  EXPECT_EQ(counter->version(), 1);
}

TEST(StateLog, IsAttachedOnceAndBeforeTheFirstResource) {
  RecordingLog log;
  ResourceStore store;
  ASSERT_TRUE(store.AttachLog(&log).ok());
  EXPECT_EQ(store.AttachLog(&log), FailedPrecondition("the resource store has a log already"));
  ResourceStore used;
  CounterIn(used, "", "a");
  EXPECT_EQ(used.AttachLog(&log),
            FailedPrecondition("a log must be attached before there are resources; there is a "
                               "LoggedCounter 'a' in container 'localhost'"));
}

TEST(StateLog, ClearingIsOneRecord) {
  RecordingLog log;
  ResourceStore store;
  ASSERT_TRUE(store.AttachLog(&log).ok());
  CounterIn(store, "c", "a");
  CounterIn(store, "c", "b");
  CounterIn(store, "d", "c");
  log.Clear();
  store.ClearContainer("c");
  store.ClearContainer("c");  // does nothing
  store.ClearAll();
  EXPECT_EQ(log.Texts(), (Texts{"a 0 remove; b 0 remove", "c 0 remove"}));
}

TEST(StateReplayer, MakesTheSameState) {
  RecordingLog log, replica_log;
  ResourceStore store, replica;
  ASSERT_TRUE(store.AttachLog(&log).ok());
  ASSERT_TRUE(replica.AttachLog(&replica_log).ok());
  const auto first = CounterIn(store, "c", "a");
  first->Add(1, {.step_id = 3});
  ASSERT_TRUE(store.Remove("c", "a").ok());
  CounterIn(store, "c", "a")->Add(10, {});
  first->Add(100, {});  // a step still has its handle
  CounterIn(store, "", "b")->Add(2, {});

  ASSERT_TRUE(log.ReplayOn(replica).ok());
  EXPECT_EQ(replica.List(), store.List());
  EXPECT_EQ(CounterIn(replica, "c", "a")->count, 10);
  EXPECT_EQ(CounterIn(replica, "", "b")->count, 2);
  // Replaying the replayed store's log gives the same records, except the change of the removed
  // resource.
  Texts expected = log.Texts();
  expected.erase(expected.begin() + 5);
  EXPECT_EQ(replica_log.Texts(), expected);
  EXPECT_EQ(replica_log.entries()[1].step_id, 3);
}

TEST(StateReplayer, NoticesWhatIsMissing) {
  RecordingLog log;
  ResourceStore store;
  ASSERT_TRUE(store.AttachLog(&log).ok());
  const auto counter = CounterIn(store, "", "a");
  counter->Add(1, {});
  counter->Add(2, {});
  const auto entries = log.entries();
  const auto apply = [&](const std::vector<int>& order) {
    ResourceStore replica;
    StateReplayer replayer(replica, Env::Real());
    for (const int i : order) RETURN_IF_ERROR(RecordingLog::Apply(entries[i], replayer));
    return OkStatus();
  };
  EXPECT_TRUE(apply({0, 1, 2}).ok());
  for (const std::vector<int>& order :
       std::vector<std::vector<int>>{{1}, {0, 2}, {0, 1, 1}, {0, 0}}) {
    EXPECT_EQ(apply(order).code(), StatusCode::kDataLoss) << apply(order);
  }
}

TEST(StateReplayer, RefusesWhatDoesNotFit) {
  const auto apply = [](const char* type, const char* action, std::vector<Tensor> values,
                        const char* opaque = "") {
    ResourceStore replica;
    StateReplayer replayer(replica, Env::Real());
    const ResourceChange create{
        {"c", "a", "LoggedCounter", 1}, 0, kCreateAction, {Value(int64_t{0})}};
    RETURN_IF_ERROR(replayer.Apply({.origin = {}, .parts = {&create, 1}}));
    const bool creates = action == string_view(kCreateAction);
    const ResourceChange change{
        {"c", creates ? "b" : "a", type, creates ? 2u : 1u}, 1, action, std::move(values), opaque};
    return replayer.Apply({.origin = {}, .parts = {&change, 1}});
  };
  EXPECT_TRUE(apply("LoggedCounter", "add", {Value(int64_t{1})}).ok());
  EXPECT_EQ(apply("LoggedCounter", "add", {}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(apply("LoggedCounter", "add", {Tensor::Scalar(1.f)}).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(apply("LoggedCounter", "burn", {}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(apply("Unheard", kCreateAction, {}).code(), StatusCode::kInvalidArgument);
  const Status opaque = apply("Outside", kCreateAction, {}, "it counts what is outside");
  EXPECT_EQ(opaque.code(), StatusCode::kUnimplemented);
  EXPECT_NE(opaque.message().find("a Outside cannot be replayed: it counts what is outside"),
            string_view::npos)
      << opaque;
}

TEST(StateReplayer, RefusesRecordsThatContradictEarlierOnes) {
  ResourceStore replica;
  StateReplayer replayer(replica, Env::Real());
  const auto apply = [&](const char* name, const char* type, uint64_t id, int64_t version,
                         const char* action, std::vector<Tensor> values) {
    const ResourceChange change{{"c", name, type, id}, version, action, std::move(values)};
    return replayer.Apply({.origin = {}, .parts = {&change, 1}}).code();
  };
  const std::vector<Tensor> zero = {Value(int64_t{0})};
  EXPECT_EQ(apply("a", "LoggedCounter", 1, 0, kCreateAction, zero), StatusCode::kOk);
  EXPECT_EQ(apply("b", "LoggedCounter", 2, 0, kCreateAction, zero), StatusCode::kOk);
  EXPECT_EQ(apply("a", "Queue", 1, 1, "add", zero), StatusCode::kDataLoss);
  EXPECT_EQ(apply("b", "LoggedCounter", 1, 0, kRemoveAction, {}), StatusCode::kDataLoss);
  EXPECT_EQ(replica.List().size(), 2u);
  EXPECT_EQ(
      apply("c", "LoggedCounter", 3, std::numeric_limits<int64_t>::max(), kCreateAction, zero),
      StatusCode::kInvalidArgument);
  EXPECT_EQ(apply("c", "LoggedCounter", 3, -1, kCreateAction, zero), StatusCode::kInvalidArgument);
  EXPECT_EQ(replica.List().size(), 2u);
}

TEST(StateLog, OpaqueResourcesSayWhy) {
  RecordingLog log;
  ResourceStore store, replica;
  ASSERT_TRUE(store.AttachLog(&log).ok());
  CounterIn(store, "", "a", "Outside")->Add(1, {});
  EXPECT_EQ(log.entries()[1].parts[0].opaque, "it counts what is outside");
  EXPECT_EQ(log.ReplayOn(replica).code(), StatusCode::kUnimplemented);
}

TEST(ReplayValues, ShapesAndTypes) {
  ResourceChange change{{"c", "a", "LoggedCounter", 1}, 0, "create"};
  for (const PartialShape& shape :
       {PartialShape(), PartialShape({2, -1}), PartialShape::Scalar()}) {
    change.values = {Value(shape), Value(DType::kBfloat16)};
    EXPECT_EQ(*ReplayValues(change).GetShape(0), shape);
    EXPECT_EQ(*ReplayValues(change).Type(1), DType::kBfloat16);
  }
  for (const int64_t no_type : {0, 24, -1, 1000}) {
    change.values = {Value(no_type)};
    EXPECT_FALSE(ReplayValues(change).Type(0).ok());
  }
  change.values = {Tensor::Vector<int64_t>({-2}), Tensor::Scalar(1.f)};
  EXPECT_FALSE(ReplayValues(change).GetShape(0).ok());
  EXPECT_FALSE(ReplayValues(change).GetShape(1).ok());
}

// If several threads update a resource, its records still come in the order of its versions.
TEST(StateLog, RecordsOfAResourceComeInOrder) {
  RecordingLog log;
  ResourceStore store, replica;
  ASSERT_TRUE(store.AttachLog(&log).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        const char* name = (i + t) % 2 == 0 ? "a" : "b";
        CounterIn(store, "", name)->Add(t, {.step_id = i});
        if (i % 50 == 49) store.Remove("", name).IgnoreError();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(log.ReplayOn(replica).ok()) << log.ReplayOn(replica);
  EXPECT_EQ(replica.List(), store.List());
  for (const auto& [container, name] : store.List()) {
    EXPECT_EQ(CounterIn(replica, "", name.c_str())->count,
              CounterIn(store, "", name.c_str())->count);
  }
}

}  // namespace
}  // namespace penstock
