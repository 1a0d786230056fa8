// SPDX-License-Identifier: Apache-2.0
//
// OpDef: the definition of an op without its kernels: names and types of inputs, outputs and
// attributes, shape function, gradient, traits. The file with the op's kernels declares it:
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
// Names, attributes and semantics are TensorFlow's, so that TensorFlow's GraphDefs can run here.
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
  std::string count;  // the int attribute with the number of tensors, or empty
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
  // True for a gradient or a delta: the op changes state by this small amount, so the tensor may be
  // sent to it with less precision.
  bool is_gradient = false;
};

// A type attribute and its allowed types (empty: all). A program need not set the attribute if it
// has a `default_type`, or if the graph builder can infer it from the inputs.
struct TypeAttrDef {
  std::string name;
  DTypes allowed;
  DType default_type = DType::kInvalid;
};

// The kinds of attributes. `min` is the minimum value, `min_length` the minimum length of a list.
struct Ints {
  int64_t min = std::numeric_limits<int64_t>::min();
};  // one int
struct Floats {};
struct Bools {};
struct Strings {};
struct OneOf {
  std::vector<std::string> allowed;
};  // a string, one of the allowed ones; the first one is not a default
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

// An attribute that is not a type. Declare it with a kind if every node must set the attribute, or
// with a default value if it is optional. OneOf is a string with a list of allowed values.
struct AttrDef {
  using Kind =
      std::variant<Ints, Floats, Bools, Strings, OneOf, Shapes, Tensors, Functions, IntList,
                   FloatList, BoolList, StringList, TypeList, ShapeList, TensorList, FunctionList>;
  AttrDef(std::string name, Kind kind);
  // An optional attribute of the kind of `default_value`. If the default is an empty list, give the
  // kind, too.
  AttrDef(std::string name, AttrValue default_value);
  AttrDef(std::string name, Kind kind, AttrValue default_value);

  std::string name;
  Kind kind;
  AttrValue default_value;  // not present(): every node must set the attribute
  bool required() const { return !default_value.present(); }
};

using ShapeFn = std::function<Status(ShapeScope&)>;
// Returns the number of floating-point operations of one execution. core/op/flops.h has FlopsFns
// for matrix products and convolutions.
using FlopsFn = double (*)(const FlopsScope&);
// Estimates the bytes of the state that a node with these attributes will hold. The attributes may
// be incomplete or of a wrong kind.
using StateBytesFn = double (*)(const Attrs&);
// Returns one entry per input, in order; an empty Gradient if no gradient flows there.
using GradientFn = std::function<std::vector<Gradient>(const GradientScope&)>;

// One tensor of an Example.
struct ExampleTensor {
  Dims shape;
  // The elements, converted to the argument's type. If empty, the elements are distinct numbers
  // between 0.1 and 0.9 (integers: 1, 2, 3, ...; strings: "a", "b", ...).
  std::vector<double> values = {};
};
// A valid call of the op. The documentation shows the call, and the conformance test runs it for
// every type, with shape inference and gradients. An op that accepts any tensors of equal shape as
// inputs needs no example.
struct Example {
  std::vector<std::vector<ExampleTensor>> inputs;  // per argument; a list argument has several
  Attrs attrs = {};                                // without attributes that the inputs determine
  // False if a test cannot compare the gradient with central differences, because the op is random,
  // or is discontinuous or integer-valued at the example's inputs.
  bool check_gradient = true;
};

// Control-flow ops. The executor runs them without a kernel: it decides which outputs are alive,
// and in which iteration of which loop. Reference forms (RefSwitch, ...) and _SwitchN have the same
// enumerator as the plain op.
enum class FlowOp : uint8_t { kNone, kSwitch, kMerge, kEnter, kExit, kNextIteration, kLoopCond };

// Ops that the compiler adds where tensors enter and leave a step or a partition.
enum class EndOp : uint8_t { kNone, kFeed, kFetch, kSend, kRecv };

// Ops on stacks. A stack keeps the values of a loop's iterations for the loop's gradient.
enum class StackOp : uint8_t { kNone, kMake, kPush, kPop };

// Ops that compute shapes and sizes. Shape inference computes their values, too. A kShape op has
// one output for each input.
enum class ShapeOp : uint8_t { kNone, kShape, kRank, kSize, kPack };

// How a node uses a queue, barrier, accumulator, staging area or lock. A kPuts node adds elements
// or closes the resource; kTakes nodes may wait for a kPuts node. A kTakes node removes elements;
// kPuts nodes may wait for a kTakes node. A kLocks node locks the resource.
enum class ResourceUse : uint8_t { kOther, kPuts, kTakes, kLocks };

// The inputs whose buffer a kernel may use for output 0, if type and size are the same and nothing
// else refers to the buffer: none, input 0 only, or any input.
enum class Reuse : uint8_t { kNone, kFirst, kAny };

struct OpDef {
  std::string name = "";  // filled in by OP
  std::string doc = "";
  std::vector<ArgDef> inputs = {};
  std::vector<ArgDef> outputs = {};
  std::vector<TypeAttrDef> types = {};
  std::vector<AttrDef> attrs = {};
  // Null: every output has unknown shape.
  ShapeFn shape = nullptr;
  // Null: a gradient through the op is an error that names the op. Ops that deliberately pass no
  // gradient use NoGradient (core/op/gradient.h).
  GradientFn gradient = nullptr;
  std::vector<Example> examples = {};
  bool stateful = false;  // the compiler never merges, folds or repeats a node of the op
  bool commutative = false;
  bool aggregate = false;                   // adds up all inputs, in the order of the inputs
  bool allows_uninitialized_input = false;  // ref inputs may refer to variables without values

  // Traits that the compiler, the executor and the tests read instead of comparing op names.
  FlowOp flow = FlowOp::kNone;
  EndOp end = EndOp::kNone;
  StackOp stack = StackOp::kNone;
  ShapeOp shape_op = ShapeOp::kNone;
  bool is_constant = false;     // its output is its attribute `value`
  bool is_placeholder = false;  // steps feed its output with values of its attribute `shape`
  bool passes_through = false;  // output 0 is input 0, unchanged; implies is_view
  bool is_view = false;         // output i has the buffer of input i, perhaps under another shape
  Reuse reuses = Reuse::kNone;  // the inputs whose buffers output 0 may take
  bool only_orders = false;     // only the node's control edges matter; it has no kernel to run
  bool runs_dead = false;       // runs even if an input is dead
  bool only_reads = false;      // does not change the state behind its ref and handle inputs
  bool reads_variable = false;  // output 0 is a snapshot of the variable behind input 0
  // A node of the op may wait for another node of the same or another step, or may end such a wait:
  // queues, barriers, accumulators, staging areas, locks, readers, collectives.
  bool may_wait = false;
  ResourceUse resource_use = ResourceUse::kOther;
  int used_input = 0;  // the input with the handle of the resource to which resource_use applies
  // The op returns elements in an order that its attributes `seed` and `seed2` determine.
  bool shuffles = false;
  bool seedless = false;  // the output is random, and neither a seed nor an input determines it
  bool in_session = false;  // the op's state belongs to the session, whatever its attributes are
  // The op's state is a part of the model. Training programs place such ops on parameter servers.
  bool holds_parameters = false;
  // For training ops: the rule by which the op changes the state behind input 0, such as "Adam".
  // The dense and sparse ops of one optimizer have the same rule. Empty: not a training op.
  std::string update_rule = "";
  bool acts_outside = false;  // the op ends the process, prints, or uses files named by its inputs
  // The op that does with references what this op does with values, such as RefSwitch for Switch.
  // Empty: none.
  std::string ref_form = "";
  // The reason why tests of all ops cannot run this op alone; empty if they can.
  std::string untestable_alone = "";
  bool distinct = false;               // no two rows of output 0 are equal
  StateBytesFn state_bytes = nullptr;  // null: a tensor with the attributes `dtype` and `shape`
  FlopsFn flops = nullptr;             // null: one operation per element of output 0

  // Returns whether the op is internal: only the compiler adds nodes of it, programs cannot. The
  // names of internal ops begin with "_", like those of TensorFlow.
  bool internal() const { return name.starts_with('_'); }
  // Returns whether a node of the op spends its time waiting for other nodes instead of computing.
  bool waits_for_others() const { return may_wait || end == EndOp::kRecv; }
};

// Appends the types of all tensors of the argument `arg` to `types`, for a node with the complete
// attributes `attrs`. InvalidArgument names the attribute that is missing or wrong.
Status AppendArgTypes(const ArgDef& arg, const Attrs& attrs, std::vector<EdgeType>* types);

// Adds default values to `attrs`, and checks presence, kind, allowed values and minima of every
// attribute that `def` declares. Keeps attributes that `def` does not declare, unchecked.
Status CompleteAttrs(const OpDef& def, Attrs* attrs);

// Adds the attributes that the inputs determine to `attrs`: types, counts and type lists. args[i]
// has the types of the tensors of declared input i; is_list[i] tells whether the caller gave them
// as a list. InvalidArgument names the input and the type if inputs contradict the declaration,
// each other, or an attribute already in `attrs`. Call this before CompleteAttrs.
Status InferAttrs(const OpDef& def, const std::vector<std::vector<EdgeType>>& args,
                  const std::vector<bool>& is_list, Attrs* attrs);

}  // namespace penstock
