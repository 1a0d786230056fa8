// SPDX-License-Identifier: Apache-2.0
//
// Implements the functions of Dataset that make sources (numbers, tensors, files), Zip and
// FromVariant.
#include <utility>

#include "client/dataset_node.h"

namespace penstock::client {
namespace {

const TensorSpecs& OneString() {
  static const TensorSpecs kOne{{DType::kString}, {PartialShape::Scalar()}};
  return kOne;
}

TensorSpecs SpecsOf(const Outputs& tensors) {
  TensorSpecs specs;
  for (const Output& tensor : tensors) {
    specs.types.push_back(tensor.dtype());
    specs.shapes.push_back(tensor.shape());
  }
  return specs;
}

// Returns the shape of a row of `shape`, whose rank is not 0.
PartialShape RowOf(const PartialShape& shape) {
  return shape.known_rank() ? PartialShape(shape.dims().subspan(1)) : PartialShape();
}

void CheckFiles(DatasetNode& node, const Output& files) {
  if (!files.valid()) return;
  if (files.dtype() == DType::kString && files.shape().rank() <= 1) return;
  node.Fail("the files must be a string or a vector of strings, are ", Name(files.dtype()),
            files.shape().ToString());
}

Dataset Files(DatasetNode node, string_view op, Output files, const FileOptions& options) {
  CheckFiles(node, files);
  node.AtLeast("buffer_size", options.buffer_size, 0);
  const Output compression = node.Text(options.compression);
  return node.Make(op, {files, compression, node.Number(options.buffer_size)}, {}, OneString());
}

// Adds a constant with the names of files.
Output Named(GraphBuilder& graph, const std::vector<std::string>& files, SourceLine line) {
  const auto line_scope = graph.SourceLineScope(line);
  if (files.empty()) graph.Fail(MadeAt(InvalidArgument("a dataset of no files"), line));
  return Constant(graph, Tensor::Vector<std::string>(files));
}

}  // namespace

Dataset Dataset::Range(GraphBuilder& graph, int64_t start, int64_t stop, int64_t step, Line line) {
  DatasetNode node(graph, "range", line);
  if (step == 0) node.Fail("step must not be 0");
  TensorSpecs elements{{DType::kInt64}, {PartialShape::Scalar()}};
  const Output first = node.Number(start), end = node.Number(stop);
  return node.Make("RangeDataset", {first, end, node.Number(step)}, DatasetNode::Spec(elements),
                   elements);
}

Dataset Dataset::Tensors(GraphBuilder& graph, const Outputs& tensors, Line line) {
  DatasetNode node(graph, "tensors", line);
  if (tensors.empty()) node.Fail("an element needs at least one tensor");
  TensorSpecs elements = SpecsOf(tensors);
  return node.Make("TensorDataset", {tensors}, {{"output_shapes", elements.shapes}}, elements);
}

Dataset Dataset::TensorSlices(GraphBuilder& graph, const Outputs& tensors, Line line) {
  DatasetNode node(graph, "tensor_slices", line);
  if (tensors.empty()) node.Fail("an element needs at least one tensor");
  TensorSpecs elements = SpecsOf(tensors);
  PartialShape rows = PartialShape::UnknownOfRank(1);
  for (size_t i = 0; i < tensors.size(); ++i) {
    PartialShape& shape = elements.shapes[i];
    if (shape.rank() == 0) {
      node.Fail("'", tensors[i].name(), "' is a scalar, which has no rows");
      break;
    }
    if (shape.known_rank()) {
      const auto merged = rows.Merge({shape.dim(0)});
      if (!merged.ok()) {
        node.Fail("'", tensors[i].name(), "' has ", shape.dim(0), " rows, '", tensors[0].name(),
                  "' has ", rows.dim(0));
        break;
      }
      rows = *merged;
    }
    shape = RowOf(shape);
  }
  return node.Make("TensorSliceDataset", {tensors}, {{"output_shapes", elements.shapes}}, elements);
}

Dataset Dataset::TFRecords(GraphBuilder& graph, Output files, const FileOptions& options,
                           Line line) {
  return Files({graph, "tf_records", line}, "TFRecordDataset", files, options);
}

Dataset Dataset::TextLines(GraphBuilder& graph, Output files, const FileOptions& options,
                           Line line) {
  return Files({graph, "text_lines", line}, "TextLineDataset", files, options);
}

Dataset Dataset::FixedLengthRecords(GraphBuilder& graph, Output files, int64_t record_bytes,
                                    const FixedLengthOptions& options, Line line) {
  DatasetNode node(graph, "fixed_length_records", line);
  CheckFiles(node, files);
  node.AtLeast("record_bytes", record_bytes, 1);
  node.AtLeast("header_bytes", options.header_bytes, 0);
  node.AtLeast("footer_bytes", options.footer_bytes, 0);
  node.AtLeast("buffer_size", options.buffer_size, 0);
  const std::vector<NodeInput> inputs = {files,
                                         node.Number(options.header_bytes),
                                         node.Number(record_bytes),
                                         node.Number(options.footer_bytes),
                                         node.Number(options.buffer_size),
                                         node.Text(options.compression)};
  return node.Make("FixedLengthRecordDatasetV2", inputs, {}, OneString());
}

Dataset Dataset::TFRecords(GraphBuilder& graph, const Strings& files, const FileOptions& options,
                           Line line) {
  return TFRecords(graph, Named(graph, files, line), options, line);
}

Dataset Dataset::TextLines(GraphBuilder& graph, const Strings& files, const FileOptions& options,
                           Line line) {
  return TextLines(graph, Named(graph, files, line), options, line);
}

Dataset Dataset::FixedLengthRecords(GraphBuilder& graph, const Strings& files, int64_t record_bytes,
                                    const FixedLengthOptions& options, Line line) {
  return FixedLengthRecords(graph, Named(graph, files, line), record_bytes, options, line);
}

Dataset Dataset::Zip(GraphBuilder& graph, const std::vector<Dataset>& datasets, Line line) {
  DatasetNode node(graph, "zip", line);
  if (datasets.empty()) node.Fail("there must be at least one dataset");
  if (!datasets.empty()) node.PlaceBeside(datasets[0]);
  Outputs variants;
  TensorSpecs elements;
  for (const Dataset& each : datasets) {
    variants.push_back(each.variant());
    node.InheritRepeatable(each);
    elements.types.insert(elements.types.end(), each.types().begin(), each.types().end());
    elements.shapes.insert(elements.shapes.end(), each.shapes().begin(), each.shapes().end());
  }
  return node.Make("ZipDataset", {variants}, DatasetNode::Spec(elements), elements);
}

Dataset Dataset::FromVariant(GraphBuilder& graph, Output variant, TensorSpecs elements, Line line) {
  DatasetNode node(graph, "from_variant", line);
  if (!variant.valid()) node.Fail("the variant is no output");
  if (variant.valid() && variant.dtype() != DType::kVariant) {
    node.Fail("a dataset is a variant, '", variant.name(), "' is ", Name(variant.dtype()));
  }
  if (elements.types.empty() || elements.types.size() != elements.shapes.size()) {
    node.Fail("an element needs as many types as shapes, and at least one; they are ",
              elements.types.size(), " and ", elements.shapes.size());
  }
  return Dataset(graph, variant, std::move(elements));
}

}  // namespace penstock::client
