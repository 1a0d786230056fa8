// SPDX-License-Identifier: Apache-2.0
//
// Tests with files written by TensorFlow 2.21. The model is y = relu(x * w + b); w has two parts, b
// is a resource variable with the value {1, 2}. The files are checkpoints in both formats, and a
// SavedModel that also has a table of words and a signature with a sparse tensor.
#include "client/saved_model.h"

#include <functional>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/tensorflow/meta_graph.pb.h"

namespace penstock::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr char kFolder[] = "client/testdata/";
constexpr char kSavedModel[] = "client/testdata/saved_model";

std::string NewFolder() {
  const std::string path = StrCat(testing::TempDir(), "/", Env::Real().RandomU64());
  CHECK_OK(Env::Real().CreateDirectories(path));
  return path;
}

// The input rows {1, 2, 3} and {-9, 0, 0}, and a check of the model's outputs for them.
Tensor X() { return Tensor::Of<float>({2, 3}, {1, 2, 3, -9, 0, 0}); }
void ExpectY(const Tensor& y) {
  ASSERT_EQ(y.shape(), Shape({2, 2}));
  EXPECT_THAT(y.flat<float>(), ElementsAre(5, 7.5, 1, 0));
}

class MetaGraphTest : public testing::TestWithParam<std::string> {};

TEST_P(MetaGraphTest, IsReadAndItsSaverRestoresAndSaves) {
  const std::string name = GetParam();
  const bool v1 = name == "linear_v1.meta";
  Program program;
  const auto meta = ReadMetaGraphFile(Env::Real(), kFolder + name, &program.mutable_graph());
  ASSERT_EQ(meta.status(), OkStatus());
  EXPECT_EQ(meta->tensorflow_version, "2.21.0");
  EXPECT_EQ(meta->saver.v1_format, v1);
  EXPECT_EQ(meta->saver.sharded, !v1);
  EXPECT_EQ(meta->saver.max_to_keep, 5);
  EXPECT_THAT(std::get<std::vector<int64_t>>(meta->collections.at("numbers").values),
              ElementsAre(7, 8));
  EXPECT_THAT(std::get<std::vector<float>>(meta->collections.at("rates").values), ElementsAre(0.5));
  EXPECT_THAT(std::get<Collection::Nodes>(meta->collections.at("outputs").values).names,
              ElementsAre("y:0"));
  const auto variables = meta->Variables("variables", program.graph());
  ASSERT_EQ(variables.status(), OkStatus());
  ASSERT_EQ(variables->size(), 3);
  EXPECT_EQ((*variables)[0].name, "layer/w/part_0:0");
  EXPECT_EQ((*variables)[0].whole_name, "layer/w");
  EXPECT_EQ((*variables)[0].initializer, "layer/w/part_0/Assign");
  EXPECT_FALSE((*variables)[0].is_resource);
  EXPECT_TRUE((*variables)[2].is_resource);
  EXPECT_EQ(meta->Variables("numbers", program.graph()).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(meta->Variables("none", program.graph()).status().code(), StatusCode::kNotFound);

  const auto session = Session::New(program);
  ASSERT_EQ(session.status(), OkStatus());
  const std::string checkpoint = StrCat(kFolder, v1 ? "linear_v1" : "linear");
  ASSERT_EQ(RestoreVariables(**session, meta->saver, checkpoint), OkStatus());
  ExpectY(*(*session)->Fetch("y:0", {{"x:0", X()}}));

  const auto saved = SaveVariables(**session, meta->saver, NewFolder() + "/again");
  ASSERT_EQ(saved.status(), OkStatus());
  const auto other = Session::New(program);
  ASSERT_EQ(RestoreVariables(**other, meta->saver, *saved), OkStatus());
  ExpectY(*(*other)->Fetch("y:0", {{"x:0", X()}}));
}

INSTANTIATE_TEST_SUITE_P(
    Files, MetaGraphTest, testing::Values("linear.meta", "linear.pbtxt", "linear_v1.meta"),
    [](const auto& info) {
      return std::string(info.index == 0 ? "Binary" : info.index == 1 ? "Text" : "V1");
    });

TEST(SavedModel, IsFoundByItsTags) {
  const auto tags = ListSavedModel(Env::Real(), kSavedModel);
  ASSERT_EQ(tags.status(), OkStatus());
  EXPECT_THAT(*tags, ElementsAre(ElementsAre("serve"), ElementsAre("train", "gpu")));
  EXPECT_EQ(SavedModel::Load(kSavedModel, {"gpu", "train"}).status(), OkStatus());
  const Status status = SavedModel::Load(kSavedModel, {"train"}).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("those it has: 'serve', 'train,gpu'"));
  EXPECT_THAT(std::string(SavedModel::Load(kFolder, {"serve"}).status().message()),
              HasSubstr("no SavedModel"));
}

TEST(SavedModel, SignaturesAreCalled) {
  const auto loaded = SavedModel::Load(kSavedModel, {"serve"});
  ASSERT_EQ(loaded.status(), OkStatus());
  SavedModel& model = **loaded;
  const Signature& signature = model.meta().signatures.at("serving_default");
  EXPECT_EQ(signature.method, "tensorflow/serving/predict");
  EXPECT_EQ(signature.inputs.at("x").name, "x:0");
  EXPECT_EQ(signature.inputs.at("x").shape, PartialShape({-1, 3}));
  const auto outputs = model.Call("serving_default", {{"x", X()}});
  ASSERT_EQ(outputs.status(), OkStatus());
  ExpectY(outputs->at("y"));

  // The table was filled from the asset file in the model's current folder.
  const auto numbers = model.Call("lookup", {{"word", Tensor::Vector<std::string>({"blue", "?"})}});
  ASSERT_EQ(numbers.status(), OkStatus());
  EXPECT_THAT(numbers->at("number").flat<int64_t>(), ElementsAre(2, -1));

  const TensorInfo& sparse = model.meta().signatures.at("sum").inputs.at("sparse");
  const auto total =
      model.session().Run({{sparse.indices, Tensor::Of<int64_t>({2, 1}, {0, 3})},
                           {sparse.name, Tensor::Vector<float>({1.5, 2})},
                           {sparse.dense_shape, Tensor::Vector<int64_t>({4})}},
                          {model.meta().signatures.at("sum").outputs.at("total").name});
  ASSERT_EQ(total.status(), OkStatus());
  EXPECT_EQ((*total)[0].scalar<float>(), 3.5);
}

TEST(SavedModel, WrongCallsNameTheInput) {
  const auto model = SavedModel::Load(kSavedModel, {"serve"});
  ASSERT_EQ(model.status(), OkStatus());
  const struct {
    std::string signature;
    std::map<std::string, Tensor> inputs;
    std::string message;
  } cases[] = {
      {"none", {}, "has no signature 'none'"},
      {"serving_default", {}, "input 'x' is missing"},
      {"serving_default", {{"x", X()}, {"z", X()}}, "has no input 'z'"},
      {"serving_default",
       {{"x", Tensor::Vector<float>({1})}},
       "'x' must be float[?,3], is float[1]"},
      {"serving_default", {{"x", Tensor::Of<int32_t>({1, 3}, {1, 2, 3})}}, "is int32[1,3]"},
      {"sum", {{"sparse", X()}}, "is sparse"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(std::string((*model)->Call(c.signature, c.inputs).status().message()),
                HasSubstr(c.message));
  }
}

// Applies `change` to the SavedModel of the test data and reads the result. If that fails, the
// graph must stay empty.
Status LoadWith(const std::function<void(tensorflow::SavedModel&)>& change) {
  tensorflow::SavedModel proto;
  CHECK(proto.ParseFromString(*Env::Real().ReadFile(StrCat(kSavedModel, "/saved_model.pb"))), "");
  change(proto);
  const std::string folder = NewFolder();
  CHECK_OK(Env::Real().WriteFileAtomically(folder + "/saved_model.pb", proto.SerializeAsString()));
  Graph graph(Registry::Global());
  const Status status = ReadSavedModel(Env::Real(), folder, {"serve"}, &graph).status();
  if (!status.ok()) {
    EXPECT_EQ(graph.num_nodes(), 0);
  }
  return status;
}

TEST(HostileSavedModel, ErrorsNameTheField) {
  using Model = tensorflow::SavedModel;
  const auto meta = [](Model& m) { return m.mutable_meta_graphs(0); };
  const auto signature = [&](Model& m) -> tensorflow::SignatureDef& {
    return (*meta(m)->mutable_signature_def())["serving_default"];
  };
  ASSERT_EQ(LoadWith([](Model&) {}), OkStatus());
  const std::vector<std::pair<std::function<void(Model&)>, std::string>> cases = {
      {[](Model& m) { m.set_saved_model_schema_version(2); }, "saved_model_schema_version is 2"},
      {[](Model& m) { m.clear_meta_graphs(); }, "no graph with tags"},
      {[&](Model& m) { meta(m)->mutable_graph_def()->mutable_node(0)->set_op("Junk"); },
       "meta_graphs[0]: graph_def: "},
      {[&](Model& m) { meta(m)->mutable_saver_def()->set_filename_tensor_name("nothing:0"); },
       "saver_def: filename_tensor_name: the graph has no node 'nothing'"},
      {[&](Model& m) { meta(m)->mutable_saver_def()->set_save_tensor_name("y:1"); },
       "save_tensor_name: node 'y' has 1 outputs, none is 'y:1'"},
      {[&](Model& m) { meta(m)->mutable_saver_def()->set_restore_op_name("^y"); },
       "restore_op_name: "},
      {[&](Model& m) { (*signature(m).mutable_inputs())["x"].set_name("x:x:x"); },
       "signature_def['serving_default']: inputs['x']: name: "},
      {[&](Model& m) { (*signature(m).mutable_outputs())["y"].set_name("^y"); },
       "outputs['y']: name: "},
      {[&](Model& m) { (*signature(m).mutable_outputs())["y"].clear_name(); },
       "outputs['y']: it has neither name nor coo_sparse"},
      {[&](Model& m) {
         (*signature(m).mutable_inputs())["x"].set_dtype(static_cast<tensorflow::DataType>(99));
       },
       "inputs['x']: dtype: "},
      {[&](Model& m) {
         (*signature(m).mutable_inputs())["x"].mutable_tensor_shape()->mutable_dim(0)->set_size(-7);
       },
       "inputs['x']: tensor_shape: "},
      {[&](Model& m) {
         (*(*meta(m)->mutable_signature_def())["sum"].mutable_inputs())["sparse"]
             .mutable_coo_sparse()
             ->clear_indices_tensor_name();
       },
       "inputs['sparse']: indices_tensor_name: "},
      {[&](Model& m) {
         auto* asset = meta(m)->add_asset_file_def();
         asset->mutable_tensor_info()->set_name("vocabulary:0");
         asset->set_filename("../../etc/passwd");
       },
       "asset_file_def.filename '../../etc/passwd' leads out of the folder"},
  };
  for (const auto& [change, message] : cases) {
    EXPECT_THAT(std::string(LoadWith(change).message()), HasSubstr(message));
  }
}

TEST(HostileSavedModel, DamagedFilesEndInErrorsOrGraphs) {
  const std::string contents = *Env::Real().ReadFile(StrCat(kFolder, "linear_v1.meta"));
  const std::string path = NewFolder() + "/damaged.meta";
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = contents;
    for (int k = 0; k < 1 + i % 3; ++k) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    if (i % 10 == 0) damaged.resize(random() % damaged.size());
    ASSERT_EQ(Env::Real().WriteFileAtomically(path, damaged), OkStatus());
    Graph graph(Registry::Global());
    const auto meta = ReadMetaGraphFile(Env::Real(), path, &graph);
    if (!meta.ok()) {
      EXPECT_EQ(graph.num_nodes(), 0) << meta.status();
    }
    if (meta.ok()) meta->Variables("variables", graph).status().IgnoreError();
  }
}

}  // namespace
}  // namespace penstock::client
