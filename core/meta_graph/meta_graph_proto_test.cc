// SPDX-License-Identifier: Apache-2.0
#include "core/meta_graph/meta_graph_proto.h"

#include "core/graph/testing/test_ops.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/tensorflow/meta_graph.pb.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A graph with the nodes x and y, one tensor each, and "init", which has none.
constexpr char kGraph[] = R"(
  graph_def {
    node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }
    node { name: 'y' op: 'Placeholder' attr { key: 'dtype' value { type: DT_STRING } } }
    node { name: 'init' op: 'NoOp' } } )";

template <class Message>
Message Parsed(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

StatusOr<MetaGraph> Read(const std::string& rest, Graph* graph) {
  return MetaGraphFromProto(Parsed<tensorflow::MetaGraphDef>(kGraph + rest), graph);
}
MetaGraph Read(const std::string& rest) {
  Graph graph(TestOps());
  auto meta = Read(rest, &graph);
  EXPECT_TRUE(meta.ok()) << meta.status();
  EXPECT_EQ(graph.num_nodes(), 3);
  return meta.ok() ? *std::move(meta) : MetaGraph();
}
// Returns the error's text. Checks that the graph is left unchanged.
std::string ErrorOf(const std::string& rest) {
  Graph graph(TestOps());
  const Status status = Read(rest, &graph).status();
  EXPECT_FALSE(status.ok()) << rest;
  EXPECT_EQ(graph.num_nodes(), 0) << rest;
  return std::string(status.message());
}

TEST(MetaGraphProtoTest, ReadsTagsSaverAndCollections) {
  const MetaGraph meta = Read(R"(
    meta_info_def { tags: 'serve' tags: 'gpu' tensorflow_version: '1.15.5' }
    saver_def { filename_tensor_name: 'y:0' save_tensor_name: 'y' restore_op_name: 'init'
                max_to_keep: 5 version: V2 }
    collection_def { key: 'nodes' value { node_list { value: 'x:0' value: 'gone' } } }
    collection_def { key: 'ints' value { int64_list { value: 7 } } }
    collection_def { key: 'none' value {} })");
  EXPECT_THAT(meta.tags, ElementsAre("serve", "gpu"));
  EXPECT_EQ(meta.tensorflow_version, "1.15.5");
  EXPECT_EQ(meta.saver.filename_tensor, "y:0");
  EXPECT_EQ(meta.saver.restore_op, "init");
  EXPECT_EQ(meta.saver.max_to_keep, 5);
  EXPECT_FALSE(meta.saver.v1_format);
  EXPECT_EQ(meta.collections.at("nodes").size(), 2) << "names in collections are not checked";
  EXPECT_EQ(meta.collections.at("ints").size(), 1);
  EXPECT_EQ(meta.collections.at("none").size(), 0);
}

TEST(MetaGraphProtoTest, ASaverNamesNodesOfTheGraph) {
  EXPECT_EQ(ErrorOf("saver_def { filename_tensor_name: 'p' save_tensor_name: 'y' "
                    "restore_op_name: 'init' }"),
            "saver_def: filename_tensor_name: the graph has no node 'p'");
  EXPECT_EQ(ErrorOf("saver_def { filename_tensor_name: 'y' save_tensor_name: 'x:1' "
                    "restore_op_name: 'init' }"),
            "saver_def: save_tensor_name: node 'x' has 1 outputs, none is 'x:1'");
  EXPECT_THAT(ErrorOf("saver_def { filename_tensor_name: 'y' save_tensor_name: 'y' "
                      "restore_op_name: 'r' }"),
              HasSubstr("restore_op_name: the graph has no node 'r'"));
}

TEST(MetaGraphProtoTest, ReadsSignatures) {
  const MetaGraph meta = Read(R"(
    signature_def { key: 'predict' value {
      method_name: 'm'
      inputs { key: 'in' value { name: 'x:0' dtype: DT_FLOAT
                                 tensor_shape { dim { size: -1 } dim { size: 4 } } } }
      outputs { key: 'out' value { dtype: DT_FLOAT coo_sparse {
        values_tensor_name: 'x:0' indices_tensor_name: 'x' dense_shape_tensor_name: 'y' } } } } }
    signature_def { key: '__saved_model_init_op' value {
      outputs { key: '__saved_model_init_op' value { name: 'init' } } } })");
  const Signature& predict = meta.signatures.at("predict");
  EXPECT_EQ(predict.method, "m");
  EXPECT_EQ(predict.inputs.at("in").name, "x:0");
  EXPECT_EQ(predict.inputs.at("in").dtype, DType::kFloat);
  EXPECT_EQ(predict.inputs.at("in").shape, PartialShape({-1, 4}));
  EXPECT_EQ(predict.outputs.at("out").indices, "x");
  EXPECT_EQ(predict.outputs.at("out").dense_shape, "y");
  EXPECT_EQ(meta.signatures.at("__saved_model_init_op").outputs.begin()->second.name, "init");
}

TEST(MetaGraphProtoTest, ErrorsOfASignatureNameTheField) {
  const auto error = [](const std::string& info) {
    return ErrorOf("signature_def { key: 's' value { inputs { key: 'in' value { " + info +
                   " } } } }");
  };
  EXPECT_EQ(error("name: 'z:0' dtype: DT_FLOAT"),
            "signature_def['s']: inputs['in']: name: the graph has no node 'z'");
  EXPECT_THAT(error("dtype: DT_FLOAT"), HasSubstr("it has neither name nor coo_sparse"));
  EXPECT_THAT(error("name: 'x:0' dtype: 99"), HasSubstr("inputs['in']: dtype: "));
  EXPECT_THAT(error("name: 'x:0' dtype: DT_FLOAT tensor_shape { dim { size: -2 } }"),
              HasSubstr("inputs['in']: tensor_shape: "));
  EXPECT_EQ(ErrorOf("signature_def { key: '__saved_model_init_op' value { outputs { key: 'o' "
                    "value { name: 'no' } } } }"),
            "signature_def['__saved_model_init_op']: outputs['o'].name: the graph has no node "
            "'no'");
}

TEST(MetaGraphProtoTest, AssetsStayInTheFolder) {
  const auto asset = [](const std::string& file) {
    return "asset_file_def { tensor_info { name: 'y:0' } filename: '" + file + "' } ";
  };
  const MetaGraph meta = Read(asset("sub/words.txt") + asset("sub/words.txt"));
  ASSERT_EQ(meta.assets.size(), 1u);
  EXPECT_EQ(meta.assets[0].tensor, "y:0");
  EXPECT_EQ(meta.assets[0].filename, "sub/words.txt");
  for (const char* file : {"", "/etc/passwd", "..", "a/../../b"}) {
    EXPECT_THAT(ErrorOf(asset(file)), HasSubstr("leads out of the folder")) << file;
  }
  EXPECT_THAT(ErrorOf(asset("a") + asset("b")), HasSubstr("'y:0' names two files, 'a' and 'b'"));
}

// Files from before asset_file_def existed.
TEST(MetaGraphProtoTest, AssetsMayBeInACollection) {
  tensorflow::AssetFileDef asset;
  asset.mutable_tensor_info()->set_name("y:0");
  asset.set_filename("words.txt");
  auto def = Parsed<tensorflow::MetaGraphDef>(kGraph);
  auto* const any =
      (*def.mutable_collection_def())["saved_model_assets"].mutable_any_list()->add_value();
  any->set_value(asset.SerializeAsString());
  Graph graph(TestOps());
  const auto meta = MetaGraphFromProto(def, &graph);
  ASSERT_TRUE(meta.ok()) << meta.status();
  EXPECT_EQ(meta->assets.at(0).filename, "words.txt");
  any->set_value("\xff");
  Graph other(TestOps());
  EXPECT_THAT(std::string(MetaGraphFromProto(def, &other).status().message()),
              HasSubstr("holds something that is no AssetFileDef"));
}

TEST(MetaGraphProtoTest, VariablesAreCheckedAgainstTheGraph) {
  Graph graph(TestOps());
  auto def = Parsed<tensorflow::MetaGraphDef>(kGraph);
  auto& list = *(*def.mutable_collection_def())["variables"].mutable_bytes_list();
  list.add_value(Parsed<tensorflow::VariableDef>(
                     "variable_name: 'x:0' initializer_name: 'init' snapshot_name: 'x:0' "
                     "trainable: true save_slice_info_def { full_name: 'whole' }")
                     .SerializeAsString());
  (*def.mutable_collection_def())["ints"].mutable_int64_list()->add_value(1);
  auto meta = MetaGraphFromProto(def, &graph);
  ASSERT_TRUE(meta.ok()) << meta.status();
  const auto variables = meta->Variables("variables", graph);
  ASSERT_TRUE(variables.ok()) << variables.status();
  EXPECT_EQ(variables->at(0).name, "x:0");
  EXPECT_EQ(variables->at(0).whole_name, "whole");
  EXPECT_TRUE(variables->at(0).trainable);
  EXPECT_EQ(meta->Variables("no", graph).status().code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(meta->Variables("ints", graph).status().message()),
              HasSubstr("collection_def['ints'] does not hold variables"));
  EXPECT_EQ(meta->Variables("variables", Graph(TestOps())).status().message(),
            "collection_def['variables'], 'x:0': variable_name: the graph has no node 'x'");
}

TEST(MetaGraphProtoTest, AWrongGraphIsNamed) {
  Graph graph(TestOps());
  const auto def = Parsed<tensorflow::MetaGraphDef>("graph_def { node { name: 'a' op: 'Nope' } }");
  EXPECT_THAT(std::string(MetaGraphFromProto(def, &graph).status().message()),
              HasSubstr("graph_def: "));
}

}  // namespace
}  // namespace penstock
