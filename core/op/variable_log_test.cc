// SPDX-License-Identifier: Apache-2.0
//
// Tests variables with a StateLog, and variables in memory that the CPU cannot access.
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "core/op/testing/recording_log.h"
#include "core/op/variable.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using Texts = std::vector<std::string>;

// Memory that the CPU must not access: its addresses are invalid.
class DeviceMemory final : public Allocator {
 public:
  const std::string& name() const override { return name_; }
  void* Allocate(size_t bytes) override { return Far(CpuAllocator().Allocate(bytes)); }
  void Deallocate(void* pointer, size_t bytes) override {
    CpuAllocator().Deallocate(Near(pointer), bytes);
  }
  AllocatorStats stats() const override { return {}; }
  bool host_accessible() const override { return false; }
  Status Copy(const void* from, void* to, size_t bytes) override {
    ++copies;
    std::memcpy(Near(to), Near(from), bytes);
    return OkStatus();
  }

  static void* Near(const void* pointer) { return Move(pointer, -kFar); }
  static void* Far(const void* pointer) { return Move(pointer, kFar); }
  int copies = 0;

 private:
  static constexpr intptr_t kFar = intptr_t{1} << 56;  // outside of every address space
  static void* Move(const void* pointer, intptr_t by) {
    return reinterpret_cast<void*>(reinterpret_cast<intptr_t>(pointer) + by);
  }
  const std::string name_ = "device memory";
};

class VariableLog : public testing::Test {
 protected:
  VariableLog() { CHECK_OK(store_.AttachLog(&log_)); }

  std::shared_ptr<Variable> New(const std::string& name, DType dtype, const PartialShape& shape) {
    const auto make = [&]() -> StatusOr<std::shared_ptr<Resource>> {
      return std::make_shared<Variable>(name, dtype, shape);
    };
    return std::static_pointer_cast<Variable>(*store_.LookupOrCreate("", name, "Variable", make));
  }
  std::shared_ptr<Variable> Replica(const std::string& name) {
    CHECK_OK(log_.ReplayOn(replica_));
    return std::static_pointer_cast<Variable>(*replica_.Lookup("", name));
  }

  DeviceMemory memory_;  // outlives the values in the log and in the stores
  RecordingLog log_;
  ResourceStore store_, replica_;
};

Status AddToRow(Variable& variable, const Tensor& rows, float amount) {
  Variable* const one[] = {&variable};
  return Variable::Update(
      one, {.step_id = 4},
      [&](absl::Span<Tensor* const> values) {
        for (const int64_t row : rows.flat<int64_t>()) {
          for (int k = 0; k < 2; ++k) values[0]->mutable_data<float>()[row * 2 + k] += amount;
        }
        return OkStatus();
      },
      [&](size_t) { return Slices::Rows(rows, 2); });
}

TEST_F(VariableLog, WholeValuesAndRows) {
  const auto w = New("w", DType::kFloat, {3, 2});
  ASSERT_TRUE(w->Assign(Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6}), true, {}).ok());
  ASSERT_TRUE(AddToRow(*w, Tensor::Vector<int64_t>({2, 0, 2}), 10).ok());
  Variable* const one[] = {w.get()};
  ASSERT_TRUE(Variable::Update(one, {}, [](absl::Span<Tensor* const> values) {
                values[0]->mutable_data<float>()[3] = -1;
                return OkStatus();
              }).ok());
  EXPECT_EQ(log_.Texts(),
            (Texts{"w 0 create int64[] 1 int64[2] 3 2", "w 1 assign float[3,2] 1 2 3 4 5 6",
                   "w 2 slices int64[2] 0 2 float[2,2] 11 12 25 26",
                   "w 3 update float[3,2] 11 12 3 -1 25 26"}));
  EXPECT_EQ(log_.entries()[2].step_id, 4);
  const auto replica = Replica("w");
  EXPECT_EQ(replica->DebugString(), w->DebugString());
  EXPECT_EQ(replica->Read()->ToString(), w->Read()->ToString());
}

TEST_F(VariableLog, FailedUpdatesAreNotRecorded) {
  const auto w = New("w", DType::kFloat, {1});
  EXPECT_FALSE(w->Assign(Tensor::Vector<float>({1, 2}), true, {}).ok());
  ASSERT_TRUE(w->Assign(Tensor::Vector<float>({1}), true, {}).ok());
  Variable* const one[] = {w.get()};
  EXPECT_FALSE(Variable::Update(one, {}, [](auto) { return OutOfRange("no"); }).ok());
  EXPECT_EQ(log_.entries().size(), 2);
  EXPECT_EQ(w->version(), 1);
}

TEST_F(VariableLog, SeveralAtOnceAreOneRecord) {
  const auto a = New("a", DType::kFloat, {2}), b = New("b", DType::kFloat, {2});
  Variable apart("apart", DType::kFloat, {2});  // a variable in no store has no log
  for (Variable* variable : {a.get(), b.get(), &apart}) {
    ASSERT_TRUE(variable->Assign(Tensor::Vector<float>({1, 2}), true, {}).ok());
  }
  log_.Clear();
  Variable* const all[] = {b.get(), a.get(), &apart, b.get()};
  ASSERT_TRUE(Variable::Update(
                  all, {},
                  [](absl::Span<Tensor* const> values) {
                    for (Tensor* value : values) value->mutable_data<float>()[1] += 1;
                    return OkStatus();
                  },
                  [](size_t i) { return Slices(1, {static_cast<int64_t>(i == 3 ? 0 : 1)}); })
                  .ok());
  ASSERT_EQ(log_.entries().size(), 1);
  const auto parts = log_.entries()[0].parts;
  ASSERT_EQ(parts.size(), 2);
  EXPECT_NE(parts[0].name, parts[1].name);
  for (const auto& part : parts) {
    EXPECT_EQ(part.version, 2);
    EXPECT_EQ(part.values[1].ToString(), part.name == "a" ? "float[1,1] 3" : "float[2,1] 1 4");
  }
}

TEST_F(VariableLog, TwoLogsGetTheirOwn) {
  RecordingLog other_log;
  ResourceStore other;
  ASSERT_TRUE(other.AttachLog(&other_log).ok());
  const auto a = New("a", DType::kFloat, {1});
  const auto b = std::make_shared<Variable>("b", DType::kFloat, PartialShape({1}));
  // The variable was assigned before it was added to the store, so the record of its creation has
  // the value.
  ASSERT_TRUE(b->Assign(Tensor::Vector<float>({5}), true, {}).ok());
  ASSERT_TRUE(other
                  .LookupOrCreate("", "b", "Variable",
                                  [&]() -> StatusOr<std::shared_ptr<Resource>> { return b; })
                  .ok());
  ASSERT_TRUE(a->Assign(Tensor::Vector<float>({1}), true, {}).ok());
  Variable* const both[] = {a.get(), b.get()};
  ASSERT_TRUE(Variable::Update(both, {}, [](absl::Span<Tensor* const> values) {
                for (Tensor* value : values) value->mutable_data<float>()[0] += 1;
                return OkStatus();
              }).ok());
  EXPECT_EQ(log_.Texts().back(), "a 2 update float[1] 2");
  EXPECT_EQ(other_log.Texts(),
            (Texts{"b 1 create int64[] 1 int64[1] 1 float[1] 5", "b 2 update float[1] 6"}));
  ASSERT_TRUE(other_log.ReplayOn(replica_).ok());
  EXPECT_EQ((*replica_.Lookup("", "b"))->DebugString(), b->DebugString());
}

TEST_F(VariableLog, KeptValuesDoNotChange) {
  const auto w = New("w", DType::kFloat, {1, 2});
  ASSERT_TRUE(w->Assign(Tensor::Of<float>({1, 2}, {1, 2}), true, {}).ok());
  ASSERT_TRUE(AddToRow(*w, Tensor::Vector<int64_t>({0}), 1).ok());
  EXPECT_EQ(log_.Texts()[1], "w 1 assign float[1,2] 1 2");
}

TEST_F(VariableLog, NewShapesAreReplayed) {
  const auto w = New("w", DType::kString, {1});
  ASSERT_TRUE(w->Assign(Tensor::Vector<std::string>({"a", "b"}), false, {}).ok());
  const auto rows = New("rows", DType::kInt64, {-1});
  ASSERT_TRUE(rows->Assign(Tensor::Vector<int64_t>({1, 2}), true, {}).ok());
  const auto w2 = Replica("w");
  EXPECT_EQ(w2->shape(), PartialShape({2}));
  EXPECT_EQ(w2->Read()->ToString(), w->Read()->ToString());
  EXPECT_EQ(static_cast<Variable&>(**replica_.Lookup("", "rows")).shape(), PartialShape({-1}));
}

TEST_F(VariableLog, HostileRecordsAreErrors) {
  const auto w = New("w", DType::kFloat, {2});
  ASSERT_TRUE(w->Assign(Tensor::Vector<float>({1, 2}), true, {}).ok());
  const auto replay = [&](const char* action, std::vector<Tensor> values) {
    return w->Replay({.action = action, .values = std::move(values)}, {}).code();
  };
  const StatusCode invalid = StatusCode::kInvalidArgument;
  EXPECT_EQ(replay("assign", {}), invalid);
  EXPECT_EQ(replay("assign", {Tensor()}), invalid);
  EXPECT_EQ(replay("update", {Tensor::Scalar<int32_t>(1)}), invalid);
  EXPECT_EQ(replay("slices", {Tensor::Vector<int64_t>({5}), Tensor::Of<float>({1, 1}, {1})}),
            invalid);
  EXPECT_EQ(replay("melt", {}), invalid);
  EXPECT_EQ(w->Read()->ToString(), "float[2] 1 2");
  EXPECT_EQ(w->version(), 1);
}

// Several threads change variables, one at a time and several at once. The log has all changes in
// one order.
TEST_F(VariableLog, ReplaysWhatManyThreadsDid) {
  std::vector<std::shared_ptr<Variable>> variables;
  for (int i = 0; i < 3; ++i) {
    variables.push_back(New(StrCat("v", i), DType::kFloat, {4, 2}));
    ASSERT_TRUE(
        variables[i]->Assign(Tensor::Of<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), true, {}).ok());
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        Variable& one = *variables[(i + t) % 3];
        Variable& two = *variables[(i * 7 + 1) % 3];
        CHECK_OK(AddToRow(one, Tensor::Vector<int64_t>({i % 4, (i + t) % 4}), 0.1f * i));
        Variable* const both[] = {&one, &two};
        CHECK_OK(Variable::Update(both, {}, [](absl::Span<Tensor* const> values) {
          for (int k = 0; k < 8; ++k) {
            values[0]->mutable_data<float>()[k] =
                0.5f * (values[0]->data<float>()[k] + values[1]->data<float>()[k]);
          }
          return OkStatus();
        }));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(log_.ReplayOn(replica_).ok());
  for (const auto& variable : variables) {
    const auto replica = std::static_pointer_cast<Variable>(*replica_.Lookup("", variable->name()));
    EXPECT_EQ(replica->version(), variable->version());
    EXPECT_EQ(std::memcmp(replica->Read()->raw_data(), variable->Read()->raw_data(), 32), 0);
  }
}

// Copies a variable to a new store, as a follower does: from its value, and the version of that
// value.
TEST_F(VariableLog, IsDescribedWhileItIsInUse) {
  const auto w = New("w", DType::kFloat, PartialShape());
  EXPECT_EQ(w->DescribeNow()->values.size(), 2);
  EXPECT_EQ(w->DescribeNow()->version, 0);
  ASSERT_TRUE(w->Assign(Tensor::Vector<float>({1, 2}), true, {}).ok());
  const auto now = w->DescribeNow();
  ASSERT_TRUE(now.ok()) << now.status();
  ASSERT_EQ(now->values.size(), 3);
  EXPECT_EQ(now->values[2].ToString(), Tensor::Vector<float>({1, 2}).ToString());
  EXPECT_EQ(now->version, 1);
}

class DeviceVariable : public VariableLog {
 protected:
  Tensor OnDevice(const std::vector<float>& values) {
    Tensor tensor = *Tensor::Make(memory_, DType::kFloat, {static_cast<int64_t>(values.size())});
    std::memcpy(DeviceMemory::Near(tensor.raw_data()), values.data(), tensor.bytes());
    return tensor;
  }
  static std::vector<float> Floats(const Tensor& tensor) {
    std::vector<float> values(tensor.num_elements());
    std::memcpy(values.data(), DeviceMemory::Near(tensor.raw_data()), tensor.bytes());
    return values;
  }
  static Status AddOne(Variable& variable) {
    Variable* const one[] = {&variable};
    return Variable::Update(
        one, {},
        [](absl::Span<Tensor* const> values) {
          *static_cast<float*>(DeviceMemory::Near(values[0]->raw_data())) += 1;
          return OkStatus();
        },
        [](size_t) { return Slices(1, {0}); });
  }
};

TEST_F(DeviceVariable, IsUpdatedWhileItIsRead) {
  Variable w("w", DType::kFloat, {2});
  ASSERT_TRUE(w.Assign(OnDevice({1, 2}), true, {}).ok());
  ASSERT_TRUE(AddOne(w).ok());
  EXPECT_EQ(memory_.copies, 0);  // updated in place
  const Tensor snapshot = *w.Read();
  ASSERT_TRUE(AddOne(w).ok());
  EXPECT_EQ(memory_.copies, 1);
  EXPECT_EQ(Floats(snapshot), (std::vector<float>{2, 2}));
  EXPECT_EQ(Floats(*w.Read()), (std::vector<float>{3, 2}));
  EXPECT_EQ(w.Read()->buffer()->allocator(), &memory_);
}

TEST_F(DeviceVariable, IsReplayedInItsMemory) {
  const auto w = New("w", DType::kFloat, {2});
  ASSERT_TRUE(w->Assign(OnDevice({1, 2}), true, {}).ok());
  ASSERT_TRUE(AddOne(*w).ok());
  EXPECT_EQ(log_.entries()[2].parts[0].values[1].buffer()->allocator(), &memory_);
  EXPECT_EQ(Floats(*Replica("w")->Read()), (std::vector<float>{2, 2}));
}

// If the memory cannot be copied, the update fails and the value does not change.
TEST_F(DeviceVariable, WithoutCopiesTheUpdateFails) {
  class NoCopies final : public Allocator {
   public:
    const std::string& name() const override { return name_; }
    void* Allocate(size_t bytes) override { return CpuAllocator().Allocate(bytes); }
    void Deallocate(void* p, size_t bytes) override { CpuAllocator().Deallocate(p, bytes); }
    AllocatorStats stats() const override { return {}; }
    bool host_accessible() const override { return false; }

   private:
    const std::string name_ = "odd memory";
  };
  NoCopies memory;
  Variable w("w", DType::kFloat, {2});
  ASSERT_TRUE(w.Assign(*Tensor::Make(memory, DType::kFloat, {2}), true, {}).ok());
  const Tensor snapshot = *w.Read();
  EXPECT_EQ(AddOne(w), Unimplemented("copying within odd memory"));
  EXPECT_EQ(w.version(), 1);
}

}  // namespace
}  // namespace penstock
