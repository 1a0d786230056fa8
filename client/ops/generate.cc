// SPDX-License-Identifier: Apache-2.0
#include "client/ops/generate.h"

#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/ops/op_signature.h"

namespace penstock::client {

namespace {

constexpr size_t kColumns = 100;

constexpr char kHeaderBegin[] = R"(// SPDX-License-Identifier: Apache-2.0
//
// One function per op. Written by client/ops/generate.cc from the ops' definitions: do not edit.
//
// Tensors and required attributes are arguments; the rest are options:
//   Output y = ops::MatMul(x, w, {.transpose_b = true, .name = "scores"});
// Numbers may stand for constants (client/ops/operand.h):
//   Output largest = ops::Max(ops::Maximum(y, 0), {0, 1});
// Types and counts are taken from the inputs. Ops without outputs return the node itself, to be
// named in control dependencies. Errors stick in the graph, as those of every node do.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

)"
                                "#include \"client/ops/located_outputs.h\"\n"
                                "#include \"client/ops/operand.h\"\n"
                                R"(#include "core/op/attr.h"
#include "core/op/output.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace penstock::ops {

// Options that every op takes.
struct NodeOptions {
  std::string name = "";  // a suggestion, made unique in the current scope; empty: the op's name
};
)";

constexpr char kSourceBegin[] = R"(
namespace penstock::ops {

namespace {

// Takes the outputs of a node, one output argument after the other. If the node was not added, all
// outputs are invalid.
class Results {
 public:
  explicit Results(Output node) : next_(node) {}
  Output NextOutput() {
    const Output output = next_;
    ++next_.index;
    return output;
  }
  Outputs NextOutputs(int64_t length) {
    Outputs outputs;
    while (length-- > 0) outputs.push_back(NextOutput());
    return outputs;
  }

 private:
  Output next_;
};

}  // namespace
)";

// Returns `text` as comment lines, wrapped.
std::string Comment(const std::string& text) {
  std::string comment;
  for (const string_view paragraph : absl::StrSplit(text, '\n')) {
    std::string line = "//";
    for (const string_view word : absl::StrSplit(paragraph, ' ', absl::SkipEmpty())) {
      if (line.size() + 1 + word.size() > kColumns && line != "//") {
        StrAppend(&comment, line, "\n");
        line = "//";
      }
      StrAppend(&line, " ", word);
    }
    StrAppend(&comment, line, "\n");
  }
  return comment;
}

std::string Documentation(const OpDef& op, const OpSignature& signature) {
  std::string text = op.doc.empty() ? StrCat("The op ", op.name, ".") : op.doc;
  for (const OpSignature::Argument& argument : signature.arguments) {
    if (!argument.doc.empty()) StrAppend(&text, "\n", argument.name, ": ", argument.doc);
  }
  for (const ArgDef& output : op.outputs) {
    if (!output.doc.empty()) StrAppend(&text, "\n-> ", output.name, ": ", output.doc);
  }
  return Comment(text);
}

std::string ResultType(const OpSignature& op) {
  if (op.results.empty()) return "Output";
  if (op.results.size() > 1) return op.function + "Outputs";
  return op.results[0].list ? "Outputs" : "Output";
}

// Returns "Output MatMul(Output a, Output b, const MatMulOptions& options", without the closing
// text.
std::string Head(const OpSignature& op) {
  std::vector<std::string> arguments;
  if (op.needs_graph) arguments.push_back("const LocatedSink& graph");
  for (const OpSignature::Argument& argument : op.arguments) {
    arguments.push_back(StrCat(argument.type, " ", argument.name));
  }
  arguments.push_back(StrCat("const ", op.options_type, "& options"));
  const std::string begin = StrCat(ResultType(op), " ", op.function, "(");
  const std::string one_line = begin + absl::StrJoin(arguments, ", ");
  constexpr size_t kEnd = 8;  // " = {});"
  if (one_line.size() + kEnd <= kColumns) return one_line;
  return begin + "\n    " + absl::StrJoin(arguments, ",\n    ");
}

std::string Structs(const OpSignature& op) {
  std::string text;
  if (!op.options.empty()) {
    StrAppend(&text, "struct ", op.options_type, " {\n");
    for (const OpSignature::Option& option : op.options) {
      StrAppend(&text, "  ", option.type, " ", option.name, " = ", option.default_value, ";\n");
    }
    StrAppend(&text, "  std::string name = \"\";\n};\n");
  }
  if (op.results.size() > 1) {
    StrAppend(&text, "struct ", ResultType(op), " {\n");
    for (const OpSignature::Result& result : op.results) {
      StrAppend(&text, "  ", result.list ? "Outputs " : "Output ", result.name, ";\n");
    }
    StrAppend(&text, "};\n");
  }
  return text;
}

std::string Take(const OpSignature::Result& result) {
  return result.list ? StrCat("results.NextOutputs(", result.length, ")") : "results.NextOutput()";
}

std::string Body(const OpSignature& op) {
  std::string attributes;
  for (const OpSignature::Attribute& attribute : op.attributes) {
    StrAppend(&attributes, attributes.empty() ? "" : ",", "\n           {\"", attribute.name,
              "\", ", attribute.value, "}");
  }
  std::string inputs = StrCat("{", absl::StrJoin(op.inputs, ", "), "}");
  if (op.has_operands) {
    inputs = StrCat("AsInputs(", op.needs_graph ? "&graph" : "nullptr", ", \"", op.function, "\", ",
                    inputs, ")");
  }
  const std::string graph = op.has_operands ? "*graph.sink" : "graph.Noted()";
  const std::string begin = op.needs_graph ? StrCat("CallIn(", graph, ", ") : "Call(";
  const std::string call =
      StrCat(begin, "\"", op.function, "\", ", inputs, ", {", attributes, "}, options.name)");
  const bool single = op.results.empty() || (op.results.size() == 1 && !op.results[0].list);
  if (single) return StrCat("  return ", call, ";\n");
  std::string body = StrCat("  Results results(", call, ");\n");
  if (op.results.size() == 1) return StrCat(body, "  return ", Take(op.results[0]), ";\n");
  StrAppend(&body, "  return {");
  for (const OpSignature::Result& result : op.results) {
    StrAppend(&body, &result == &op.results[0] ? "." : ", .", result.name, " = ", Take(result));
  }
  return body + "};\n";
}

}  // namespace

GeneratedOps GenerateOps(const Registry& registry, const std::string& include) {
  GeneratedOps generated;
  generated.header = kHeaderBegin;
  generated.source =
      StrCat("// SPDX-License-Identifier: Apache-2.0\n#include \"", include, "\"\n", kSourceBegin);
  for (const OpDef* op : registry.ops()) {
    if (op->internal()) continue;
    const OpSignature signature(*op);
    const std::string head = Head(signature);
    StrAppend(&generated.header, "\n", Structs(signature), Documentation(*op, signature), head,
              " = {});\n");
    StrAppend(&generated.source, "\n", head, ") {\n", Body(signature), "}\n");
  }
  const std::string end = "\n}  // namespace penstock::ops\n";
  generated.header += end;
  generated.source += end;
  return generated;
}

}  // namespace penstock::client
