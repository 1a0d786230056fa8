// SPDX-License-Identifier: Apache-2.0
#include "core/op/variable.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/tensor/allocator.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

Status AddTo(Variable& variable, int64_t amount) {
  Variable* const one[] = {&variable};
  return Variable::Update(one, {.step_id = 1}, [&](absl::Span<Tensor* const> values) {
    for (int64_t& element : values[0]->mutable_flat<int64_t>()) element += amount;
    return OkStatus();
  });
}

TEST(Variable, StoryOfOne) {
  Variable w("w", DType::kInt64, {2});
  EXPECT_FALSE(w.initialized());
  EXPECT_EQ(w.version(), 0);
  EXPECT_EQ(w.DebugString(), "Variable 'w' int64[2] version 0, not initialized");
  const Status uninitialized = FailedPrecondition("Attempting to use uninitialized value w");
  EXPECT_EQ(w.Read().status(), uninitialized);
  EXPECT_EQ(w.Inspect([](const Tensor&) { return OkStatus(); }), uninitialized);
  EXPECT_EQ(AddTo(w, 1), uninitialized);

  ASSERT_TRUE(w.Assign(Tensor::Vector<int64_t>({1, 2}), true, {}).ok());
  EXPECT_TRUE(w.initialized());
  EXPECT_EQ(w.version(), 1);
  ASSERT_TRUE(AddTo(w, 10).ok());
  EXPECT_EQ(w.version(), 2);
  EXPECT_EQ(w.Read()->ToString(), "int64[2] 11 12");
  EXPECT_EQ(w.DebugString(), "Variable 'w' int64[2] version 2");
}

TEST(Variable, AssignChecksTypeAndShape) {
  Variable w("w", DType::kFloat, {2});
  EXPECT_EQ(w.Assign(Tensor::Scalar<int32_t>(1), true, {}),
            InvalidArgument("variable 'w' holds float, assigned a value of int32"));
  EXPECT_EQ(w.Assign(Tensor::Vector<float>({1, 2, 3}), true, {}),
            InvalidArgument("Assign requires shapes of both tensors to match. "
                            "lhs shape= [2] rhs shape= [3] (variable 'w')"));
  EXPECT_FALSE(w.initialized());
  ASSERT_TRUE(w.Assign(Tensor::Vector<float>({1, 2, 3}), false, {}).ok());
  EXPECT_EQ(w.shape(), PartialShape({3}));
  ASSERT_TRUE(w.Assign(Tensor::Vector<float>({4, 5, 6}), true, {}).ok());
  EXPECT_EQ(w.version(), 2);

  Variable rows("rows", DType::kFloat, {-1, 2});
  EXPECT_TRUE(rows.Assign(Tensor::Of<float>({1, 2}, {1, 2}), true, {}).ok());
  EXPECT_TRUE(rows.Assign(Tensor::Of<float>({2, 2}, {1, 2, 3, 4}), true, {}).ok());
  EXPECT_EQ(rows.shape(), PartialShape({-1, 2}));
}

TEST(Variable, DeclarationsMustAgree) {
  Variable w("w", DType::kFloat, {2, 3});
  ASSERT_TRUE(w.Declare("a", {2, 3}).ok());
  ASSERT_TRUE(w.Declare("a", {2, 3}).ok());  // two steps of one program
  EXPECT_TRUE(w.Declare("b", {2, -1}).ok());
  EXPECT_TRUE(w.Declare("c", PartialShape()).ok());
  const Status status = w.Declare("d", {4, 3});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message().substr(0, 81),
            "variable 'w' is in use as float[2,3] by node 'a', where this node says float[4,3]");
  w.Withdraw("a", {2, 3});
  w.Withdraw("b", {2, -1});
  EXPECT_FALSE(w.Declare("d", {4, 3}).ok());
  w.Withdraw("a", {2, 3});
  EXPECT_TRUE(w.Declare("d", {4, 3}).ok());
  EXPECT_FALSE(w.Declare("a", {2, 3}).ok());
}

TEST(Variable, ANewProgramMayReplaceTheShape) {
  Variable w("w", DType::kInt64, {2});
  const auto assign = [&](const std::vector<int64_t>& value) {
    return w.Assign(Tensor::Vector<int64_t>(value), /*validate_shape=*/true, {}).ok();
  };
  ASSERT_TRUE(w.Declare("old", {2}).ok());
  ASSERT_TRUE(assign({1, 2}));
  EXPECT_FALSE(assign({1, 2, 3}));
  w.Withdraw("old", {2});
  EXPECT_FALSE(assign({1, 2, 3}));  // no program declares this shape
  ASSERT_TRUE(w.Declare("new", {3}).ok());
  EXPECT_FALSE(assign({1, 2, 3, 4}));
  EXPECT_TRUE(assign({1, 2, 3}));
  EXPECT_FALSE(assign({1, 2}));
  EXPECT_EQ(w.shape(), PartialShape({3}));
  w.Withdraw("new", {3});
  // The shapes of the old and the new program may have unknown dimensions.
  ASSERT_TRUE(w.Declare("any", {-1}).ok());
  EXPECT_FALSE(assign({1, 2})) << "the value has a shape that the program may have given it";
  w.Withdraw("any", {-1});
  Variable v("v", DType::kInt64, {-1});
  ASSERT_TRUE(v.Assign(Tensor::Vector<int64_t>({1, 2}), true, {}).ok());
  ASSERT_TRUE(v.Declare("new", {3}).ok());
  EXPECT_TRUE(v.MayReplaceShape({3}));
  EXPECT_FALSE(v.MayReplaceShape({2}));
  Variable m("m", DType::kInt64, {2, 2});
  ASSERT_TRUE(m.Assign(Tensor(DType::kInt64, {2, 2}), true, {}).ok());
  ASSERT_TRUE(m.Declare("new", {-1, 3}).ok());
  EXPECT_TRUE(m.Assign(Tensor(DType::kInt64, {4, 3}), true, {}).ok());
  EXPECT_EQ(m.shape(), PartialShape({-1, 3}));
  EXPECT_TRUE(m.Assign(Tensor(DType::kInt64, {5, 3}), true, {}).ok());
}

TEST(Variable, NeverUpdatesForeignMemory) {
  static const int64_t memory[] = {1, 2};
  class Foreign final : public Buffer {
   public:
    Foreign() : Buffer(const_cast<int64_t*>(memory), sizeof(memory)) {}
  };
  Variable w("w", DType::kInt64, {2});
  ASSERT_TRUE(w.Assign(Tensor::FromBuffer(DType::kInt64, {2}, new Foreign), true, {}).ok());
  EXPECT_EQ(w.Read()->raw_data(), memory);
  ASSERT_TRUE(AddTo(w, 1).ok());
  EXPECT_EQ(w.Read()->ToString(), "int64[2] 2 3");
  EXPECT_EQ(memory[0], 1);
  EXPECT_EQ(memory[1], 2);
  const void* place = w.Read()->raw_data();
  ASSERT_TRUE(AddTo(w, 1).ok());  // now `w` has a buffer of its own
  EXPECT_EQ(w.Read()->raw_data(), place);
}

TEST(Variable, UpdatesInPlaceUnlessSomebodyReads) {
  Variable w("w", DType::kInt64, {2});
  ASSERT_TRUE(w.Assign(Tensor::Vector<int64_t>({1, 2}), true, {}).ok());
  const void* place = w.Read()->raw_data();
  ASSERT_TRUE(AddTo(w, 1).ok());
  EXPECT_EQ(w.Read()->raw_data(), place);
  // Inspect does not share the buffer.
  ASSERT_TRUE(w.Inspect([&](const Tensor& value) {
                 EXPECT_TRUE(value.unique());
                 EXPECT_EQ(value.raw_data(), place);
                 return OkStatus();
               }).ok());

  const Tensor snapshot = *w.Read();
  ASSERT_TRUE(AddTo(w, 1).ok());
  EXPECT_EQ(snapshot.ToString(), "int64[2] 2 3");  // a snapshot never changes
  EXPECT_EQ(w.Read()->ToString(), "int64[2] 3 4");
  const void* new_place = w.Read()->raw_data();
  EXPECT_NE(new_place, place);
  ASSERT_TRUE(AddTo(w, 1).ok());
  EXPECT_EQ(w.Read()->raw_data(), new_place);  // updated in place again
}

// Adds 1 to all elements of each variable.
Status AddToAll(absl::Span<Variable* const> variables) {
  return Variable::UpdateAll(
      variables, {.step_id = 1}, [](absl::Span<const Variable::Renewal> renewals) {
        for (const Variable::Renewal& renewal : renewals) {
          const Tensor& from = renewal.shared == nullptr ? *renewal.value : *renewal.shared;
          EXPECT_TRUE(renewal.value->unique());
          int64_t* const to = renewal.value->mutable_data<int64_t>();
          for (int64_t i = 0; i < from.num_elements(); ++i) to[i] = from.data<int64_t>()[i] + 1;
        }
        return OkStatus();
      });
}

TEST(Variable, AnUpdateOfAllElementsCopiesNothing) {
  Variable a("a", DType::kInt64, {2}), b("b", DType::kInt64, {1});
  ASSERT_TRUE(a.Assign(Tensor::Vector<int64_t>({1, 2}), true, {}).ok());
  ASSERT_TRUE(b.Assign(Tensor::Vector<int64_t>({5}), true, {}).ok());
  const void* const place_of_b = b.Read()->raw_data();
  std::optional<Tensor> snapshot = *a.Read();
  Variable* const both[] = {&b, &a};
  ASSERT_EQ(AddToAll(both), OkStatus());
  EXPECT_EQ(snapshot->ToString(), "int64[2] 1 2");
  EXPECT_EQ(a.Read()->ToString(), "int64[2] 2 3");
  EXPECT_EQ(b.Read()->ToString(), "int64[1] 6");
  EXPECT_EQ(b.Read()->raw_data(), place_of_b);
  EXPECT_EQ(a.version(), 2);

  const void* const place_of_a = a.Read()->raw_data();
  EXPECT_NE(place_of_a, snapshot->raw_data());
  snapshot.reset();
  ASSERT_EQ(AddToAll(both), OkStatus());
  EXPECT_EQ(a.Read()->raw_data(), place_of_a);
  EXPECT_EQ(a.Read()->ToString(), "int64[2] 3 4");

  // If the update fails, a shared value stays as it was.
  snapshot = *a.Read();
  EXPECT_EQ(Variable::UpdateAll(both, {}, [](auto) { return OutOfRange("row 7"); }),
            OutOfRange("row 7"));
  EXPECT_EQ(a.Read()->raw_data(), place_of_a);
  EXPECT_EQ(a.version(), 3);

  Variable c("c", DType::kInt64, {1});
  Variable* const uninitialized[] = {&a, &c};
  EXPECT_EQ(AddToAll(uninitialized), FailedPrecondition("Attempting to use uninitialized value c"));
}

TEST(Variable, AnUpdateOfAllElementsDoesNotWriteForeignMemory) {
  static const int64_t memory[] = {1, 2};
  class Foreign final : public Buffer {
   public:
    Foreign() : Buffer(const_cast<int64_t*>(memory), sizeof(memory)) {}
  };
  Variable w("w", DType::kInt64, {2});
  ASSERT_TRUE(w.Assign(Tensor::FromBuffer(DType::kInt64, {2}, new Foreign), true, {}).ok());
  Variable* const one[] = {&w};
  ASSERT_EQ(AddToAll(one), OkStatus());
  EXPECT_EQ(w.Read()->ToString(), "int64[2] 2 3");
  EXPECT_EQ(memory[0], 1);
}

// The memory of a transport: it gives no more than the tensor that was received into it.
TEST(Variable, AnUpdateOfAllElementsLeavesTheMemoryOfTransports) {
  class Received final : public Allocator {
   public:
    const std::string& name() const override { return name_; }
    void* Allocate(size_t bytes) override {
      return std::exchange(given_, true) ? nullptr : CpuAllocator().Allocate(bytes);
    }
    void Deallocate(void* pointer, size_t bytes) override {
      CpuAllocator().Deallocate(pointer, bytes);
    }
    AllocatorStats stats() const override { return {}; }

   private:
    const std::string name_ = "received";
    bool given_ = false;
  } received;
  Variable w("w", DType::kInt64, {2});
  {
    Tensor value = *Tensor::Make(received, DType::kInt64, {2});
    value.mutable_data<int64_t>()[0] = 1;
    value.mutable_data<int64_t>()[1] = 2;
    ASSERT_TRUE(w.Assign(std::move(value), true, {}).ok());
  }
  const Tensor snapshot = *w.Read();
  Variable* const one[] = {&w};
  ASSERT_EQ(AddToAll(one), OkStatus());
  EXPECT_EQ(w.Read()->ToString(), "int64[2] 2 3");
  EXPECT_EQ(snapshot.ToString(), "int64[2] 1 2");
}

TEST(Variable, WhatWasAssignedIsNotWrittenTo) {
  Variable w("w", DType::kInt64, {1});
  const Tensor constant = Tensor::Vector<int64_t>({5});
  ASSERT_TRUE(w.Assign(constant, true, {}).ok());
  ASSERT_TRUE(AddTo(w, 1).ok());
  EXPECT_EQ(constant.ToString(), "int64[1] 5");
  EXPECT_EQ(w.Read()->ToString(), "int64[1] 6");
}

// Ending a loop early would leave half an update.
TEST(Variable, LoopsOfAnUpdateRunToTheirEnd) {
  struct Ended final : LoopWatch {
    Status CheckContinues() const override { return Cancelled("the step has ended"); }
  } ended;
  const WatchedLoops watched(&ended);
  Variable w("w", DType::kInt64, {1});
  ASSERT_TRUE(w.Assign(Tensor::Vector<int64_t>({1}), true, {}).ok());
  Variable* const one[] = {&w};
  const LoopWatch* watch = &ended;
  EXPECT_TRUE(Variable::Update(one, {.step_id = 1}, [&](absl::Span<Tensor* const>) {
                watch = WatchedLoops::current();
                return OkStatus();
              }).ok());
  EXPECT_EQ(watch, nullptr);
  EXPECT_EQ(WatchedLoops::current(), &ended);
}

TEST(Variable, SeveralAtOnce) {
  Variable a("a", DType::kInt64, {1}), b("b", DType::kInt64, {1}), c("c", DType::kInt64, {1});
  ASSERT_TRUE(a.Assign(Tensor::Vector<int64_t>({1}), true, {}).ok());
  ASSERT_TRUE(b.Assign(Tensor::Vector<int64_t>({2}), true, {}).ok());
  Variable* const named_twice[] = {&b, &a, &b};
  const auto swap = [](absl::Span<Tensor* const> values) {
    EXPECT_EQ(values[0], values[2]);
    std::swap(values[0]->mutable_data<int64_t>()[0], values[1]->mutable_data<int64_t>()[0]);
    return OkStatus();
  };
  ASSERT_TRUE(Variable::Update(named_twice, {}, swap).ok());
  EXPECT_EQ(a.Read()->ToString(), "int64[1] 2");
  EXPECT_EQ(b.Read()->ToString(), "int64[1] 1");
  EXPECT_EQ(b.version(), 2);  // updating both variables counts as one update of each

  Variable* const with_uninitialized[] = {&a, &c};
  EXPECT_EQ(Variable::Update(with_uninitialized, {}, swap),
            FailedPrecondition("Attempting to use uninitialized value c"));
  EXPECT_EQ(a.version(), 2);

  Variable* const only_a[] = {&a};
  EXPECT_EQ(Variable::Update(only_a, {}, [](auto) { return OutOfRange("row 7"); }),
            OutOfRange("row 7"));
  EXPECT_EQ(a.version(), 2);
}

// Writers add to all elements at once, in variables listed in different orders. Readers must never
// see half an update, and no update may be lost.
TEST(Variable, ReadersSeeWholeUpdatesOnly) {
  constexpr int kElements = 500, kUpdates = 300, kWriters = 3;
  Variable a("a", DType::kInt64, {kElements}), b("b", DType::kInt64, {kElements});
  for (Variable* variable : {&a, &b}) {
    ASSERT_TRUE(
        variable->Assign(Tensor::Vector(std::vector<int64_t>(kElements, 0)), true, {}).ok());
  }
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers, writers;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&] {
      int64_t last = 0;
      while (!stop) {
        const StatusOr<Tensor> value = a.Read();
        ASSERT_TRUE(value.ok());
        const auto flat = value->flat<int64_t>();
        for (int64_t element : flat) ASSERT_EQ(element, flat[0]);
        ASSERT_GE(flat[0], last);
        last = flat[0];
      }
    });
  }
  for (int t = 0; t < kWriters; ++t) {
    writers.emplace_back([&, t] {
      Variable* const both[] = {t % 2 == 0 ? &a : &b, t % 2 == 0 ? &b : &a};
      for (int i = 0; i < kUpdates; ++i) {
        const Status status = Variable::Update(both, {}, [](absl::Span<Tensor* const> values) {
          for (Tensor* value : values) {
            for (int64_t& element : value->mutable_flat<int64_t>()) ++element;
          }
          return OkStatus();
        });
        ASSERT_TRUE(status.ok());
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(a.Read()->flat<int64_t>()[0], kWriters * kUpdates);
  EXPECT_EQ(b.Read()->flat<int64_t>()[kElements - 1], kWriters * kUpdates);
  EXPECT_EQ(a.version(), 1 + kWriters * kUpdates);
}

}  // namespace
}  // namespace penstock
