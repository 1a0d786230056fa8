// SPDX-License-Identifier: Apache-2.0
//
// Compares queues with a plain sequential model, and tests them under many threads.
#include "kernels/data/queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <random>
#include <thread>

#include "core/base/env.h"

namespace penstock {
namespace {

Element Number(int64_t n) { return {Tensor::Scalar<int64_t>(n)}; }

std::vector<Element> Numbers(int64_t first, int64_t count) {
  std::vector<Element> elements;
  for (int64_t i = 0; i < count; ++i) elements.push_back(Number(first + i));
  return elements;
}

std::shared_ptr<Queue> NewQueue(std::unique_ptr<ElementStore> store, int64_t capacity,
                                int64_t min = 0) {
  return std::make_shared<Queue>(
      "q", QueueSpec{.types = {DType::kInt64}, .capacity = capacity, .min_after_dequeue = min},
      std::move(store));
}

// The outcome of one operation.
struct Outcome {
  bool ended = false;
  StatusCode code = StatusCode::kOk;
  std::vector<int64_t> taken;
  bool operator==(const Outcome&) const = default;
};
std::ostream& operator<<(std::ostream& os, const Outcome& o) {
  os << (o.ended ? StatusCodeToString(o.code) : "waits") << " [";
  for (const int64_t n : o.taken) os << n << " ";
  return os << "]";
}

// A simple model of a first-in, first-out queue: elements and two lists of waiting operations.
class Model {
 public:
  explicit Model(int64_t capacity) : capacity_(capacity) {}

  struct Op {
    enum Kind { kEnqueue, kDequeue, kClose } kind;
    std::deque<int64_t> left;  // for kEnqueue: elements not yet in the queue
    int64_t count = 0;         // for kDequeue: the number of elements to take
    bool up_to = false;
    Outcome outcome;
  };

  size_t Add(Op op) {
    ops_.push_back(std::move(op));
    const size_t id = ops_.size() - 1;
    if (ops_[id].kind == Op::kEnqueue ? ops_[id].left.empty()
                                      : ops_[id].kind == Op::kDequeue && ops_[id].count == 0) {
      End(id, StatusCode::kOk);
      return id;
    }
    (ops_[id].kind == Op::kDequeue ? takers_ : givers_).push_back(id);
    Settle();
    return id;
  }
  void CloseAndCancel() {
    closed_ = true;
    for (const size_t id : givers_) End(id, StatusCode::kCancelled);
    givers_.clear();
    Settle();
  }
  void Cancel(size_t id) {
    for (auto* line : {&givers_, &takers_}) {
      const auto it = std::find(line->begin(), line->end(), id);
      if (it == line->end()) continue;
      line->erase(it);
      End(id, StatusCode::kAborted);
      Settle();
      return;
    }
  }

  const Outcome& outcome(size_t id) const { return ops_[id].outcome; }
  size_t num_ops() const { return ops_.size(); }
  int64_t size() const { return static_cast<int64_t>(held_.size()); }
  bool closed() const { return closed_; }

 private:
  void End(size_t id, StatusCode code) {
    Op& op = ops_[id];
    op.outcome.ended = true;
    op.outcome.code = code;
    if (code == StatusCode::kOk) return;
    held_.insert(held_.begin(), op.outcome.taken.begin(), op.outcome.taken.end());
    op.outcome.taken.clear();
  }
  // Does one elementary step of the first operation that can make progress; returns false if no
  // operation can.
  bool Move() {
    if (!givers_.empty()) {
      Op& op = ops_[givers_.front()];
      if (closed_ || op.kind == Op::kClose) {
        End(givers_.front(), closed_ ? StatusCode::kCancelled : StatusCode::kOk);
        givers_.pop_front();
        closed_ = true;
        return true;
      }
      if (capacity_ < 0 || size() < capacity_) {
        held_.push_back(op.left.front());
        op.left.pop_front();
        if (op.left.empty()) {
          End(givers_.front(), StatusCode::kOk);
          givers_.pop_front();
        }
        return true;
      }
    }
    if (takers_.empty()) return false;
    Op& op = ops_[takers_.front()];
    if (static_cast<int64_t>(op.outcome.taken.size()) < op.count && !held_.empty() &&
        !(closed_ && !op.up_to && size() + op.outcome.taken.size() < op.count)) {
      op.outcome.taken.push_back(held_.front());
      held_.pop_front();
      if (static_cast<int64_t>(op.outcome.taken.size()) < op.count) return true;
    } else if (!closed_) {
      return false;
    }
    const bool full = static_cast<int64_t>(op.outcome.taken.size()) == op.count;
    const bool enough = full || (op.up_to && !op.outcome.taken.empty());
    End(takers_.front(), enough ? StatusCode::kOk : StatusCode::kOutOfRange);
    takers_.pop_front();
    return true;
  }
  void Settle() {
    while (Move()) {
    }
  }

  const int64_t capacity_;
  std::vector<Op> ops_;
  std::deque<size_t> givers_, takers_;
  std::deque<int64_t> held_;
  bool closed_ = false;
};

// Runs the same random operations on a queue and on the model.
void CompareWithModel(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  const int64_t capacity = below(6) - 1;
  const auto queue = NewQueue(NewFifoStore(), capacity);
  Model model(capacity);
  std::deque<Outcome> outcomes;  // a deque: addresses stay valid
  std::deque<Cancellation> cancellations;
  int64_t next = 0;
  for (int i = 0; i < 60; ++i) {
    const int64_t dice = below(100);
    if (dice < 12 && !outcomes.empty()) {
      const size_t id = below(static_cast<int64_t>(outcomes.size()));
      cancellations[id].Cancel(Aborted("test"));
      model.Cancel(id);
    } else if (dice < 13) {
      queue->Close(true, nullptr, Done([](const Status&) {}));
      model.CloseAndCancel();
    } else {
      Outcome& outcome = outcomes.emplace_back();
      Cancellation* const cancellation = &cancellations.emplace_back();
      Done done([&outcome](const Status& status) {
        CHECK(!outcome.ended);
        outcome.ended = true;
        outcome.code = status.code();
      });
      if (dice < 15) {
        queue->Close(false, cancellation, std::move(done));
        model.Add({.kind = Model::Op::kClose});
      } else if (dice < 57) {
        const int64_t count = below(4);
        queue->Enqueue(Numbers(next, count), cancellation, std::move(done));
        Model::Op op{.kind = Model::Op::kEnqueue};
        for (int64_t k = 0; k < count; ++k) op.left.push_back(next++);
        model.Add(op);
      } else {
        const int64_t count = below(5);
        const bool up_to = below(2) == 0;
        const auto receive = [&outcome](const std::vector<Element>& elements) {
          for (const Element& e : elements) outcome.taken.push_back(e[0].scalar<int64_t>());
          return OkStatus();
        };
        queue->Dequeue(count, up_to, receive, cancellation, std::move(done));
        model.Add({.kind = Model::Op::kDequeue, .count = count, .up_to = up_to});
      }
    }
    for (size_t id = 0; id < outcomes.size(); ++id) {
      Outcome expected = model.outcome(id);
      if (!expected.ended)
        expected.taken
            .clear();  // excludes elements that a waiting operation has taken but not delivered
      ASSERT_EQ(outcomes[id], expected)
          << "seed " << seed << ", operation " << id << ", after " << i;
    }
    ASSERT_EQ(queue->size(), model.size()) << "seed " << seed << " after " << i;
    ASSERT_EQ(queue->closed(), model.closed()) << "seed " << seed << " after " << i;
  }
  for (Cancellation& cancellation : cancellations) cancellation.Cancel(Aborted("end"));
}

TEST(Queue, DoesWhatTheModelSays) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    CompareWithModel(seed);
    if (HasFatalFailure()) return;
  }
}

// Runs many threads at once. Checks that every element is dequeued once, that the elements of one
// producer are dequeued in order, and that every waiting operation continues. Set
// PENSTOCK_QUEUE_OPERATIONS=10000000 for a long run.
class Traffic {
 public:
  static constexpr int kProducers = 4, kConsumers = 4, kWindow = 16;

  Traffic(std::shared_ptr<Queue> queue, int64_t per_producer, bool fifo)
      : queue_(std::move(queue)), per_producer_(per_producer), fifo_(fifo) {}

  void Run() {
    std::vector<std::thread> producers, consumers;
    for (int p = 0; p < kProducers; ++p) producers.emplace_back([this, p] { Produce(p); });
    for (int c = 0; c < kConsumers; ++c) consumers.emplace_back([this, c] { Consume(c); });
    for (std::thread& thread : producers) thread.join();
    queue_->Close(false, nullptr, Done([](const Status& s) { CHECK_OK(s); }));
    for (std::thread& thread : consumers) thread.join();
    MutexLock lock(mu_);
    std::sort(taken_.begin(), taken_.end());
    ASSERT_EQ(taken_.size(), static_cast<size_t>(per_producer_ * kProducers));
    for (size_t i = 0; i < taken_.size(); ++i) {
      ASSERT_EQ(taken_[i], static_cast<int64_t>(i));
    }
  }

 private:
  // Waits until at most `at_most` operations of a thread wait.
  static void Await(std::atomic<int>& waiting, int at_most) {
    while (waiting.load() > at_most) std::this_thread::yield();
  }

  void Produce(int p) {
    std::atomic<int> waiting{0};
    std::mt19937_64 random(p);
    std::deque<Cancellation> cancellations;
    for (int64_t i = 0; i < per_producer_;) {
      const int64_t count = std::min<int64_t>(1 + random() % 3, per_producer_ - i);
      ++waiting;
      queue_->Enqueue(Numbers(p * per_producer_ + i, count), nullptr,
                      Done([&waiting](const Status& status) {
                        CHECK_OK(status);
                        --waiting;
                      }));
      i += count;
      Await(waiting, kWindow);
    }
    Await(waiting, 0);
  }

  void Consume(int c) {
    std::atomic<int> waiting{0};
    std::atomic<bool> end{false};
    std::mt19937_64 random(100 + c);
    while (!end) {
      // Some operations are cancelled; other operations must get the elements that they took.
      auto cancellation = std::make_shared<Cancellation>();
      ++waiting;
      queue_->Dequeue(
          1 + random() % 3, true, [this](const std::vector<Element>& e) { return Receive(e); },
          cancellation.get(), Done([&, cancellation](const Status& status) {
            if (status.code() == StatusCode::kOutOfRange) end = true;
            CHECK(status.ok() || end || status.code() == StatusCode::kAborted);
            --waiting;
          }));
      if (random() % 8 == 0) cancellation->Cancel(Aborted("test"));
      Await(waiting, kWindow);
    }
    Await(waiting, 0);
  }

  Status Receive(const std::vector<Element>& elements) {
    MutexLock lock(mu_);
    for (const Element& e : elements) taken_.push_back(e[0].scalar<int64_t>());
    for (size_t i = 1; fifo_ && i < elements.size(); ++i) {
      const int64_t a = elements[i - 1][0].scalar<int64_t>(), b = elements[i][0].scalar<int64_t>();
      CHECK(a / per_producer_ != b / per_producer_ || a < b, a, " came before ", b);
    }
    return OkStatus();
  }

  const std::shared_ptr<Queue> queue_;
  const int64_t per_producer_;
  const bool fifo_;
  Mutex mu_;
  std::vector<int64_t> taken_ ABSL_GUARDED_BY(mu_);
};

int64_t PerProducer() {
  const char* const wanted = std::getenv("PENSTOCK_QUEUE_OPERATIONS");
  const int64_t operations = wanted != nullptr ? std::atoll(wanted) : 100'000;
  return operations / Traffic::kProducers;  // per element: one enqueue and one dequeue
}

TEST(Queue, LosesNothingAndNobodyUnderManyThreads) {
  Traffic(NewQueue(NewFifoStore(), 10), PerProducer(), true).Run();
}
TEST(Queue, ShuffledLosesNothingAndNobodyUnderManyThreads) {
  const auto store = [] { return NewRandomStore(PhiloxNumbers(Philox::FromSeeds(1, 2))); };
  Traffic(NewQueue(store(), 20, 5), PerProducer(), false).Run();
}

// With `repeatable`, the order of elements does not depend on the timing of the calls.
TEST(Queue, ARepeatableShuffleIsTheSameAtAnyPace) {
  const auto drawn = [](int64_t put_at_once, int64_t taken_at_once, bool takers_first) {
    const auto queue = std::make_shared<Queue>(
        "q",
        QueueSpec{
            .types = {DType::kInt64}, .capacity = 7, .min_after_dequeue = 3, .repeatable = true},
        NewRandomStore(PhiloxNumbers(Philox::FromSeeds(1, 2))));
    std::vector<int64_t> taken;
    const auto take = [&] {
      for (int64_t i = 0; i < 60; i += taken_at_once) {
        queue->Dequeue(
            taken_at_once, true,
            [&](const std::vector<Element>& elements) {
              for (const Element& e : elements) taken.push_back(e[0].scalar<int64_t>());
              return OkStatus();
            },
            nullptr, Done([](const Status& status) { CHECK_OK(status); }));
      }
    };
    const auto end = [] { return Done([](const Status& status) { CHECK_OK(status); }); };
    if (takers_first) take();
    for (int64_t i = 0; i < 60; i += put_at_once) {
      queue->Enqueue(Numbers(i, put_at_once), nullptr, end());
    }
    EXPECT_EQ(queue->size(), takers_first ? 6 : 7) << "it waits to be full";
    queue->Close(false, nullptr, end());
    if (!takers_first) take();
    return taken;
  };
  const std::vector<int64_t> wanted = drawn(1, 1, true);
  ASSERT_EQ(wanted.size(), 60u);
  for (const bool takers_first : {true, false}) {
    EXPECT_EQ(drawn(1, 4, takers_first), wanted);
    EXPECT_EQ(drawn(20, 1, takers_first), wanted);
    EXPECT_EQ(drawn(60, 10, takers_first), wanted);
  }
}

std::vector<int64_t> TakeAll(ElementStore& store) {
  std::vector<int64_t> taken;
  while (store.size() > 0) taken.push_back(store.Take()[0].scalar<int64_t>());
  return taken;
}

// The reference is TensorFlow 2.21's tf.queue.RandomShuffleQueue(20, 5, seed=7), which has (seed,
// seed2) = (87654321, 7), with the elements 0...15.
TEST(ElementStore, ShufflesAsTensorFlow) {
  const auto store = NewRandomStore(PhiloxNumbers(Philox::FromSeeds(87654321, 7)));
  for (int64_t i = 0; i < 16; ++i) store->Put(Number(i));
  EXPECT_EQ(TakeAll(*store),
            std::vector<int64_t>({7, 15, 9, 4, 12, 3, 0, 6, 11, 8, 2, 5, 1, 13, 10, 14}));
}

TEST(ElementStore, PrioritiesThenOrderOfArrival) {
  const auto store = NewPriorityStore();
  const auto put = [&](int64_t priority, int64_t id) {
    store->Put({Tensor::Scalar<int64_t>(priority), Tensor::Scalar<int64_t>(id)});
  };
  put(5, 0), put(-1, 1), put(5, 2), put(0, 3), put(-1, 4);
  std::vector<Element> first;
  for (int i = 0; i < 4; ++i) first.push_back(store->Take());
  store->PutBack(std::move(first));
  std::vector<int64_t> ids;
  while (store->size() > 0) ids.push_back(store->Take()[1].scalar<int64_t>());
  EXPECT_EQ(ids, std::vector<int64_t>({1, 4, 3, 0, 2}));
}

TEST(Queue, ByPriorityManyLeaveAtOnce) {
  const auto queue = Queue::Make(
      "q", {.type = "PriorityQueue", .types = {DType::kInt64}, .shapes = {PartialShape::Scalar()}},
      {});
  std::vector<int64_t> taken;
  const auto receive = [&](const std::vector<Element>& elements) {
    for (const Element& e : elements) taken.push_back(e[0].scalar<int64_t>());
    return OkStatus();
  };
  int ended = 0;
  const auto end = [&] {
    return Done([&](const Status& status) {
      EXPECT_TRUE(status.ok()) << status;
      ++ended;
    });
  };
  queue->Enqueue(Numbers(8, 2), nullptr, end());
  queue->Dequeue(3, false, receive, nullptr, end());
  EXPECT_EQ(queue->size(), 2) << "nothing leaves before all three are there";
  queue->Enqueue(Numbers(1, 1), nullptr, end());
  EXPECT_EQ(taken, std::vector<int64_t>({1, 8, 9}));
  queue->Enqueue(Numbers(5, 1), nullptr, end());
  queue->Dequeue(3, true, receive, nullptr, end());
  queue->Close(false, nullptr, end());
  EXPECT_EQ(ended, 6) << "what is left of a queue that is closed";
  EXPECT_EQ(taken, std::vector<int64_t>({1, 8, 9, 5}));
}

TEST(Queue, DroppingItEndsWhatWaits) {
  const auto queue = NewQueue(NewFifoStore(), 1);
  std::vector<Status> ends;
  const auto end = [&] { return Done([&](Status status) { ends.push_back(std::move(status)); }); };
  const auto receive = [](const std::vector<Element>&) { return OkStatus(); };
  queue->Dequeue(2, false, receive, nullptr, end());
  queue->Enqueue(Numbers(0, 1), nullptr, end());
  ASSERT_EQ(ends.size(), 1u);
  queue->Shutdown();
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[1].code(), StatusCode::kCancelled);
  queue->Enqueue(Numbers(0, 1), nullptr, end());
  ASSERT_EQ(ends.size(), 3u);
  EXPECT_EQ(ends[2].code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace penstock
