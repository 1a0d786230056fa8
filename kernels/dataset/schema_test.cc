// SPDX-License-Identifier: Apache-2.0
//
// Compares the ops of tf.data with TensorFlow 2.15's definitions: testdata/tensorflow_2.15_ops.txt
// has a line for each op. Every op must be registered with an equal definition, or be in the list
// below.
#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/op/registry.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

// Ops that are not supported, because they read other systems, or belong to tf.data's service or to
// eager execution.
const std::set<std::string>& UnsupportedOps() {
  static const std::set<std::string> names = {"AnonymousMultiDeviceIterator",
                                              "AnonymousMultiDeviceIteratorV3",
                                              "AutoShardDataset",
                                              "ChooseFastestBranchDataset",
                                              "ChooseFastestDataset",
                                              "DataServiceDataset",
                                              "DataServiceDatasetV2",
                                              "DataServiceDatasetV3",
                                              "DataServiceDatasetV4",
                                              "DatasetFingerprint",
                                              "DatasetFromGraph",
                                              "DatasetToGraph",
                                              "DatasetToGraphV2",
                                              "DatasetToTFRecord",
                                              "DeleteMultiDeviceIterator",
                                              "ExperimentalAutoShardDataset",
                                              "ExperimentalChooseFastestDataset",
                                              "ExperimentalDatasetToTFRecord",
                                              "ExperimentalIteratorGetDevice",
                                              "ExperimentalLMDBDataset",
                                              "ExperimentalMatchingFilesDataset",
                                              "ExperimentalSetStatsAggregatorDataset",
                                              "ExperimentalSlidingWindowDataset",
                                              "ExperimentalSqlDataset",
                                              "ExperimentalThreadPoolDataset",
                                              "FilterByLastComponentDataset",
                                              "GlobalShuffleDataset",
                                              "IndexFlatMapDataset",
                                              "InitializeTableFromDataset",
                                              "IteratorGetDevice",
                                              "IteratorGetModelProto",
                                              "LMDBDataset",
                                              "ListDataset",
                                              "ListSnapshotChunksDataset",
                                              "LoadDataset",
                                              "MatchingFilesDataset",
                                              "MultiDeviceIterator",
                                              "MultiDeviceIteratorFromStringHandle",
                                              "MultiDeviceIteratorGetNextFromShard",
                                              "MultiDeviceIteratorInit",
                                              "MultiDeviceIteratorToStringHandle",
                                              "RegisterDataset",
                                              "RegisterDatasetV2",
                                              "SaveDataset",
                                              "SaveDatasetV2",
                                              "SetStatsAggregatorDataset",
                                              "SlidingWindowDataset",
                                              "SnapshotChunkDataset",
                                              "SnapshotDataset",
                                              "SnapshotDatasetReader",
                                              "SnapshotDatasetV2",
                                              "SnapshotNestedDatasetReader",
                                              "SqlDataset",
                                              "ThreadPoolDataset",
                                              "UnwrapDatasetVariant",
                                              "WeightedFlatMapDataset",
                                              "WrapDatasetVariant"};
  return names;
}

std::string ArgText(const ArgDef& arg) {
  const std::string count = arg.type.count.empty() ? "" : arg.type.count + "*";
  return StrCat(arg.name, ":", count, arg.type.type);
}

struct KindText {
  std::string operator()(const Ints& kind) const { return AtLeast("int", kind.min); }
  std::string operator()(const Floats&) const { return "float"; }
  std::string operator()(const Bools&) const { return "bool"; }
  std::string operator()(const Strings&) const { return "string"; }
  std::string operator()(const OneOf&) const { return "string"; }
  std::string operator()(const Shapes&) const { return "shape"; }
  std::string operator()(const Tensors&) const { return "tensor"; }
  std::string operator()(const Functions&) const { return "func"; }
  std::string operator()(const IntList& kind) const {
    return AtLeast("list(int)", kind.min_length);
  }
  std::string operator()(const FloatList&) const { return "list(float)"; }
  std::string operator()(const BoolList&) const { return "list(bool)"; }
  std::string operator()(const StringList&) const { return "list(string)"; }
  std::string operator()(const TypeList& kind) const {
    return AtLeast("list(type)", kind.min_length);
  }
  std::string operator()(const ShapeList&) const { return "list(shape)"; }
  std::string operator()(const TensorList&) const { return "list(tensor)"; }
  std::string operator()(const FunctionList&) const { return "list(func)"; }

  static std::string AtLeast(const char* type, int64_t least) {
    return least > 0 ? StrCat(type, ">=", least) : type;
  }
};

std::string DefaultText(const AttrDef& attr) {
  if (attr.required()) return "";
  if (const bool* value = attr.default_value.get<bool>()) return *value ? "=true" : "=false";
  if (const int64_t* value = attr.default_value.get<int64_t>()) return StrCat("=", *value);
  if (const std::string* value = attr.default_value.get<std::string>()) {
    return StrCat("=\"", *value, "\"");
  }
  return "=[]";
}

std::string Text(const OpDef& op) {
  const auto join = [](const std::vector<ArgDef>& args) {
    return absl::StrJoin(args, ", ",
                         [](std::string* out, const ArgDef& arg) { out->append(ArgText(arg)); });
  };
  std::map<std::string, std::string> attrs;
  for (const TypeAttrDef& type : op.types) attrs[type.name] = "type";
  for (const AttrDef& attr : op.attrs) {
    attrs[attr.name] = std::visit(KindText(), attr.kind) + DefaultText(attr);
  }
  return StrCat(op.name, op.stateful ? "!" : "", "(", join(op.inputs), ") -> (", join(op.outputs),
                ") {", absl::StrJoin(attrs, ", ", absl::PairFormatter(":")), "}");
}

TEST(Schemas, AreTensorFlows) {
  std::ifstream file("kernels/dataset/testdata/tensorflow_2.15_ops.txt");
  ASSERT_TRUE(file.good());
  std::string line;
  int equal = 0;
  while (std::getline(file, line)) {
    const std::string name = line.substr(0, line.find_first_of("!("));
    const OpDef* const op = Registry::Global().FindOp(name);
    EXPECT_NE(op == nullptr, UnsupportedOps().count(name) == 0)
        << name << ": list it, or take it off";
    if (op == nullptr) continue;
    EXPECT_EQ(Text(*op), line);
    equal += Text(*op) == line;
  }
  EXPECT_GT(equal, 100);
}

}  // namespace
}  // namespace penstock
