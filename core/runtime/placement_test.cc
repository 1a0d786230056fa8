// SPDX-License-Identifier: Apache-2.0
//
// Tests the executor with a fake device. The host may not read this device's memory, and copies end
// later on another thread, as with a GPU. Kernels check where their inputs are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "absl/strings/match.h"
#include "core/base/thread_pool.h"
#include "core/op/registry.h"
#include "core/op/variable.h"
#include "core/runtime/testing/test_ops.h"

namespace penstock {
namespace {

using testing::HasSubstr;

class FarAllocator final : public Allocator {
 public:
  const std::string& name() const override { return name_; }
  void* Allocate(size_t bytes) override { return CpuAllocator().Allocate(bytes); }
  void Deallocate(void* pointer, size_t bytes) override {
    CpuAllocator().Deallocate(pointer, bytes);
  }
  AllocatorStats stats() const override { return {}; }
  bool host_accessible() const override { return false; }

 private:
  const std::string name_ = "far memory";
};

class FarDevice final : public Device {
 public:
  FarDevice()
      : Device(
            {.name = *DeviceName::Parse("/job:w/replica:0/task:0/device:FAR:0"), .incarnation = 1}),
        threads_("copies", 2) {}
  ~FarDevice() override { resources().ClearAll(); }

  Allocator& allocator() override { return allocator_; }
  bool asynchronous() const override { return true; }
  Status Synchronize() override {
    ++synchronized;
    return OkStatus();
  }
  void CopyToHost(const Tensor& from, Tensor* to, Done done) override {
    ++to_host;
    Copy(from, CpuAllocator(), to, std::move(done));
  }
  void CopyFromHost(const Tensor& from, Tensor* to, Done done) override {
    ++from_host;
    // Like a copy in a GPU stream: kernels launched after this call see the data, although `done`
    // runs later.
    *to = Moved(from, allocator_);
    CompleteLater(OkStatus(), std::move(done));
  }

  bool Has(const Tensor& tensor) const { return tensor.buffer()->allocator() == &allocator_; }

  std::atomic<int> to_host{0}, from_host{0}, synchronized{0};
  std::atomic<bool> fails{false};
  bool at_once = false;

 private:
  static Tensor Moved(const Tensor& from, Allocator& where) {
    Tensor to = *Tensor::Make(where, from.dtype(), from.shape());
    std::memcpy(to.mutable_raw_data(), from.raw_data(), from.bytes());
    return to;
  }
  void Copy(const Tensor& from, Allocator& where, Tensor* to, Done done) {
    if (fails) return std::move(done)(Internal("the copy failed"));
    *to = Moved(from, where);
    CompleteLater(OkStatus(), std::move(done));
  }
  void CompleteLater(Status status, Done done) {
    if (at_once) return std::move(done)(std::move(status));
    threads_.Schedule([status = std::move(status), done = std::move(done)]() mutable {
      Env::Real().SleepForNanos(50'000);
      std::move(done)(std::move(status));
    });
  }

  FarAllocator allocator_;
  ThreadPool threads_;
};

// Adds its inputs. Returns an error if an input, or the memory for its output, is in the wrong
// memory.
template <bool kInputsOnHost, bool kOutputOnHost>
class CheckedSum final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    int64_t sum = 0;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      const Tensor& input = ctx.input(i);
      if ((input.buffer()->allocator() != &ctx.allocator()) != kInputsOnHost) {
        return Internal("input ", i, " is in ", input.buffer()->allocator()->name());
      }
      sum += *static_cast<const int64_t*>(input.raw_data());
    }
    Tensor* output = nullptr;
    RETURN_IF_ERROR(ctx.Allocate(0, {}, &output));
    if ((output->buffer()->allocator() != &ctx.allocator()) != kOutputOnHost) {
      return Internal("output 0 is in ", output->buffer()->allocator()->name());
    }
    *static_cast<int64_t*>(output->mutable_raw_data()) = sum;
    return OkStatus();
  }
};

const Registry& FarRegistry() {
  static const Registry& registry = []() -> const Registry& {
    const auto sum = [](const char* name) {
      return OpDef{.name = name,
                   .inputs = {{"x", Repeat("N", "int64")}},
                   .outputs = {{"y", "int64"}},
                   .attrs = {{"N", Ints{}}}};
    };
    std::vector<OpDef> ops = DeclaredOps();
    for (const char* op : {"FarSum", "FarToHost", "HostToFar"}) ops.push_back(sum(op));
    std::vector<KernelDef> kernels = DeclaredKernels();
    for (const KernelDef& kernel : DeclaredKernels()) {
      if (kernel.device == "GPU" && absl::StartsWith(kernel.op, "Stack")) {
        kernels.push_back(kernel);
        kernels.back().device = "FAR";
      }
      const bool values = kernel.op == "_Feed" || kernel.op == "_Fetch";
      const bool transfer = kernel.op == "_Send" || kernel.op == "_Recv";
      const bool variable = kernel.op == "TestVariable" || kernel.op == "TestAssign";
      if (kernel.device != "CPU" || !(values || transfer || variable)) continue;
      KernelDef far = kernel;
      far.device = "FAR";
      if (values) far.host_args = {"value"};
      if (transfer) far.host_args = {"tensor"};
      kernels.push_back(far);
    }
    kernels.push_back({.op = "FarSum", .device = "FAR", .make = Make<CheckedSum<false, false>>});
    kernels.push_back({.op = "FarToHost",
                       .device = "FAR",
                       .host_args = {"x", "y"},
                       .make = Make<CheckedSum<true, true>>});
    kernels.push_back({.op = "HostToFar",
                       .device = "FAR",
                       .host_args = {"x"},
                       .make = Make<CheckedSum<true, false>>});
    return *new Registry(std::move(ops), std::move(kernels));
  }();
  return registry;
}

class PlacementTest : public testing::TestWithParam<bool> {
 protected:
  PlacementTest() : g_(FarRegistry()) { device_.at_once = GetParam(); }

  Status Run(TestStep& step) {
    auto executor = MakeExecutor(g_.Take(), {.device = &device_,
                                             .threads = &threads_,
                                             .env = &Env::Real(),
                                             .timer = &DeadlineTimer::Real()});
    CHECK_OK(executor.status());
    for (int i = 0; i < 10; ++i) RETURN_IF_ERROR((*executor)->Run(step.Args()));
    return OkStatus();
  }

  FarDevice device_;
  ThreadPool threads_{"test", 2};
  TestGraph g_;
};
INSTANTIATE_TEST_SUITE_P(Copies, PlacementTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "EndAtOnce" : "EndLater"; });

TEST_P(PlacementTest, ValuesAreCopiedWhereTheTwoEndsDiffer) {
  Node* const fed = g_.Feed(0);                                 // on the host
  Node* const far = g_.AddSum("FarSum", {fed, fed});            // two copies to the device
  Node* const far2 = g_.AddSum("FarSum", {far, far});           // stays on the device
  Node* const near = g_.AddSum("FarToHost", {far2, fed, far});  // two copies to the host
  Node* const back = g_.AddSum("HostToFar", {near});            // no copies
  g_.Fetch(near, 0);                                            // no copies
  g_.Fetch(back, 1);                                            // one copy to the host
  TestStep step(2, {Tensor::Scalar<int64_t>(1)});
  const Status status = Run(step);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(step.fetches[0].scalar<int64_t>(), 7);
  EXPECT_EQ(step.fetches[1].scalar<int64_t>(), 7);
  EXPECT_EQ(device_.from_host, 10 * 2);
  EXPECT_EQ(device_.to_host, 10 * 3);
  EXPECT_EQ(device_.synchronized, 10) << "once per step";
}

TEST_P(PlacementTest, AVariablesValueIsOnTheDevice) {
  auto variable = std::make_shared<Variable>("v", DType::kInt64, PartialShape());
  Tensor value = *Tensor::Make(device_.allocator(), DType::kInt64, {});
  *static_cast<int64_t*>(value.mutable_raw_data()) = 5;
  ASSERT_TRUE(variable->Assign(value, true, {}).ok());
  ASSERT_TRUE(device_.resources()
                  .LookupOrCreate(kDefaultContainer, "v", "Variable",
                                  [&]() -> StatusOr<std::shared_ptr<Resource>> {
                                    return std::shared_ptr<Resource>(variable);
                                  })
                  .ok());
  Node* const v = g_.Add("TestVariable", {}, {{"name", "v"}});
  g_.Fetch(g_.AddSum("FarSum", {v}), 0);
  g_.Fetch(g_.AddSum("FarToHost", {v, v}), 1);
  g_.Fetch(v, 2);
  TestStep step(3);
  const Status status = Run(step);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(step.fetches[0].scalar<int64_t>(), 5);
  EXPECT_EQ(step.fetches[1].scalar<int64_t>(), 10);
  EXPECT_EQ(step.fetches[2].scalar<int64_t>(), 5);
}

// The values are pushed, popped, and used on the device and on the host.
TEST_P(PlacementTest, StacksKeepTheirElementsOnTheHostIfAsked) {
  for (const bool swap : {false, true}) {
    const Attrs type = {{"T", DType::kInt64}, {"swap_memory", swap}};
    Node* const max = g_.Feed(1, DType::kInt32);
    Node* const stack = g_.Add("StackV2", {max}, {{"elem_type", DType::kInt64}});
    Node* const sum = g_.AddSum("FarSum", {g_.Feed(0)});
    Node* const push = g_.Add("StackPushV2", {stack, sum}, type);
    Node* const pop =
        g_.Add("StackPopV2", {stack}, {{"elem_type", DType::kInt64}}, {push}, StrCat("pop", swap));
    g_.Fetch(g_.AddSum("FarSum", {pop}), 0);
    g_.Fetch(pop, 1);
    g_.Fetch(g_.AddSum("FarSum", {push}), 2);
    TestStep step(3, {Tensor::Scalar<int64_t>(5), Tensor::Scalar<int32_t>(-1)});
    device_.to_host = device_.from_host = 0;
    const Status status = Run(step);
    ASSERT_TRUE(status.ok()) << status;
    for (const Tensor& fetched : step.fetches) EXPECT_EQ(fetched.scalar<int64_t>(), 5);
    // Copies to the host: fetched tensors and the pushed value. Copies to the device: the feed;
    // with swap_memory also the pushed and the popped value, each of which a FarSum reads.
    EXPECT_EQ(device_.to_host, 10 * 3) << swap;
    EXPECT_EQ(device_.from_host, 10 * (swap ? 3 : 1)) << swap;
    g_ = TestGraph(FarRegistry());
  }
}

TEST_P(PlacementTest, WhatIsSentAndReceivedIsOnTheHost) {
  Attrs key = {{"tensor_name", "x"},
               {"send_device", device_.name()},
               {"send_device_incarnation", 1},
               {"recv_device", device_.name()}};
  Attrs send = key, recv = key;
  send["T"] = DType::kInt64;
  recv["tensor_type"] = DType::kInt64;
  g_.Add("_Send", {g_.AddSum("FarSum", {g_.Feed(0)})}, send);
  g_.Fetch(g_.AddSum("FarSum", {g_.Add("_Recv", {}, recv)}), 0);
  auto executor = MakeExecutor(g_.Take(), {.device = &device_,
                                           .threads = &threads_,
                                           .env = &Env::Real(),
                                           .timer = &DeadlineTimer::Real()});
  ASSERT_TRUE(executor.ok()) << executor.status();
  for (int i = 0; i < 20; ++i) {
    TestStep step(1, {Tensor::Scalar<int64_t>(i)});
    const Status status = (*executor)->Run(step.Args());
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(step.fetches[0].scalar<int64_t>(), i);
  }
}

TEST_P(PlacementTest, ACopyThatFailsFailsTheStep) {
  Node* const far = g_.AddSum("FarSum", {g_.Feed(0)});
  g_.AddSum("FarToHost", {far, far});
  device_.fails = true;
  TestStep step(0, {Tensor::Scalar<int64_t>(1)});
  const Status status = Run(step);
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the copy failed\n\t [[{{node n2}}]]"));
}

TEST(PlacementErrorsTest, AnOpWithoutAKernelForTheDeviceIsNamed) {
  FarDevice device;
  ThreadPool threads("test", 1);
  TestGraph g(FarRegistry());
  g.AddSum("TestSum", {});
  const auto executor = MakeExecutor(g.Take(), {.device = &device,
                                                .threads = &threads,
                                                .env = &Env::Real(),
                                                .timer = &DeadlineTimer::Real()});
  EXPECT_FALSE(executor.ok());
  EXPECT_THAT(std::string(executor.status().message()), HasSubstr("[[{{node n0}}]]"));
}

}  // namespace
}  // namespace penstock
