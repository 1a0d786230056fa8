// SPDX-License-Identifier: Apache-2.0
//
// Writes the sample calls of all ops to a TFRecord file, for tests/agreement. Each record is a
// GraphDef: a Const for each input, in order, then the op's node. A Const that is the value of a
// variable has the attribute _variable.
//
//   export_samples FILE
#include <cstdio>

#include "core/base/env.h"
#include "core/op/variable.h"
#include "core/record/record_writer.h"
#include "core/wire/attr_proto.h"
#include "core/wire/tensor_proto.h"
#include "proto/tensorflow/graph.pb.h"
#include "tests/conformance/samples.h"

namespace penstock {
namespace {

// Returns the value of the variable that a handle names.
StatusOr<Tensor> VariableValue(const Tensor& handle) {
  auto& resource = *handle.scalar<ResourceHandle>().resource;
  return static_cast<Variable&>(resource).Read();
}

Status AddInput(const Tensor& tensor, const std::string& name, tensorflow::GraphDef* graph) {
  Tensor value = tensor;
  tensorflow::NodeDef& node = *graph->add_node();
  auto& attrs = *node.mutable_attr();
  if (tensor.dtype() == DType::kResource) {
    ASSIGN_OR_RETURN(value, VariableValue(tensor));
    attrs["_variable"].set_b(true);
  }
  node.set_name(name);
  node.set_op("Const");
  AttrToProto(AttrValue(value.dtype()), &attrs["dtype"]);
  return TensorToProto(value, attrs["value"].mutable_tensor());
}

StatusOr<std::string> Export(const SampleCall& call) {
  tensorflow::GraphDef graph;
  tensorflow::NodeDef node;
  for (size_t i = 0; i < call.args.size(); ++i) {
    for (size_t j = 0; j < call.args[i].size(); ++j) {
      const std::string name = StrCat("arg", i, "_", j);
      RETURN_IF_ERROR(AddInput(call.args[i][j], name, &graph));
      node.add_input(name);
    }
  }
  node.set_name(call.label);
  node.set_op(call.op->name);
  for (const auto& [name, value] : call.attrs) AttrToProto(value, &(*node.mutable_attr())[name]);
  *graph.add_node() = node;
  return graph.SerializeAsString();
}

Status ExportAll(const std::string& path) {
  ASSIGN_OR_RETURN(const auto writer, RecordWriter::Create(Env::Real(), path));
  for (const OpDef* op : Registry::Global().ops()) {
    const auto samples = SamplesOf(*op);
    // the op has no samples, as queue ops have none
    if (!samples.ok()) continue;
    for (const SampleCall& call : *samples) {
      ASSIGN_OR_RETURN(const std::string graph, Export(call));
      RETURN_IF_ERROR(writer->Write(graph));
    }
  }
  return writer->Close();
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  if (argc != 2 || argv[1][0] == '-') {
    std::fprintf(stderr, "Usage: export_samples FILE\n");
    return 2;
  }
  const penstock::Status status = penstock::ExportAll(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "export_samples: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
