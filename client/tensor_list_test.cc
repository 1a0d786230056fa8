// SPDX-License-Identifier: Apache-2.0
//
// Tests lists of tensors in programs: their gradients against central differences, alone and in
// loops; lists of lists; and that a loop changes its list in place.
#include "client/control_flow.h"
#include "client/testing/flow_test_program.h"
#include "core/gradients/gradients.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/tensor/variant.h"

namespace penstock::client {
namespace {

// An op that returns the address of a list's value. It keeps no reference to the list, so the next
// op can be the list's sole owner.
class ListIdentityKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const auto address = reinterpret_cast<intptr_t>(ctx.input(0).scalar<Variant>().value.get());
    ctx.SetOutput(0, Tensor::Scalar<int64_t>(address));
    return OkStatus();
  }
};

OP(ListIdentity) {
  return {
      .inputs = {{"list", "variant"}},
      .outputs = {{"identity", "int64"}},
      .shape = ScalarShape,
      .stateful = true,
  };
}
KERNEL_ANY_TYPE(ListIdentity, ListIdentityKernel);

class TensorLists : public FlowTest {
 protected:
  Output Int(int32_t value) { return Constant(program_, Tensor::Scalar(value)); }
  Output Ints(const std::vector<int32_t>& values) {
    return Constant(program_, Tensor::Vector(values));
  }
  Output Longs(const std::vector<int64_t>& values) {
    return Constant(program_, Tensor::Vector(values));
  }
  Output Empty(Output shape, DType dtype = DType::kDouble) {
    return Call("EmptyTensorList", {shape, Int(-1)}, {{"element_dtype", dtype}});
  }
  Output Reserve(Output shape, Output size) {
    return Call("TensorListReserve", {shape, size}, {{"element_dtype", DType::kDouble}});
  }
  Output Push(Output list, Output element) { return Call("TensorListPushBack", {list, element}); }
  Outputs Pop(Output list, Output shape) {
    return CallN("TensorListPopBack", {list, shape}, {{"element_dtype", DType::kDouble}});
  }
  Output Set(Output list, Output index, Output item) {
    return Call("TensorListSetItem", {list, index, item});
  }
  Output Get(Output list, Output index, Output shape) {
    return Call("TensorListGetItem", {list, index, shape}, {{"element_dtype", DType::kDouble}});
  }
  Output FromTensor(Output tensor, Output shape) {
    return Call("TensorListFromTensor", {tensor, shape});
  }
  Output Stack(Output list, Output shape) {
    return Call("TensorListStack", {list, shape}, {{"element_dtype", DType::kDouble}});
  }
  // Returns a function of `y` whose gradient is different for each element.
  Output Weighed(Output y) { return Sin(y) * y; }
};

TEST_F(TensorLists, GradientsOfAStack) {
  const Output x = Input({1, 2}), z = Input({3, 4});
  const Output list = Push(Push(Push(Empty(Ints({2})), x), x * z), z);
  const Outputs popped = Pop(list, Ints({2}));
  CheckGradients(Weighed(popped[1]) * Weighed(Stack(popped[0], Ints({2}))), {x, z});
}

TEST_F(TensorLists, GradientsOfPopsAlone) {
  const Output x = Input({1, 2});
  CheckGradients(Weighed(Pop(Push(Empty(Ints({2})), x * x), Ints({2}))[1]), {x});
}

TEST_F(TensorLists, GradientsOfPlaces) {
  const Output x = Input({1, 2}), z = Input({3, 4});
  const Output list = Set(Set(Reserve(Ints({2}), Int(3)), Int(2), x * z), Int(0), z);
  const Output again = Set(list, Int(2), x);  // overwrites the product
  CheckGradients(Weighed(Get(again, Int(2), Ints({2}))) * Get(again, Int(0), Ints({2})) +
                     Weighed(Get(list, Int(2), Ints({2}))),
                 {x, z});
}

TEST_F(TensorLists, GradientsOfRows) {
  const Output x = Input(Tensor::Of<double>({3, 2}, {1, 2, 3, 4, 5, 6}));
  const Output list = FromTensor(x * x, Ints({2}));
  const Output longer = Call("TensorListResize", {list, Int(4)});
  const Output gathered = Call("TensorListGather", {longer, Ints({2, 3, 0}), Ints({2})},
                               {{"element_dtype", DType::kDouble}});
  CheckGradients(Weighed(gathered) * Stack(list, Ints({2})), {x});
}

TEST_F(TensorLists, GradientsOfScatters) {
  const Output x = Input(Tensor::Of<double>({2, 2}, {1, 2, 3, 4})), z = Input({5, 6});
  const Output first = Call("TensorListScatter", {x, Ints({2, 0}), Ints({2})});
  const Output second = Call("TensorListScatterV2", {x * x, Ints({1, 2}), Ints({2}), Int(3)});
  const Output into = Call("TensorListScatterIntoExistingList",
                           {first, ExpandDims(z, Int(0)), Ints({2})});  // overwrites a row of x
  CheckGradients(
      Weighed(Stack(into, Ints({2}))) * Stack(second, Ints({2})) + Stack(first, Ints({2})), {x, z});
}

TEST_F(TensorLists, GradientsOfPieces) {
  const Output x = Input(Tensor::Of<double>({3, 2}, {1, 2, 3, 4, 5, 6}));
  const Output list = Call("TensorListSplit", {x, Ints({-1, 2}), Longs({1, 0, 2})});
  const Attrs dtype = {{"element_dtype", DType::kDouble}};
  const Outputs v1 = CallN("TensorListConcat", {list}, dtype);
  const Outputs v2 = CallN("TensorListConcatV2", {list, Ints({-1, 2}), Longs({})}, dtype);
  CheckGradients(Weighed(v1[0]) * Exp(v2[0] * 0.1), {x});
}

TEST_F(TensorLists, GradientsOfOptionals) {
  const Output x = Input({1, 2}), z = Input(3.0);
  const Output made = Call("OptionalFromValue", {NodeInput(Outputs{x * z, z})});
  const Outputs values = CallN(
      "OptionalGetValue", {made},
      {{"output_types", std::vector<DType>{DType::kDouble, DType::kDouble}},
       {"output_shapes", std::vector<PartialShape>{PartialShape({2}), PartialShape::Scalar()}}});
  CheckGradients(Weighed(values[0]) * values[1], {x, z});
}

// The value of key 1 is replaced, that of key 2 is read twice, that of key 3 never.
TEST_F(TensorLists, GradientsOfMaps) {
  const Output x = Input({1, 2}), z = Input({3, 4});
  const auto insert = [&](Output map, int32_t key, Output value) {
    return Call("TensorMapInsert", {map, Int(key), value});
  };
  const Attrs dtype = {{"value_dtype", DType::kDouble}};
  const auto lookup = [&](Output map, int32_t key) {
    return Call("TensorMapLookup", {map, Int(key)}, dtype);
  };
  const Output map =
      insert(insert(insert(CallIn(program_, "EmptyTensorMap", {}), 1, x * x), 2, x * z), 3, z * z);
  const Output again = insert(map, 1, Sin(z));
  const Output erased = Call("TensorMapErase", {again, Int(3)}, dtype);
  CheckGradients(Weighed(lookup(erased, 1)) * lookup(again, 2) + lookup(map, 2), {x, z});
}

// The loop reads one list and writes another one, as map_fn does.
TEST_F(TensorLists, GradientsOfALoopOverPlaces) {
  const Output x = Input(Tensor::Of<double>({3, 2}, {1, 2, 3, 4, 5, 6})), w = Input({0.5, 0.25});
  const Output in = FromTensor(x, Ints({2}));
  const Output out = While(
      program_, {Int(0), Reserve(Ints({2}), Int(3))},
      [&](const Outputs& v) { return Less(v[0], Int(3)); },
      [&](const Outputs& v) {
        return Outputs{v[0] + 1, Set(v[1], v[0], Weighed(Get(in, v[0], Ints({2})) * w))};
      })[1];
  CheckGradients(Stack(out, Ints({2})), {x, w});
}

// The loop has a state in addition to the list, as scan does.
TEST_F(TensorLists, GradientsOfALoopThatPushes) {
  const Output x = Input({1, 2});
  const Outputs end = While(
      program_, {Int(0), x, Empty(Ints({2}))}, [&](const Outputs& v) { return Less(v[0], Int(4)); },
      [&](const Outputs& v) {
        const Output next = Sin(v[1] * x);
        return Outputs{v[0] + 1, next, Push(v[2], next * next)};
      });
  CheckGradients(Total(Stack(end[2], Ints({2}))) + Total(end[1]), {x});
}

TEST_F(TensorLists, InListsAndAcrossBranches) {
  const Output pred = InputBool(true), x = Input({1, 2});
  const Output inner = Cond(
      program_, pred, [&] { return Outputs{Push(Empty(Ints({2})), x)}; },
      [&] { return Outputs{Push(Empty(Ints({2})), x * x)}; })[0];
  const Output outer = Push(Empty(Ints({}), DType::kVariant), inner);
  const Output again =
      CallN("TensorListPopBack", {outer, Ints({})}, {{"element_dtype", DType::kVariant}})[1];
  const Output y = Weighed(Stack(again, Ints({2})));
  CheckGradients(y, {x});
  Feed(pred, Tensor::Scalar(false));
  CheckGradients(y, {x});
}

// The branches give the elements different shapes.
TEST_F(TensorLists, ShapesBehindBranchesAreNotThoseOfOne) {
  const Output pred = InputBool(false), x = Input({1, 2}), z = Input({1, 2, 3});
  const Output list = Cond(
      program_, pred, [&] { return Outputs{Push(Empty(Ints({2})), x)}; },
      [&] { return Outputs{Push(Empty(Ints({3})), z)}; })[0];
  const Output item = Get(list, Int(0), Int(-1));
  EXPECT_EQ(item.shape(), PartialShape());
  EXPECT_EQ(Text(ShapeOf(item)), "int32[1] 3");
  EXPECT_EQ(Get(Push(Empty(Ints({2})), x), Int(0), Int(-1)).shape(), PartialShape({2}));
}

TEST_F(TensorLists, ALoopChangesItsListInPlace) {
  const Output times = InputInt(50);
  const Output no_list = Constant(program_, Tensor::Scalar<int64_t>(0));
  const Outputs end = While(
      program_, {Int(0), Reserve(Ints({}), times), no_list, Int(0)},
      [&](const Outputs& v) { return Less(v[0], times); },
      [&](const Outputs& v) {
        const Output identity = Call("ListIdentity", {v[1]});
        const Output changed = Cast(Call("NotEqual", {identity, v[2]}), DType::kInt32);
        const auto after = program_.ControlDependencies({identity});
        const Output item = Cast(v[0], DType::kDouble);
        return Outputs{v[0] + 1, Set(v[1], v[0], item), identity, v[3] + changed};
      });
  EXPECT_EQ(Text(end[3]), "int32[] 1");  // taken in the first iteration, where v[2] is no list yet
  EXPECT_EQ(Text(Total(Stack(end[1], Ints({})))), "double[] 1225");
}

}  // namespace
}  // namespace penstock::client
