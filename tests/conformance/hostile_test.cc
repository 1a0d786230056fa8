// SPDX-License-Identifier: Apache-2.0
//
// Calls every op with random shapes, values, attributes and handles, most of them invalid. Each
// call must return tensors or an error, and must not crash; the outputs must have the inferred
// shapes. `--seed=N` repeats or varies a run; `--rounds=N` is the number of calls per op.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <new>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "core/op/shape_scope.h"
#include "core/op/variable.h"
#include "gtest/gtest.h"
#include "kernels/tensor_list/tensor_list.h"
#include "tests/conformance/sample_types.h"
#include "tests/conformance/samples.h"

namespace penstock {
namespace {

uint64_t seed = 1;
int rounds = 60;

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool OneIn(int n) { return Below(n) == 0; }
  template <class T>
  T Of(std::initializer_list<T> list) {
    return list.begin()[Below(static_cast<int64_t>(list.size()))];
  }
  // Returns a small or a huge number. Numbers in between would only take time and memory.
  int64_t Integer() {
    using Limits = std::numeric_limits<int64_t>;
    return Of<int64_t>({0,
                        1,
                        1,
                        2,
                        2,
                        3,
                        4,
                        5,
                        7,
                        -1,
                        -2,
                        -3,
                        -7,
                        (int64_t{1} << 31) - 1,
                        -(int64_t{1} << 31),
                        int64_t{1} << 40,
                        int64_t{1} << 62,
                        Limits::max(),
                        Limits::min(),
                        Limits::min() + 1});
  }
  double Number() {
    using Limits = std::numeric_limits<double>;
    return Of<double>({0, -0.0, 1, -1, 0.5, -2.5, 1e-300, 1e30, -1e30, Limits::infinity(),
                       -Limits::infinity(), Limits::quiet_NaN()});
  }
  Dims Sizes() {
    Dims dims;
    const int64_t rank = OneIn(30) ? Below(12) : Below(6);
    for (int64_t i = 0; i < rank; ++i) dims.push_back(Of<int64_t>({0, 1, 1, 2, 2, 3, 4}));
    return dims;
  }
  // Returns a random partial shape, as shape inference may produce.
  PartialShape Partial() {
    if (OneIn(5)) return {};
    PartialShape shape = PartialShape::Scalar();
    const int64_t rank = OneIn(50) ? kMaxRank : Below(6);
    for (int64_t i = 0; i < rank; ++i) {
      shape.AddDim(Of<int64_t>({-1, -1, 0, 1, 2, 3, 4, int64_t{1} << 31, int64_t{1} << 62}));
    }
    return shape;
  }

 private:
  std::mt19937_64 random_;
};

template <class T>
T ElementOf(Dice& dice) {
  if constexpr (std::is_same_v<T, std::string>) {
    return dice.Of<std::string>({"", "a", "%s", std::string(1, '\0'), "1,2", "-1", "x:y"});
  } else if constexpr (std::is_same_v<T, bool>) {
    return dice.OneIn(2);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(dice.Integer());
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(dice.OneIn(2) ? dice.Number() : static_cast<double>(dice.Below(4)));
  } else if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
    return T(static_cast<float>(dice.Number()));
  } else {
    T element;
    auto* const bytes = reinterpret_cast<unsigned char*>(&element);
    for (size_t i = 0; i < sizeof element; ++i)
      bytes[i] = static_cast<unsigned char>(dice.Below(256));
    return element;
  }
}

Tensor RandomTensor(Dice& dice, DType dtype, const Shape& shape);

// Returns an empty variant, or a list of a few tensors of any shape; sometimes a list of lists.
template <>
Variant ElementOf<Variant>(Dice& dice) {
  if (dice.OneIn(4)) return {};
  const bool nested = dice.OneIn(6);
  const DType dtype =
      nested ? DType::kVariant : dice.Of({DType::kFloat, DType::kInt32, DType::kString});
  auto list = std::make_shared<TensorListValue>(
      dtype, dice.Partial(), dice.OneIn(4) ? dice.Integer() : TensorListValue::kUnlimited);
  CHECK_OK(list->Resize(dice.Below(3)));
  for (int64_t i = dice.Below(3); i > 0; --i) {
    // The list may refuse the tensor.
    (void)list->Push(RandomTensor(dice, dtype, nested ? Shape() : Shape(dice.Sizes())));
  }
  return {std::move(list)};
}

template <class T>
void Fill(Dice& dice, Tensor& tensor) {
  for (T& element : tensor.mutable_flat<T>()) element = ElementOf<T>(dice);
}

Tensor RandomTensor(Dice& dice, DType dtype, const Shape& shape) {
  Tensor tensor(dtype, shape);
  if (dtype == DType::kVariant) {
    Fill<Variant>(dice, tensor);
  } else {
    WithElementType(dtype, [&]<class T>() { Fill<T>(dice, tensor); });
  }
  return tensor;
}

// Returns a replacement for a variable's handle: an empty handle, several handles, or the handle of
// another, an uninitialised or a differently shaped variable.
Tensor RandomHandle(Dice& dice, const Tensor& handle, ResourceStore& store) {
  ResourceHandle changed = handle.scalar<ResourceHandle>();
  const DType dtype = changed.elements[0].dtype;
  switch (dice.Below(5)) {
    case 0:
      return Tensor(DType::kResource, Shape(dice.Sizes()));
    case 1:
      changed.resource = nullptr;
      changed.name = "nobody";
      break;
    case 2:
      changed.resource = std::make_shared<Variable>("empty", dtype, PartialShape());
      break;
    case 3:
      changed.resource = std::make_shared<Variable>("other", DType::kString, PartialShape());
      break;
    default: {
      auto variable = std::make_shared<Variable>("odd", dtype, PartialShape());
      CHECK_OK(variable->Assign(RandomTensor(dice, dtype, Shape(dice.Sizes())), false, {}));
      changed.elements[0].shape = PartialShape();
      changed.resource = variable;
    }
  }
  return Tensor::Scalar(changed);
}

struct Roll {
  Dice& dice;
  const AttrValue& now;
  AttrValue operator()(const Ints&) { return dice.Integer(); }
  AttrValue operator()(const Floats&) { return dice.Number(); }
  AttrValue operator()(const Bools&) { return dice.OneIn(2); }
  AttrValue operator()(const Strings&) { return ElementOf<std::string>(dice); }
  AttrValue operator()(const OneOf& kind) {
    return kind.allowed[dice.Below(static_cast<int64_t>(kind.allowed.size()))];
  }
  AttrValue operator()(const Shapes&) {
    const auto shape = PartialShape::Make(dice.Partial().dims());
    return shape.ok() ? *shape : PartialShape();
  }
  AttrValue operator()(const IntList&) {
    const auto* list = now.get<std::vector<int64_t>>();
    std::vector<int64_t> ints = list == nullptr ? std::vector<int64_t>() : *list;
    if (dice.OneIn(3)) ints.resize(dice.Below(8));
    for (int64_t& i : ints) {
      if (dice.OneIn(2)) i = dice.Integer();
    }
    return ints;
  }
  AttrValue operator()(const FloatList&) {
    return std::vector<float>(dice.Below(5), static_cast<float>(dice.Number()));
  }
  template <class Kind>
  AttrValue operator()(const Kind&) {
    return now;
  }
};

// Returns a random value of the attribute's kind, to replace `now`. Attributes of kinds that Roll
// does not vary, such as types, keep `now`.
AttrValue RandomAttr(Dice& dice, const AttrDef& attr, const AttrValue& now) {
  return std::visit(Roll{dice, now}, attr.kind);
}

void Vary(Dice& dice, SampleCall& call) {
  for (size_t i = 0; i < call.args.size(); ++i) {
    const ArgType& type = call.op->inputs[i].type;
    if ((type.list || !type.count.empty()) && !call.args[i].empty() && dice.OneIn(6)) {
      call.args[i].resize(dice.Below(4), call.args[i][0]);
    }
    for (Tensor& tensor : call.args[i]) {
      if (dice.OneIn(3)) continue;
      if (tensor.dtype() != DType::kResource) {
        const Shape shape = dice.OneIn(2) ? tensor.shape() : Shape(dice.Sizes());
        tensor = RandomTensor(dice, tensor.dtype(), shape);
      } else if (!type.ref) {  // a ref edge must carry a variable
        tensor = RandomHandle(dice, tensor, *call.resources);
      }
    }
  }
  for (const AttrDef& attr : call.op->attrs) {
    if (!dice.OneIn(4)) continue;
    const auto given = call.attrs.find(attr.name);
    const AttrValue value = given != call.attrs.end() ? given->second : attr.default_value;
    bool counts = !value.present();
    for (const ArgDef& arg : call.op->inputs) counts |= arg.type.count == attr.name;
    if (!counts) call.attrs[attr.name] = RandomAttr(dice, attr, value);
  }
}

bool IsList(const ArgDef& arg) { return arg.type.list || !arg.type.count.empty(); }

// Reads every byte of every output, so that sanitizers check them.
int64_t Touch(const std::vector<Tensor>& outputs) {
  int64_t sum = 0;
  for (const Tensor& output : outputs) {
    if (!IsPlain(output.dtype())) continue;
    const auto* bytes = static_cast<const unsigned char*>(output.raw_data());
    for (size_t i = 0; i < output.bytes(); ++i) sum += bytes[i];
  }
  return sum;
}

std::string Describe(const SampleCall& call) {
  std::string text = StrCat(call.op->name, "(");
  for (const auto& arg : call.args) {
    for (const Tensor& tensor : arg) StrAppend(&text, tensor.ToString(20), "; ");
  }
  for (const auto& [name, value] : call.attrs) StrAppend(&text, name, "=", value.ToString(), " ");
  return text + ")";
}

class Hostile : public testing::TestWithParam<const OpDef*> {
 protected:
  void SetUp() override {
    auto samples = SamplesOf(*GetParam());
    if (!samples.ok() || samples->empty()) GTEST_SKIP() << "cannot run alone";
  }
  // Returns a random variation of one of the op's samples. Makes a new sample each time, because
  // calls change a sample's state.
  SampleCall Next() {
    auto samples = SamplesOf(*GetParam());
    CHECK_OK(samples.status());
    SampleCall call = std::move((*samples)[dice_.Below(static_cast<int64_t>(samples->size()))]);
    Vary(dice_, call);
    return call;
  }
  Dice dice_{seed};
};

// Returns whether the kernel waits for something outside the call: with random arguments it may
// wait forever.
bool Waits(const SampleCall& call) {
  const auto kernel = Registry::Global().FindKernel(call.op->name, "CPU", call.attrs);
  return kernel.ok() && (*kernel)->make()->AsAsync() != nullptr;
}

TEST_P(Hostile, KernelsAnswer) {
  for (int round = 0; round < rounds; ++round) {
    const SampleCall call = Next();
    if (Waits(call)) return;
    if (std::getenv("HOSTILE_VERBOSE") != nullptr)
      std::fprintf(stderr, "%s\n", Describe(call).c_str());
    OpRunner run(call.op->name, call.resources);
    for (size_t i = 0; i < call.args.size(); ++i) {
      IsList(call.op->inputs[i]) ? run.InList(call.args[i]) : run.In(call.args[i][0]);
    }
    for (const auto& [name, value] : call.attrs) run.Attr(name, value);
    run.SetKnownInputs(dice_.Of({OpRunner::Known::kNothing, OpRunner::Known::kNothing,
                                 OpRunner::Known::kShapes, OpRunner::Known::kValues}));
    StatusOr<std::vector<Tensor>> outputs = ResourceExhausted("no memory");
    try {
      outputs = run.Run();
    } catch (const std::bad_alloc&) {  // the executor handles this exception
    }
    EXPECT_NE(outputs.status().code(), StatusCode::kInternal) << Describe(call) << "\n"
                                                              << outputs.status();
    if (outputs.ok()) Touch(*outputs);
  }
}

TEST_P(Hostile, ShapeFunctionsAnswer) {
  for (int round = 0; round < rounds && GetParam()->shape != nullptr; ++round) {
    SampleCall call = Next();
    std::vector<std::vector<EdgeType>> types;
    std::vector<bool> is_list;
    std::vector<ShapeScope::Input> inputs;
    std::vector<ResourceHandle::Element> elements(call.Inputs().size());
    for (size_t i = 0; i < call.args.size(); ++i) {
      const ArgDef& arg = call.op->inputs[i];
      is_list.push_back(IsList(arg));
      types.emplace_back();
      for (const Tensor& tensor : call.args[i]) {
        DType dtype = tensor.dtype();
        const bool handle = dtype == DType::kResource;
        if (arg.type.ref && handle) dtype = tensor.scalar<ResourceHandle>().elements[0].dtype;
        types.back().push_back({dtype, arg.type.ref});
        ShapeScope::Input input{.shape = dice_.Partial()};
        if (!handle && dice_.OneIn(2)) {
          input.shape = tensor.shape();
          if (dice_.OneIn(2)) input.constant = &tensor;
        }
        if (handle && !arg.type.ref && dice_.OneIn(2)) {
          elements[inputs.size()] = {DType::kFloat, dice_.Partial()};
          input.element = &elements[inputs.size()];
        }
        inputs.push_back(input);
      }
    }
    Attrs attrs = call.attrs;
    if (!InferAttrs(*call.op, types, is_list, &attrs).ok()) continue;
    if (!CompleteAttrs(*call.op, &attrs).ok()) continue;
    std::vector<EdgeType> outputs;
    for (const ArgDef& arg : call.op->outputs) {
      if (!AppendArgTypes(arg, attrs, &outputs).ok()) return;
    }
    ShapeScope scope(*call.op, attrs, inputs, static_cast<int>(outputs.size()));
    if (!call.op->shape(scope).ok()) continue;
    for (const PartialShape& shape : scope.outputs()) {
      for (const int64_t dim : shape.dims()) {
        EXPECT_GE(dim, PartialShape::kUnknown) << Describe(call) << ": " << shape.ToString();
      }
      if (shape.fully_known()) (void)shape.ToShape();
    }
  }
}

std::vector<const OpDef*> Ops() {
  std::vector<const OpDef*> ops;
  for (const OpDef* op : Registry::Global().ops()) {
    // Skip control-flow ops, which the executor itself runs; the runtime's own ops, which cannot
    // run alone; and ops with OpDef::acts_outside.
    const bool alone = op->flow == FlowOp::kNone && !op->internal();
    if (alone && !op->acts_outside) ops.push_back(op);
  }
  return ops;
}

INSTANTIATE_TEST_SUITE_P(Op, Hostile, testing::ValuesIn(Ops()),
                         [](const testing::TestParamInfo<const OpDef*>& info) {
                           return info.param->name;
                         });

}  // namespace
}  // namespace penstock

// In builds with sanitizers, these options replace the limit of LimitMemory. The sanitizers'
// runtimes call the functions of these names. NOLINTBEGIN
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1:max_allocation_size_mb=1024";
}
extern "C" const char* __tsan_default_options() {
  return "allocator_may_return_null=1:max_allocation_size_mb=1024";
}
// NOLINTEND

namespace {

// Limits the process's memory, so that a call that asks for too much fails at once instead of
// filling the machine's memory.
void LimitMemory() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(PENSTOCK_TSAN)
  constexpr rlim_t kBytes = rlim_t{3} << 30;
  const rlimit limit{kBytes, kBytes};
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  LimitMemory();
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::StartsWith(argument, "--seed=")) {
      CHECK(absl::SimpleAtoi(argument.substr(7), &penstock::seed), argument);
    } else if (absl::StartsWith(argument, "--rounds=")) {
      CHECK(absl::SimpleAtoi(argument.substr(9), &penstock::rounds), argument);
    }
  }
  return RUN_ALL_TESTS();
}
