// SPDX-License-Identifier: Apache-2.0
//
// Tests the registry with the test's own ops, and runs kernels with OpRunner.
#include "core/op/registry.h"

#include <atomic>
#include <thread>

#include "core/op/shape_scope.h"
#include "core/op/testing/op_runner.h"
#include "core/tensor/resource_handle.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

template <class T>
class TwiceKernel : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    Tensor* y;
    RETURN_IF_ERROR(ctx.ForwardOrAllocate(0, 0, ctx.input(0).shape(), &y));
    for (int64_t i = 0; i < y->num_elements(); ++i) {
      y->mutable_data<T>()[i] = static_cast<T>(2 * ctx.input(0).data<T>()[i]);
    }
    return OkStatus();
  }
};

OP(TestTwice) {
  return {
      .doc = "2 x.",
      .inputs = {{"x", "T"}},
      .outputs = {{"y", "T"}},
      .types = {{"T", {DType::kFloat, DType::kInt32, DType::kHalf}}},
      .shape = SameShape,
  };
}
KERNEL(TestTwice, TwiceKernel, float, int32_t);

// Joins N scalars, and checks its attributes N and T.
class PackKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("N", &count_));
    return node.Attr("T", &dtype_);
  }
  Status Compute(KernelContext& ctx) override {
    CHECK(count_ == ctx.num_inputs() && dtype_ == DType::kFloat);
    Tensor* y;
    RETURN_IF_ERROR(ctx.Allocate(0, {count_}, &y));
    for (int i = 0; i < count_; ++i) y->mutable_data<float>()[i] = ctx.input(i).scalar<float>();
    return OkStatus();
  }

 private:
  int count_ = 0;
  DType dtype_ = DType::kInvalid;
};

OP(TestPack) {
  return {
      .inputs = {{"values", Repeat("N", "T")}},
      .outputs = {{"y", "T"}},
      .types = {{"T", {DType::kFloat}}},
      .attrs = {{"N", Ints{.min = 1}}},
      .shape = [](ShapeScope& s) -> Status {
        s.set_output(0, {s.num_inputs()});
        return OkStatus();
      },
  };
}
KERNEL_ANY_TYPE(TestPack, PackKernel);

// Calls its Done on a thread of its own.
class LaterKernel : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, Done done) override {
    std::thread([&ctx, done = std::move(done)]() mutable {
      ctx.SetOutput(0, Tensor::Scalar<float>(7));
      std::move(done)(OkStatus());
    }).detach();
  }
};
OP(TestLater) { return {.outputs = {{"y", "float"}}, .shape = ScalarShape, .stateful = true}; }
KERNEL_DEF({.op = "TestLater", .make = Make<LaterKernel>});

TEST(Registry, FindsWhatWasDeclared) {
  const Registry& registry = Registry::Global();
  const OpDef* twice = registry.FindOp("TestTwice");
  ASSERT_NE(twice, nullptr);
  EXPECT_EQ(twice->name, "TestTwice");
  EXPECT_EQ(twice->doc, "2 x.");
  EXPECT_FALSE(twice->stateful);
  EXPECT_TRUE(registry.FindOp("TestLater")->stateful);
  EXPECT_EQ(registry.kernels("TestTwice").size(), 2);
  EXPECT_EQ(&registry, &Registry::Global());
  std::vector<std::string> names;
  for (const OpDef* op : registry.ops()) names.push_back(op->name);
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
}

TEST(Registry, SuggestsCloseNames) {
  const Registry& registry = Registry::Global();
  EXPECT_EQ(registry.GetOp("testtwice").status(),
            NotFound("there is no op 'testtwice'; did you mean 'TestTwice'?"));
  EXPECT_EQ(registry.GetOp("TestPick").status(),
            NotFound("there is no op 'TestPick'; did you mean 'TestPack'?"));
  EXPECT_EQ(registry.GetOp("SomethingElse").status(), NotFound("there is no op 'SomethingElse'"));
  EXPECT_EQ(registry.GetOp("").status(), NotFound("there is no op ''"));
  EXPECT_EQ(registry.GetOp(std::string(1 << 20, 'T')).status().code(), StatusCode::kNotFound);
}

TEST(Registry, KernelsByDeviceAndType) {
  const Registry& registry = Registry::Global();
  EXPECT_TRUE(registry.FindKernel("TestTwice", "CPU", {{"T", DType::kInt32}}).ok());
  EXPECT_TRUE(registry.FindKernel("TestPack", "CPU", {{"T", DType::kFloat}}).ok());
  EXPECT_EQ(registry.FindKernel("TestTwice", "CPU", {{"T", DType::kHalf}}).status(),
            NotFound("op 'TestTwice' has no kernel for CPU with T=half; "
                     "it has CPU (T=float), CPU (T=int32)"));
  EXPECT_EQ(registry.FindKernel("TestTwice", "GPU", {{"T", DType::kFloat}}).status(),
            NotFound("op 'TestTwice' has no kernel for GPU with T=float; "
                     "it has CPU (T=float), CPU (T=int32)"));
  EXPECT_EQ(registry.FindKernel("TestPack", "GPU", {}).status(),
            NotFound("op 'TestPack' has no kernel for GPU; it has CPU"));
  EXPECT_FALSE(registry.FindKernel("Nothing", "CPU", {}).ok());
}

TEST(Registry, TheMoreSpecialKernelWins) {
  const OpDef op = {.name = "Op", .types = {{"T", kReal}}};
  const Registry registry(
      {op}, {{.op = "Op", .make = Make<PackKernel>},
             {.op = "Op", .types = {{"T", DType::kFloat}}, .make = Make<TwiceKernel<float>>}});
  EXPECT_EQ((*registry.FindKernel("Op", "CPU", {{"T", DType::kFloat}}))->types.size(), 1);
  EXPECT_EQ((*registry.FindKernel("Op", "CPU", {{"T", DType::kInt8}}))->types.size(), 0);
  const Registry bare({op}, {});
  EXPECT_EQ(bare.FindKernel("Op", "CPU", {}).status(),
            NotFound("op 'Op' has no kernel for CPU; it has none at all"));
}

TEST(RegistryDeathTest, ChecksOurDeclarations) {
  const OpDef op = {.name = "Op", .types = {{"T", {DType::kFloat}}}};
  const auto make = Make<PackKernel>;
  EXPECT_DEATH(Registry({op, op}, {}), "op Op is declared twice");
  EXPECT_DEATH(Registry({op}, {{.op = "Opp", .make = make}}), "for Opp, which is no op");
  EXPECT_DEATH(Registry({op}, {{.op = "Op"}}), "cannot be made");
  EXPECT_DEATH(Registry({op}, {{.op = "Op", .types = {{"U", DType::kFloat}}, .make = make}}),
               "names 'U', which the op has not");
  EXPECT_DEATH(Registry({op}, {{.op = "Op", .types = {{"T", DType::kInt8}}, .make = make}}),
               "is for T=int8, which the op excludes");
  EXPECT_DEATH(Registry({op}, {{.op = "Op", .make = make}, {.op = "Op", .make = make}}),
               "two kernels of Op for CPU");
  EXPECT_DEATH(Registry({op}, {{.op = "Op", .host_args = {"x"}, .make = make}}),
               "keeps 'x' on the host, which the op has not");
  EXPECT_DEATH(Registry({{.name = "A", .inputs = {{"x", "U"}}}}, {}),
               "op A: the type 'U' of 'x' is not declared");
  EXPECT_DEATH(Registry({{.name = "A", .inputs = {{"x", Repeat("N", "float")}}}}, {}),
               "op A: the count 'N' of 'x' is not declared");
  EXPECT_DEATH(Registry({{.name = "A", .outputs = {{"y", "float"}}, .is_view = true}}, {}),
               "op A has fewer inputs than outputs, so it cannot be a view");
  EXPECT_DEATH(Registry({{.name = "A", .resource_use = ResourceUse::kTakes}}, {}),
               "op A has a resource_use but not may_wait");
  EXPECT_DEATH(Registry({{.name = "A", .inputs = {{"x", "float"}}, .used_input = 1}}, {}),
               "op A has no input 1, its used_input");
  EXPECT_DEATH(Registry({{.name = "A", .inputs = {{"x", "float"}, {"x", "float"}}}}, {}),
               "op A declares 'x' twice");
  EXPECT_DEATH(Registry({{.name = "A", .attrs = {{"o", OneOf{{"X"}}, "Y"}}}}, {}),
               "must be one of");
  EXPECT_DEATH(Registry({{.name = "A", .types = {{"T", kIndex, DType::kFloat}}}}, {}),
               "must be one of");
}

TEST(KernelInit, Attributes) {
  const OpDef op = {.name = "Op"};
  const Attrs attrs = {{"i", int64_t{1} << 40},
                       {"j", 5},
                       {"t", DType::kHalf},
                       {"ts", std::vector<DType>{DType::kHalf, DType::kInt8}},
                       {"empty", EmptyList()}};
  const std::vector<EdgeType> none;
  const std::string name = "node", device = "CPU";
  const KernelInit init = {name, op, attrs, device, none, none};
  int64_t wide = 0;
  int narrow = 0;
  DType dtype;
  std::vector<DType> dtypes;
  std::vector<float> floats = {1};
  EXPECT_TRUE(init.Attr("i", &wide).ok());
  EXPECT_EQ(wide, int64_t{1} << 40);
  EXPECT_EQ(init.Attr("i", &narrow),
            InvalidArgument("node 'node': attribute 'i' is 1099511627776, must fit in 32 bits"));
  EXPECT_TRUE(init.Attr("j", &narrow).ok());
  EXPECT_EQ(narrow, 5);
  EXPECT_TRUE(init.Attr("t", &dtype).ok());
  EXPECT_EQ(dtype, DType::kHalf);
  EXPECT_TRUE(init.Attr("ts", &dtypes).ok());
  EXPECT_EQ(dtypes, (std::vector<DType>{DType::kHalf, DType::kInt8}));
  EXPECT_TRUE(init.Attr("empty", &floats).ok());
  EXPECT_TRUE(floats.empty());
  EXPECT_EQ(init.Attr("x", &wide), InvalidArgument("node 'node': no attribute 'x'"));
  EXPECT_EQ(init.Attr("t", &wide), InvalidArgument("node 'node': attribute 't' is of kind type"));
  bool flag = false;
  EXPECT_FALSE(init.Attr("empty", &flag).ok());  // the attribute is not a list
}

// A context with `inputs` and one output.
class ContextTest : public ::testing::Test {
 protected:
  KernelContext Context(std::vector<Tensor>& inputs, EdgeType type) {
    type_ = type;
    return KernelContext({.allocator = &CpuAllocator(),
                          .host_allocator = &CpuAllocator(),
                          .inputs = inputs.data(),
                          .outputs = &output_,
                          .output_types = &type_,
                          .num_inputs = static_cast<int>(inputs.size()),
                          .num_outputs = 1});
  }
  EdgeType type_;
  Tensor output_;
};

TEST_F(ContextTest, ForwardsABufferThatNobodyElseHolds) {
  std::vector<Tensor> inputs;
  inputs.push_back(Tensor::Vector<float>({1, 2, 3, 4}));
  KernelContext ctx = Context(inputs, {DType::kFloat});
  Tensor* y = nullptr;
  ASSERT_TRUE(ctx.ForwardOrAllocate(0, 0, {2, 2}, &y).ok());
  EXPECT_TRUE(y->SharesBufferWith(ctx.input(0)));
  EXPECT_EQ(y->shape(), (Shape{2, 2}));
  EXPECT_EQ(ctx.input(0).flat<float>()[3], 4);
  inputs.clear();
  EXPECT_TRUE(output_.unique());
}

TEST_F(ContextTest, AllocatesOtherwise) {
  const Tensor held = Tensor::Vector<float>({1, 2});
  alignas(64) static float memory[2];
  class Foreign : public Buffer {
   public:
    Foreign() : Buffer(memory, sizeof memory) {}
  };
  const struct {
    const char* why;
    Tensor input;
    EdgeType type;
    Shape shape;
  } cases[] = {
      {"held by another", held, {DType::kFloat}, {2}},
      {"other type", Tensor::Vector<int32_t>({1, 2}), {DType::kFloat}, {2}},
      {"other size", Tensor::Vector<float>({1, 2}), {DType::kFloat}, {3}},
      {"foreign", Tensor::FromBuffer(DType::kFloat, {2}, new Foreign), {DType::kFloat}, {2}},
      {"none", Tensor(), {DType::kFloat}, {2}},
  };
  for (const auto& c : cases) {
    std::vector<Tensor> inputs = {c.input};
    const_cast<Tensor&>(c.input) = Tensor();  // the context must have the only reference
    KernelContext ctx = Context(inputs, c.type);
    Tensor* y = nullptr;
    ASSERT_TRUE(ctx.ForwardOrAllocate(0, 0, c.shape, &y).ok()) << c.why;
    EXPECT_FALSE(y->SharesBufferWith(inputs[0])) << c.why;
    EXPECT_EQ(y->dtype(), c.type.dtype) << c.why;
    EXPECT_EQ(y->shape(), c.shape) << c.why;
  }
}

TEST_F(ContextTest, HostOutputsComeFromHostMemory) {
  class Device : public Allocator {
   public:
    const std::string& name() const override { return name_; }
    void* Allocate(size_t bytes) override { return CpuAllocator().Allocate(bytes); }
    void Deallocate(void* p, size_t bytes) override { CpuAllocator().Deallocate(p, bytes); }
    AllocatorStats stats() const override { return {}; }
    bool host_accessible() const override { return false; }
    const std::string name_ = "device";
  } device;
  const EdgeType types[] = {{DType::kFloat}, {DType::kInt32}};
  const bool on_host[] = {false, true};
  Tensor outputs[2];
  KernelContext ctx({.allocator = &device,
                     .host_allocator = &CpuAllocator(),
                     .outputs = outputs,
                     .output_types = types,
                     .output_on_host = on_host,
                     .num_outputs = 2});
  Tensor* y;
  ASSERT_TRUE(ctx.Allocate(0, {2}, &y).ok());
  EXPECT_EQ(y->buffer()->allocator(), &device);
  ASSERT_TRUE(ctx.Allocate(1, {2}, &y).ok());
  EXPECT_EQ(y->buffer()->allocator(), &CpuAllocator());
  EXPECT_EQ(ctx.Temporary(DType::kFloat, {3})->buffer()->allocator(), &device);
  EXPECT_EQ(ctx.Allocate(0, {int64_t{1} << 50}, &y).code(), StatusCode::kResourceExhausted);
  outputs[0] = Tensor();
}

TEST(OpRunner, RunsKernels) {
  EXPECT_EQ(OpRunner("TestTwice").In(Tensor::Vector<float>({1, 2})).Run1()->ToString(),
            "float[2] 2 4");
  EXPECT_EQ(OpRunner("TestTwice").In(Tensor::Scalar<int32_t>(21)).Run1()->ToString(), "int32[] 42");
  EXPECT_EQ(
      OpRunner("TestPack").InList({Tensor::Scalar(1.0f), Tensor::Scalar(2.0f)}).Run1()->ToString(),
      "float[2] 1 2");
  EXPECT_EQ(OpRunner("TestLater").Run1()->ToString(), "float[] 7");
}

TEST(OpRunner, ReportsErrors) {
  EXPECT_THAT(std::string(OpRunner("TestTwise").Run().status().message()),
              HasSubstr("did you mean 'TestTwice'?"));
  EXPECT_EQ(OpRunner("TestTwice").Run().status(),
            InvalidArgument("op 'TestTwice' has 1 inputs (x), got 0"));
  EXPECT_EQ(OpRunner("TestTwice").In(Tensor::Scalar<std::string>("x")).Run().status(),
            InvalidArgument("attribute 'T' of op 'TestTwice' is string, must be one of "
                            "{float, int32, half}"));
  EXPECT_EQ(OpRunner("TestPack").InList({}).Attr("T", DType::kFloat).Run().status(),
            InvalidArgument("attribute 'N' of op 'TestPack' is 0 (int), must be an int >= 1"));
}

// A kernel's outputs must have the declared types and the inferred shapes.
TEST(OpRunner, CatchesBrokenPromises) {
  const OpDef wrong_shape = {
      .name = "WrongShape",
      .inputs = {{"x", "float"}},
      .outputs = {{"y", "float"}},
      .shape = ScalarShape,
  };
  OpDef no_output = {.name = "NoOutput", .outputs = {{"y", "float"}}};
  class Nothing : public Kernel {
    Status Compute(KernelContext&) override { return OkStatus(); }
  };
  const Registry registry({wrong_shape, no_output},
                          {{.op = "WrongShape", .make = Make<TwiceKernel<float>>},
                           {.op = "NoOutput", .make = Make<Nothing>}});
  EXPECT_EQ(
      OpRunner("WrongShape", nullptr, registry).In(Tensor::Vector<float>({1, 2})).Run().status(),
      Internal("output 0 of 'WrongShape' has shape [2], its shape function promised []"));
  EXPECT_EQ(OpRunner("NoOutput", nullptr, registry).Run().status(),
            Internal("output 0 of 'NoOutput' is invalid, promised was float"));
}

}  // namespace
}  // namespace penstock
