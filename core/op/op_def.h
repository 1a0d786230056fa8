// SPDX-License-Identifier: Apache-2.0
//
// OpDef: everything that an op is, apart from its kernels: names and types of inputs, outputs and
// attributes, shape function, gradient, statefulness. Written once, beside its kernels:
//
//   OP(Concat) {
//     return {
//         .doc = "Joins tensors along one dimension.",
//         .inputs = {{"concat_dim", "int32"}, {"values", Repeat("N", "T")}},
//         .outputs = {{"output", "T"}},
//         .types = {{"T", kAllTypes}},
//         .attrs = {{"N", Ints{.min = 2}}},
//         .shape = ConcatShape,
//         .gradient = ConcatGradient,
//     };
//   }
//
// Names, attributes and semantics are TensorFlow's, so that a GraphDef means the same thing here.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/op/attr.h"
#include "core/tensor/dtype.h"

namespace penstock {

class ShapeScope;     // core/op/shape_scope.h
class GradientScope;  // core/op/gradient.h
struct FlopsScope;    // core/op/flops.h
struct Gradient;      // core/op/gradient.h

// The type of an input or output: a fixed type ("int32"), a type attribute ("T"), N tensors of one
// type (Repeat("N", "T")), a list of types (List("Tcomponents")), or a variable (Ref("T")).
struct ArgType {
  ArgType(const char* type) : type(type) {}  // NOLINT: {"x", "T"} is the common case
  std::string type;   // a dtype's name, or the name of a type or list(type) attribute
  std::string count;  // the int attribute that says how many, or empty
  bool list = false;  // `type` names a list(type) attribute
  bool ref = false;
};
inline ArgType Repeat(const char* count, ArgType type) {
  type.count = count;
  return type;
}
inline ArgType List(const char* types) {
  ArgType t(types);
  t.list = true;
  return t;
}
inline ArgType Ref(ArgType type) {
  type.ref = true;
  return type;
}

struct ArgDef {
  std::string name;
  ArgType type;
  std::string doc = "";
};

// A type attribute and what it may be. Optional where `default_type` is given, or inferred from the
// inputs when a graph is built through our own API.
struct TypeAttrDef {
  std::string name;
  DTypes allowed;
  DType default_type = DType::kInvalid;
};

// Required attributes, by kind. `min` is the least value, or the least length of a list.
struct Ints {
  int64_t min = std::numeric_limits<int64_t>::min();
};  // one int
struct Floats {};
struct Bools {};
struct Strings {};
struct OneOf {
  std::vector<std::string> allowed;
};  // a string; the first is NOT a default
struct Shapes {};
struct Tensors {};
struct Functions {};
struct IntList {
  int64_t min_length = 0;
};
struct FloatList {};
struct BoolList {};
struct StringList {};
struct TypeList {
  int64_t min_length = 0;
  DTypes allowed = {};
};
struct ShapeList {};
struct TensorList {};
struct FunctionList {};

// One attribute that is not a type: a kind (required) or a default value of that kind; a string
// default may come with the values allowed.
struct AttrDef {
  using Kind =
      std::variant<Ints, Floats, Bools, Strings, OneOf, Shapes, Tensors, Functions, IntList,
                   FloatList, BoolList, StringList, TypeList, ShapeList, TensorList, FunctionList>;
  AttrDef(std::string name, Kind kind);
  // Optional, of the kind of `default_value`. A default of an empty list needs the kind as well.
  AttrDef(std::string name, AttrValue default_value);
  AttrDef(std::string name, Kind kind, AttrValue default_value);

  std::string name;
  Kind kind;
  AttrValue default_value;  // absent: required
  bool required() const { return !default_value.present(); }
};

using ShapeFn = std::function<Status(ShapeScope&)>;
// Floating-point operations of one execution; core/op/flops.h has those of products.
using FlopsFn = double (*)(const FlopsScope&);
// One entry per input, in order; an empty Gradient where none flows.
using GradientFn = std::function<std::vector<Gradient>(const GradientScope&)>;

// A call of the op that works: what documentation shows and what the conformance test runs for
// every type, with shape inference and gradients. Ops whose inputs may be any tensors of equal
// shape need none.
struct ExampleTensor {
  Dims shape;
  // Converted to the argument's type; left out: distinct numbers between 0.1 and 0.9 (integers:
  // 1, 2, 3, ...; strings: "a", "b", ...).
  std::vector<double> values = {};
};
struct Example {
  std::vector<std::vector<ExampleTensor>> inputs;  // per argument; a list argument has several
  Attrs attrs = {};                                // without those that the inputs determine
  // False where central differences do not apply: random, discontinuous or integer-valued there.
  bool check_gradient = true;
};

// Ops of control flow. The executor runs them itself: it decides which outputs are alive, and in
// which iteration of which loop. The variants for references, and _SwitchN, count as the op itself.
enum class FlowOp : uint8_t { kNone, kSwitch, kMerge, kEnter, kExit, kNextIteration, kLoopCond };

// Ops that the compiler adds where tensors enter and leave a step or a partition.
enum class EndOp : uint8_t { kNone, kFeed, kFetch, kSend, kRecv };

// Ops on the stacks that keep a loop's values for its gradient.
enum class StackOp : uint8_t { kNone, kMake, kPush, kPop };

// Ops that programs compute sizes with. Shape inference follows their values. kShape: of each
// input.
enum class ShapeOp : uint8_t { kNone, kShape, kRank, kSize, kPack };

struct OpDef {
  std::string name = "";  // filled in by OP
  std::string doc = "";
  std::vector<ArgDef> inputs = {};
  std::vector<ArgDef> outputs = {};
  std::vector<TypeAttrDef> types = {};
  std::vector<AttrDef> attrs = {};
  // Null: every output is of unknown shape.
  ShapeFn shape = nullptr;
  // Null: asking for a gradient through the op is an error that names it. For ops that pass none
  // on purpose use NoGradient (core/op/gradient.h).
  GradientFn gradient = nullptr;
  std::vector<Example> examples = {};
  bool stateful = false;  // never merged, folded, or run twice for one
  bool commutative = false;
  bool aggregate = false;
  bool allows_uninitialized_input = false;  // its ref inputs may not have been assigned yet

  // Traits: what the compiler, the executor and the tests know of single ops. They read these and
  // compare no names.
  FlowOp flow = FlowOp::kNone;
  EndOp end = EndOp::kNone;
  StackOp stack = StackOp::kNone;
  ShapeOp shape_op = ShapeOp::kNone;
  bool is_constant = false;     // its output is its attribute `value`
  bool is_placeholder = false;  // steps feed its output with values of its attribute `shape`
  bool passes_through = false;  // output 0 is input 0, unchanged
  bool only_orders = false;     // has control edges only; the executor runs no kernel for it
  bool runs_dead = false;       // runs also if an input is dead
  bool only_reads = false;      // does not change the state behind its ref and handle inputs
  bool shuffles = false;      // gives elements in an order that its attributes `seed`, `seed2` fix
  bool in_session = false;    // its state belongs to the session, whatever its attributes say
  bool acts_outside = false;  // ends the process, prints, or uses files that its inputs name
  // The op that passes a reference on as this op passes a value on. Empty: there is none.
  std::string ref_form = "";
  // Why a test of every op cannot call this one alone. Empty: it can.
  std::string not_alone = "";
  FlopsFn flops = nullptr;  // null: one per element of output 0
};

// How many tensors `arg` stands for and their types, given a node's complete attributes.
// InvalidArgument names the attribute that is missing or wrong.
Status AppendArgTypes(const ArgDef& arg, const Attrs& attrs, std::vector<EdgeType>* types);

// Fills in defaults and checks every attribute of `def` in `attrs`: presence, kind, allowed values,
// minima. Attributes that `def` does not know are kept and ignored.
Status CompleteAttrs(const OpDef& def, Attrs* attrs);

// Adds to `attrs` what the inputs say: type, count and type-list attributes. `args` holds one entry
// per declared input (the types of the tensors given for it), `is_list` whether it was given as a
// list. InvalidArgument, naming input and type, where inputs contradict the declaration, each
// other, or an attribute already in `attrs`. Call it before CompleteAttrs.
Status InferAttrs(const OpDef& def, const std::vector<std::vector<EdgeType>>& args,
                  const std::vector<bool>& is_list, Attrs* attrs);

}  // namespace penstock
