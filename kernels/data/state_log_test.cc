// SPDX-License-Identifier: Apache-2.0
//
// Tests the records that queues and similar resources write to a StateLog, and their replay, with
// unfinished operations and with records that do not fit.
#include <gtest/gtest.h>

#include <memory>

#include "core/op/testing/recording_log.h"
#include "kernels/data/accumulator.h"
#include "kernels/data/barrier.h"
#include "kernels/data/queue.h"

namespace penstock {
namespace {

using Texts = std::vector<std::string>;

class QueueLog : public testing::Test {
 protected:
  QueueLog() { CHECK_OK(store_.AttachLog(&log_)); }

  std::shared_ptr<Queue> New(const char* type) {
    const auto make = [&]() -> StatusOr<std::shared_ptr<Resource>> {
      const QueueSpec spec{
          .type = type, .types = {DType::kInt64}, .shapes = {PartialShape::Scalar()}};
      return Queue::Make("q", spec, {7, 8});
    };
    return std::static_pointer_cast<Queue>(*store_.LookupOrCreate("", "q", type, make));
  }
  static void Put(Queue& queue, const std::vector<int64_t>& numbers) {
    std::vector<Element> elements;
    for (const int64_t number : numbers) elements.push_back({Tensor::Scalar(number)});
    queue.Enqueue(std::move(elements), nullptr, Done([](Status status) { CHECK_OK(status); }));
  }
  // Begins a dequeue. The text that it returns is "waits" until the dequeue ends, then the elements
  // or the error.
  static std::shared_ptr<std::string> Take(Queue& queue, int64_t count,
                                           Cancellation* cancellation = nullptr) {
    auto text = std::make_shared<std::string>("waits");
    const auto receive = [text](const std::vector<Element>& elements) {
      text->clear();
      for (const Element& element : elements) {
        StrAppend(text.get(), " ", element[0].scalar<int64_t>());
      }
      return OkStatus();
    };
    queue.Dequeue(count, false, receive, cancellation, Done([text](const Status& status) {
                    if (!status.ok()) *text = std::string(status.message());
                  }));
    return text;
  }
  std::shared_ptr<Queue> Replica() {
    replica_ = std::make_unique<ResourceStore>();
    CHECK_OK(log_.ReplayOn(*replica_));
    return std::static_pointer_cast<Queue>(*replica_->Lookup("", "q"));
  }
  Texts Actions() const {
    Texts texts = log_.Texts();
    texts.erase(texts.begin());  // drop the record of the queue's creation
    return texts;
  }

  RecordingLog log_;
  ResourceStore store_;
  std::unique_ptr<ResourceStore> replica_;
};

TEST_F(QueueLog, ABatchLargerThanTheQueue) {
  const auto queue = New("FIFOQueue");
  Put(*queue, {1, 2});
  const auto taken = Take(*queue, 3);
  EXPECT_EQ(*taken, "waits");
  // If the task were lost now, its unfinished steps would be lost, too. So the copy has put the
  // elements that these steps had taken back to their places.
  EXPECT_EQ(*Take(*Replica(), 2), " 1 2");
  Put(*queue, {3, 4});
  EXPECT_EQ(*taken, " 1 2 3");
  EXPECT_EQ(Actions(), (Texts{"q 1 enqueue int64[] 1 int64[] 2", "q 2 take int64[] 2",
                              "q 3 enqueue int64[] 3 int64[] 4", "q 4 dequeue int64[] 1"}));
  EXPECT_EQ(*Take(*Replica(), 1), " 4");
}

TEST_F(QueueLog, CancelledOperationsPutBack) {
  for (const char* type : {"FIFOQueue", "RandomShuffleQueue"}) {
    log_.Clear();
    store_.ClearAll();
    log_.Clear();
    const auto queue = New(type);
    Put(*queue, {1, 2, 3, 4});
    Cancellation cancellation;
    const auto taken = Take(*queue, 5, &cancellation);
    Take(*queue, 1);  // waits for the first Take to end
    cancellation.Cancel(Cancelled("enough"));
    EXPECT_EQ(*taken, "enough");
    EXPECT_EQ(Actions()[2], "q 3 put_back");
    const auto replica = Replica();
    EXPECT_EQ(replica->size(), 3);
    // The replica continues the same sequence of random numbers.
    EXPECT_EQ(*Take(*replica, 3), *Take(*queue, 3)) << type;
  }
}

TEST_F(QueueLog, PrioritiesAndClosing) {
  const auto queue = New("PriorityQueue");
  Put(*queue, {5, 9});
  const auto taken = Take(*queue, 3);
  Put(*queue, {1, 2});  // 1 and 2 leave first: the waiting Take has not taken 5 and 9 yet
  EXPECT_EQ(*taken, " 1 2 5");
  queue->Close(true, nullptr, Done([](Status status) { CHECK_OK(status); }));
  queue->Close(true, nullptr, Done([](Status status) { CHECK_OK(status); }));
  EXPECT_EQ(Actions().back(), "q 4 close");
  const auto replica = Replica();
  EXPECT_EQ(replica->DebugString(), queue->DebugString());
  EXPECT_EQ(*Take(*replica, 1), *Take(*queue, 1));
}

TEST_F(QueueLog, RecordsThatDoNotFit) {
  const auto queue = New("FIFOQueue");
  Put(*queue, {1});
  const auto replay = [&](const char* action, std::vector<Tensor> values) {
    return queue->Replay({.action = action, .values = std::move(values)}, {}).code();
  };
  const StatusCode invalid = StatusCode::kInvalidArgument;
  EXPECT_EQ(replay("enqueue", {Tensor::Scalar(1.f)}), invalid);
  EXPECT_EQ(replay("enqueue", {Tensor::Vector<int64_t>({1})}), invalid);
  EXPECT_EQ(replay("enqueue", {Tensor()}), invalid);
  EXPECT_EQ(replay("take", {Value(int64_t{2})}), invalid);
  EXPECT_EQ(replay("dequeue", {Value(int64_t{-1})}), invalid);
  EXPECT_EQ(replay("dequeue", {}), invalid);
  EXPECT_EQ(replay("steal", {}), invalid);
  EXPECT_EQ(queue->size(), 1);
  EXPECT_EQ(queue->version(), 1);
}

// Calls the function that makes each class from the values of a StateLog, with one value missing or
// of a wrong type.
TEST(StateLogMakers, RefuseWhatDoesNotFit) {
  const QueueSpec queue{.types = {DType::kFloat}, .shapes = {PartialShape({2})}};
  const std::vector<std::shared_ptr<Resource>> resources = {
      Queue::Make("q", queue, {}),
      std::make_shared<Barrier>(
          "b", Barrier::Spec{{DType::kFloat, DType::kInt64}, {{PartialShape({2})}, {}}}),
      std::make_shared<Accumulator>(
          "a", AccumulatorSpec{.dtype = DType::kFloat, .shape = PartialShape({2})}),
  };
  const auto create = [](const Resource& resource, std::vector<Tensor> values) {
    ResourceStore store;
    const ResourceChange change{
        {"c", "r", resource.TypeName(), 1}, 0, kCreateAction, std::move(values)};
    return StateReplayer(store, Env::Real()).Apply({.origin = {}, .parts = {&change, 1}});
  };
  for (const auto& resource : resources) {
    const std::vector<Tensor> values = resource->Describe();
    EXPECT_TRUE(create(*resource, values).ok()) << create(*resource, values);
    for (size_t i = 0; i < values.size(); ++i) {
      std::vector<Tensor> changed = values;
      changed[i] = Tensor::Scalar<std::string>("odd");
      EXPECT_EQ(create(*resource, changed).code(), StatusCode::kInvalidArgument) << i;
      changed.erase(changed.begin() + i);
      EXPECT_EQ(create(*resource, changed).code(), StatusCode::kInvalidArgument) << i;
    }
  }
}

TEST(BarrierLog, RecordsThatDoNotFit) {
  Barrier barrier("b", {{DType::kFloat}, {PartialShape({1})}});
  const auto replay = [&](const char* action, std::vector<Tensor> values) {
    return barrier.Replay({.action = action, .values = std::move(values)}, {}).code();
  };
  const StatusCode invalid = StatusCode::kInvalidArgument;
  const Tensor key = Tensor::Vector<std::string>({"k"}), zero = Value(int64_t{0});
  EXPECT_EQ(replay("insert", {Value(int64_t{1}), key, Tensor::Vector<float>({1})}), invalid);
  EXPECT_EQ(replay("insert", {zero, key}), invalid);
  EXPECT_EQ(replay("insert", {zero, Tensor::Scalar(1.f), Tensor::Vector<float>({1})}), invalid);
  EXPECT_EQ(replay("insert", {zero, key, Tensor::Scalar(1.f)}), invalid);
  EXPECT_EQ(replay("take", {Value(int64_t{1})}), invalid);
  EXPECT_EQ(replay("take", {}), invalid);
  EXPECT_EQ(barrier.version(), 0);
}

TEST(AccumulatorLog, RecordsThatDoNotFit) {
  Accumulator dense("d", {.dtype = DType::kFloat, .shape = PartialShape({2})});
  Accumulator sparse("s", {.dtype = DType::kFloat, .shape = PartialShape(), .sparse = true});
  const auto replay = [](Accumulator& accumulator, std::vector<Tensor> values) {
    return accumulator.Replay({.action = "add", .values = std::move(values)}, {}).code();
  };
  const StatusCode invalid = StatusCode::kInvalidArgument;
  const Tensor step = Value(int64_t{0}), rows = Tensor::Of<float>({1, 1}, {1});
  EXPECT_EQ(replay(dense, {step}), invalid);
  EXPECT_EQ(replay(dense, {step, Tensor::Vector<int32_t>({1, 2})}), invalid);
  EXPECT_EQ(replay(dense, {step, Tensor::Vector<float>({1})}), invalid);
  EXPECT_EQ(replay(sparse, {step, rows}), invalid);
  EXPECT_EQ(replay(sparse, {step, rows, Tensor::Vector<float>({1})}), invalid);
  EXPECT_EQ(replay(sparse, {step, rows, Tensor::Vector<int64_t>({-1})}), invalid);
  EXPECT_EQ(replay(sparse, {step, rows, Tensor::Vector<int64_t>({0}), rows}), invalid);
  EXPECT_EQ(dense.version() + sparse.version(), 0);
}

}  // namespace
}  // namespace penstock
