// SPDX-License-Identifier: Apache-2.0
//
// Output: one output of one node of a graph that is being built, with arithmetic operators. Client
// programs and the gradient functions of ops build graphs with Outputs.
//
//   Output y = Tanh(MatMul(x, w) + b);
//
// An Output is two words and is passed by value. It borrows the GraphSink, which must outlive it.
// After the first error, every call returns an invalid Output, and the sink keeps that error: its
// status names the node and the mistake. Not thread-safe.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/op/attr.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace penstock {

class GraphSink;

struct Output {
  GraphSink* sink = nullptr;
  int node = -1;
  int index = 0;

  bool valid() const { return sink != nullptr && node >= 0; }
  // Returns output i of the same node.
  Output Sibling(int i) const { return {sink, node, i}; }
  // These return kInvalid, an unknown shape and "" for an invalid output.
  EdgeType type() const;
  DType dtype() const { return type().dtype; }
  PartialShape shape() const;  // as far as shape inference knows it
  std::string name() const;    // "node:0"
  // Returns the value if it is known while the graph is built (a constant, a known shape), or null.
  const Tensor* constant() const;
  bool operator==(const Output&) const = default;
};
using Outputs = std::vector<Output>;

// A line of the program that builds the graph. `file` is never freed; null: unknown.
struct SourceLine {
  const char* file = nullptr;
  int line = 0;
};

// An argument of an op: one tensor or a list of them.
struct NodeInput {
  NodeInput(Output output) : outputs{output} {}                            // NOLINT
  NodeInput(Outputs outputs) : outputs(std::move(outputs)), list(true) {}  // NOLINT
  Outputs outputs;
  bool list = false;
};

// The interface to which nodes are added. The graph builder (core/graph) implements it.
class GraphSink {
 public:
  virtual ~GraphSink() = default;
  // Adds a node of `op`. Type, count and type-list attributes that the inputs determine are
  // inferred; `attrs` holds the others (and may hold these too). `name` is a suggestion, made
  // unique in the current scope; empty: the op's name. Returns the new node's id, or -1 after an
  // error.
  virtual int AddNode(string_view op, const std::vector<NodeInput>& inputs, Attrs attrs,
                      string_view name) = 0;
  virtual int num_outputs(int node) const = 0;
  virtual EdgeType output_type(int node, int index) const = 0;
  virtual PartialShape output_shape(int node, int index) const = 0;
  virtual std::string output_name(int node, int index) const = 0;
  // Returns the output's value if it is known while the graph is built, else null. The pointer is
  // valid until the next node is added.
  virtual const Tensor* output_constant(int node, int index) const { return nullptr; }
  // Returns the first error, or OK.
  virtual Status status() const = 0;
  virtual void Fail(Status status) = 0;
  // Sets the source line of the node that is added next. Errors of that node name the line.
  virtual void NoteSourceLine(SourceLine line) {}
};

// An argument of a function that adds a node: an Output, or a value that converts to one (a
// variable), and the line of the call.
class LocatedOutput {
 public:
  LocatedOutput() = default;                                         // no output, no line
  LocatedOutput(Output output, const char* file = __builtin_FILE(),  // NOLINT
                int line = __builtin_LINE())
      : output_(output), line_{file, line} {}
  template <class T>
  requires(std::convertible_to<const T&, Output> && !std::same_as<T, Output>)
      LocatedOutput(const T& value, const char* file = __builtin_FILE(),  // NOLINT
                    int line = __builtin_LINE())
      : output_(value), line_{file, line} {}

  const Output& output() const { return output_; }
  SourceLine line() const { return line_; }
  // Returns the output, after passing the line to the sink's NoteSourceLine.
  Output Noted() const;

 private:
  Output output_;
  SourceLine line_;
};

// The graph, as an argument of a function that adds a node, and the line of the call.
struct LocatedSink {
  LocatedSink(GraphSink& sink, const char* file = __builtin_FILE(),  // NOLINT
              int line = __builtin_LINE())
      : sink(&sink), line{file, line} {}
  // Returns the sink, after passing the line to its NoteSourceLine.
  GraphSink& Noted() const;
  GraphSink* sink;
  SourceLine line;
};

// Call adds a node and returns its first output; CallN returns all outputs. They use the sink of
// the first input that has one. After an error, Call returns an invalid Output that has this sink,
// and CallN several such Outputs, so that code may index the result before it reads the sink's
// status. `name` has the same meaning as for AddNode.
Output Call(string_view op, const std::vector<NodeInput>& inputs, Attrs attrs = {},
            string_view name = "");
Outputs CallN(string_view op, const std::vector<NodeInput>& inputs, Attrs attrs = {});
// Does the same as Call, with an explicit sink, for ops without inputs.
Output CallIn(GraphSink& sink, string_view op, const std::vector<NodeInput>& inputs,
              Attrs attrs = {}, string_view name = "");

// Adds a Const node.
Output Constant(GraphSink& sink, Tensor value);
// Adds a scalar constant with the dtype of `like`. If that dtype is not numeric or cannot hold
// `value`, sets an error in the sink.
Output ConstantLike(Output like, double value);

// Arithmetic operators. A number becomes a constant with the other operand's dtype. Integer
// division is FloorDiv, like Python's and NumPy's //.
Output operator+(const LocatedOutput& a, const LocatedOutput& b);
Output operator-(const LocatedOutput& a, const LocatedOutput& b);
Output operator*(const LocatedOutput& a, const LocatedOutput& b);
Output operator/(const LocatedOutput& a, const LocatedOutput& b);
Output operator-(const LocatedOutput& a);
Output operator+(const LocatedOutput& a, double b);
Output operator-(const LocatedOutput& a, double b);
Output operator*(const LocatedOutput& a, double b);
Output operator/(const LocatedOutput& a, double b);
Output operator+(double a, const LocatedOutput& b);
Output operator-(double a, const LocatedOutput& b);
Output operator*(double a, const LocatedOutput& b);
Output operator/(double a, const LocatedOutput& b);

}  // namespace penstock
