// SPDX-License-Identifier: Apache-2.0
//
// Tests that the fields of the interchange messages have their published numbers and types. A test
// that encodes and decodes a message would not notice a wrong number or type.

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <string>

#include "proto/tensorflow/checkpoint.pb.h"
#include "proto/tensorflow/config.pb.h"
#include "proto/tensorflow/graph.pb.h"
#include "proto/tensorflow/master.pb.h"
#include "proto/tensorflow/master_service.grpc.pb.h"
#include "proto/tensorflow/tensor.pb.h"

namespace tensorflow {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

std::string Type(const FieldDescriptor& field) {
  if (field.is_map()) {
    const Descriptor* entry = field.message_type();
    return "map<" + Type(*entry->field(0)) + "," + Type(*entry->field(1)) + ">";
  }
  std::string type = field.type_name();
  if (field.message_type() != nullptr) type = field.message_type()->full_name();
  if (field.enum_type() != nullptr) type = field.enum_type()->full_name();
  if (type.starts_with("tensorflow.")) type.erase(0, type.find('.') + 1);
  return (field.is_repeated() ? "rep " : "") + type;
}

// Returns the message's fields as "1 name: type; 2 ...", as the published tables list them.
std::string Fields(const Descriptor* message) {
  std::string line;
  for (int i = 0; i < message->field_count(); ++i) {
    const FieldDescriptor& field = *message->field(i);
    if (!line.empty()) line += "; ";
    line += std::to_string(field.number()) + " " + field.name() + ": " + Type(field);
  }
  return line;
}

TEST(Wire, Graph) {
  EXPECT_EQ(Fields(GraphDef::descriptor()),
            "1 node: rep NodeDef; 2 library: FunctionDefLibrary; 3 version: int32; "
            "4 versions: VersionDef");
  EXPECT_EQ(Fields(NodeDef::descriptor()),
            "1 name: string; 2 op: string; 3 input: rep string; 4 device: string; "
            "5 attr: map<string,AttrValue>; "
            "6 experimental_debug_info: NodeDef.ExperimentalDebugInfo");
  EXPECT_EQ(Fields(AttrValue::descriptor()),
            "1 list: AttrValue.ListValue; 2 s: bytes; 3 i: int64; 4 f: float; 5 b: bool; "
            "6 type: DataType; 7 shape: TensorShapeProto; 8 tensor: TensorProto; "
            "9 placeholder: string; 10 func: NameAttrList");
  EXPECT_EQ(Fields(AttrValue::ListValue::descriptor()),
            "2 s: rep bytes; 3 i: rep int64; 4 f: rep float; 5 b: rep bool; "
            "6 type: rep DataType; 7 shape: rep TensorShapeProto; 8 tensor: rep TensorProto; "
            "9 func: rep NameAttrList");
  EXPECT_EQ(Fields(VersionDef::descriptor()),
            "1 producer: int32; 2 min_consumer: int32; 3 bad_consumers: rep int32");
}

TEST(Wire, Tensor) {
  EXPECT_EQ(Fields(TensorProto::descriptor()),
            "1 dtype: DataType; 2 tensor_shape: TensorShapeProto; 3 version_number: int32; "
            "4 tensor_content: bytes; 5 float_val: rep float; 6 double_val: rep double; "
            "7 int_val: rep int32; 8 string_val: rep bytes; 9 scomplex_val: rep float; "
            "10 int64_val: rep int64; 11 bool_val: rep bool; 12 dcomplex_val: rep double; "
            "13 half_val: rep int32; 14 resource_handle_val: rep ResourceHandleProto; "
            "15 variant_val: rep VariantTensorDataProto; 16 uint32_val: rep uint32; "
            "17 uint64_val: rep uint64");
  EXPECT_EQ(Fields(TensorShapeProto::descriptor()),
            "2 dim: rep TensorShapeProto.Dim; 3 unknown_rank: bool");
  EXPECT_EQ(Fields(TensorShapeProto::Dim::descriptor()), "1 size: int64; 2 name: string");
  EXPECT_EQ(DT_STRING, 7);
  EXPECT_EQ(DT_INT64, 9);
  EXPECT_EQ(DT_HALF, 19);
  EXPECT_EQ(DT_UINT64, 23);
  for (int base = DT_FLOAT; base <= DT_UINT64; ++base) {
    const auto* types = DataType_descriptor();
    EXPECT_EQ(types->FindValueByNumber(base)->name() + "_REF",
              types->FindValueByNumber(base + 100)->name());
  }
}

TEST(Wire, Master) {
  EXPECT_EQ(Fields(RunStepRequest::descriptor()),
            "1 session_handle: string; 2 feed: rep NamedTensorProto; 3 fetch: rep string; "
            "4 target: rep string; 5 options: RunOptions; 6 partial_run_handle: string; "
            "7 store_errors_in_response_body: bool; 8 request_id: int64");
  EXPECT_EQ(Fields(RunStepResponse::descriptor()),
            "1 tensor: rep NamedTensorProto; 2 metadata: RunMetadata; "
            "3 status_code: error.Code; 4 status_error_message: string");
  EXPECT_EQ(Fields(CreateSessionRequest::descriptor()),
            "1 graph_def: GraphDef; 2 config: ConfigProto; 3 target: string");
  EXPECT_EQ(Fields(RewriterConfig::descriptor()),
            "1 layout_optimizer: RewriterConfig.Toggle; 2 disable_model_pruning: bool; "
            "3 constant_folding: RewriterConfig.Toggle; "
            "4 memory_optimization: RewriterConfig.MemOptType; "
            "5 auto_parallel: RewriterConfig.AutoParallelOptions; "
            "6 memory_optimizer_target_node_name_scope: string; "
            "7 arithmetic_optimization: RewriterConfig.Toggle; "
            "8 dependency_optimization: RewriterConfig.Toggle; "
            "9 loop_optimization: RewriterConfig.Toggle; "
            "10 function_optimization: RewriterConfig.Toggle; "
            "11 debug_stripper: RewriterConfig.Toggle; "
            "12 meta_optimizer_iterations: RewriterConfig.NumIterationsType; "
            "13 shape_optimization: RewriterConfig.Toggle; 14 remapping: RewriterConfig.Toggle; "
            "15 scoped_allocator_optimization: RewriterConfig.Toggle; "
            "16 scoped_allocator_opts: RewriterConfig.ScopedAllocatorOptions; "
            "17 min_graph_nodes: int32; 18 pin_to_host_optimization: RewriterConfig.Toggle; "
            "19 disable_meta_optimizer: bool; 20 meta_optimizer_timeout_ms: int64; "
            "21 fail_on_optimizer_errors: bool; "
            "22 implementation_selector: RewriterConfig.Toggle; "
            "23 auto_mixed_precision: RewriterConfig.Toggle; "
            "24 common_subgraph_elimination: RewriterConfig.Toggle; "
            "25 auto_mixed_precision_mkl: RewriterConfig.Toggle; "
            "26 experimental_disable_compressed_tensor_optimization: bool; "
            "27 experimental_disable_folding_quantization_emulation: bool; "
            "28 use_plugin_optimizers: RewriterConfig.Toggle; "
            "29 auto_mixed_precision_cpu: RewriterConfig.Toggle; "
            "30 experimental_conditional_code_motion: RewriterConfig.Toggle; "
            "31 auto_mixed_precision_onednn_bfloat16: RewriterConfig.Toggle; "
            "32 disable_tfg_optimizer: bool; 50 cpu_layout_conversion: RewriterConfig.CpuLayout; "
            "100 optimizers: rep string; "
            "200 custom_optimizers: rep RewriterConfig.CustomGraphOptimizer");
  EXPECT_EQ(Fields(RewriterConfig::CustomGraphOptimizer::descriptor()),
            "1 name: string; 2 parameter_map: map<string,AttrValue>");
  EXPECT_EQ(RewriterConfig::OFF, 2);
  EXPECT_EQ(GraphOptions::kRewriteOptionsFieldNumber, 10);
  EXPECT_EQ(Fields(ExtendSessionResponse::descriptor()), "4 new_graph_version: int64");
  EXPECT_EQ(Fields(NamedTensorProto::descriptor()), "1 name: string; 2 tensor: TensorProto");
  EXPECT_EQ(error::UNAUTHENTICATED, 16);
  EXPECT_EQ(error::DATA_LOSS, 15);
  EXPECT_STREQ(MasterService::service_full_name(), "tensorflow.MasterService");
}

TEST(Wire, Checkpoint) {
  EXPECT_EQ(Fields(BundleEntryProto::descriptor()),
            "1 dtype: DataType; 2 shape: TensorShapeProto; 3 shard_id: int32; 4 offset: int64; "
            "5 size: int64; 6 crc32c: fixed32; 7 slices: rep TensorSliceProto");
  EXPECT_EQ(Fields(BundleHeaderProto::descriptor()),
            "1 num_shards: int32; 2 endianness: BundleHeaderProto.Endianness; "
            "3 version: VersionDef");
  EXPECT_EQ(Fields(TensorSliceProto::Extent::descriptor()), "1 start: int64; 2 length: int64");
}

// Returns an encoded field: tag, length, content. REQUIRES: the content has less than 128 bytes.
std::string Field(int number, const std::string& content) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(content.size())} +
         content;
}

TEST(Wire, ParsesBytesOfAGraph) {
  const std::string one_and_a_half("\x00\x00\xc0\x3f", 4);
  const std::string tensor = "\x08\x01" +                      // dtype = DT_FLOAT
                             Field(2, Field(2, "\x08\x02")) +  // tensor_shape.dim.size = 2
                             Field(5, one_and_a_half);         // float_val, packed
  const std::string attr = Field(1, "value") + Field(2, Field(8, tensor));
  const std::string node =
      Field(1, "c") + Field(2, "Const") + Field(3, "^d") + Field(4, "/cpu:0") + Field(5, attr);
  const std::string graph = Field(1, node) + Field(4, "\x08\xa8\x06") +  // producer = 808
                            "\xf2\x01\x02hi";  // field 30, which no reader knows

  GraphDef def;
  ASSERT_TRUE(def.ParseFromString(graph));
  ASSERT_EQ(def.node_size(), 1);
  EXPECT_EQ(def.node(0).name(), "c");
  EXPECT_EQ(def.node(0).op(), "Const");
  EXPECT_EQ(def.node(0).input(0), "^d");
  EXPECT_EQ(def.node(0).device(), "/cpu:0");
  const TensorProto& parsed = def.node(0).attr().at("value").tensor();
  EXPECT_EQ(parsed.dtype(), DT_FLOAT);
  EXPECT_EQ(parsed.tensor_shape().dim(0).size(), 2);
  EXPECT_EQ(parsed.float_val(0), 1.5f);
  EXPECT_EQ(def.versions().producer(), 808);
  EXPECT_EQ(def.SerializeAsString(), graph) << "unknown fields survive a round trip";
}

TEST(Wire, KeepsUnknownEnumValues) {
  TensorProto tensor;
  ASSERT_TRUE(tensor.ParseFromString("\x08\x63"));  // a dtype of some later version
  EXPECT_EQ(tensor.dtype(), 99);
}

}  // namespace
}  // namespace tensorflow
