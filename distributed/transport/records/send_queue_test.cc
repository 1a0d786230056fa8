// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/records/send_queue.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "distributed/transport/records/commands.h"
#include "distributed/transport/testing/test_key.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;

class SendQueueTest : public testing::Test {
 protected:
  using Queue = SendQueue<int>;

  void Push(int64_t step_id, int64_t bytes) {
    const HashedKey key = TestKey("edge");
    Tensor value(DType::kUint8, Shape({bytes}));
    memory_.push_back(value);
    const size_t i = memory_.size() - 1;
    queue_.Push(OutgoingTensor(step_id, key, std::move(value), /*is_dead=*/false),
                [this, step_id, i] {
                  // The queue has dropped its reference before it calls `handed_over`.
                  EXPECT_TRUE(memory_[i].buffer()->unique()) << i;
                  handed_over_.push_back(step_id);
                });
  }
  void End() {
    EXPECT_TRUE(handed_over_.empty());
    Queue::End(std::exchange(ended_, {}));
  }

  std::vector<char> data_ = std::vector<char>(1 << 16);
  RingPositions positions_;
  TensorRecordWriter writer_{{&positions_, data_.data(), data_.size()}};
  std::vector<Tensor> memory_;
  std::vector<int64_t> handed_over_;
  Queue queue_;
  Queue::Ended ended_;
};

TEST_F(SendQueueTest, SmallTensorsLeaveInOrderWhileThereIsRoom) {
  for (int64_t step_id = 1; step_id <= 3; ++step_id) Push(step_id, 30'000);
  ASSERT_TRUE(queue_.SendSmall(writer_, &ended_).ok());
  End();
  EXPECT_THAT(handed_over_, ElementsAre(1, 2));
  EXPECT_FALSE(queue_.empty());
}

TEST_F(SendQueueTest, LargeTensorsAreLeftToTheSink) {
  Push(1, 1 << 20);
  Push(2, 100);
  queue_.PushRefusal(3, Internal("no"));
  ASSERT_TRUE(queue_.SendSmall(writer_, &ended_).ok());
  End();
  EXPECT_THAT(handed_over_, ElementsAre(2));
  ASSERT_EQ(queue_.large().size(), 1);
  // If another thread comes while the lock is released, it finds that a thread is already sending.
  EXPECT_TRUE(queue_.BeginLarge());
  EXPECT_FALSE(queue_.BeginLarge());
  queue_.EndLarge();
  EXPECT_TRUE(queue_.BeginLarge());
}

TEST_F(SendQueueTest, AStepsTensorsAreDropped) {
  for (const int64_t bytes : {100, 1 << 20}) {
    for (const int64_t step_id : {1, 2}) Push(step_id, bytes);
  }
  queue_.Drop(1, &ended_);
  End();
  EXPECT_THAT(handed_over_, ElementsAre(1, 1));
  handed_over_.clear();
  queue_.DropAll(&ended_);
  End();
  EXPECT_THAT(handed_over_, ElementsAre(2, 2));
  EXPECT_TRUE(queue_.empty());
}

TEST(CommandsTest, ReadsTheRecordsThatWereWritten) {
  std::vector<char> data(4 * sizeof(Command));
  const auto positions = std::make_unique<RingPositions>();
  const RingMemory memory{positions.get(), data.data(), data.size()};
  RingWriter writer(memory);
  RingReader reader(memory);
  std::deque<Command> waiting;
  for (uint64_t i = 1; i <= 5; ++i) {
    waiting.push_back({i % 2 == 0 ? Command::kDone : Command::kSubscribe, i});
  }
  ASSERT_TRUE(WriteCommands(writer, &waiting).ok());
  EXPECT_EQ(waiting.size(), 1);  // the ring is full
  std::vector<int64_t> subscribed;
  std::vector<uint64_t> done;
  const auto take = [&](uint64_t value) {
    done.push_back(value);
    return value != 4;
  };
  // ReadCommands returns an error at the value that is not outstanding.
  const StatusOr<bool> read = ReadCommands(reader, "/job:worker/task:0", &subscribed, take);
  EXPECT_EQ(read.status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(std::string(read.status().message()), testing::HasSubstr("kind 2 for 4"));
  EXPECT_THAT(subscribed, ElementsAre(1, 3));
  EXPECT_THAT(done, ElementsAre(2, 4));
}

TEST(CommandsTest, HalfACommandEndsTheConnection) {
  std::vector<char> data(64);
  const auto positions = std::make_unique<RingPositions>();
  RingWriter writer({positions.get(), data.data(), data.size()});
  RingReader reader({positions.get(), data.data(), data.size()});
  std::vector<int64_t> subscribed;
  const auto take = [](uint64_t) { return true; };
  EXPECT_FALSE(*ReadCommands(reader, "c", &subscribed, take));
  writer.Append("half", 4);
  writer.Publish();
  EXPECT_EQ(ReadCommands(reader, "c", &subscribed, take).status().code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace penstock
