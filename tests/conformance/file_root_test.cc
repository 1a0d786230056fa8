// SPDX-License-Identifier: Apache-2.0
//
// Tests that every op that uses files obeys --file_root: on a server with this flag, an op with a
// path outside the directory fails with PERMISSION_DENIED, which names the node, the path and the
// flag, and changes nothing.
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "core/base/check.h"
#include "core/graph/builder.h"
#include "core/op/registry.h"
#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using Strings = std::vector<std::string>;
using Types = std::vector<DType>;

Output Text(GraphBuilder& b, const std::string& text) { return Constant(b, Tensor::Scalar(text)); }
Output Texts(GraphBuilder& b, const Strings& texts) { return Constant(b, Tensor::Vector(texts)); }
Output Number(GraphBuilder& b, int64_t n) { return Constant(b, Tensor::Scalar(n)); }

constexpr char kNode[] = "asks";

// Adds nodes that make an op use the file at `path`; the op's node is called kNode. Returns the
// targets to run, one after the other.
using Use = std::function<Strings(GraphBuilder& b, const std::string& path)>;

Use One(const std::string& op, std::function<std::vector<NodeInput>(GraphBuilder&, Output)> inputs,
        Attrs attrs = {}) {
  return [=](GraphBuilder& b, const std::string& path) -> Strings {
    b.AddNode(op, inputs(b, Text(b, path)), attrs, kNode);
    return {kNode};
  };
}

Use Reader(const std::string& op, Attrs attrs = {}) {
  return [=](GraphBuilder& b, const std::string& path) -> Strings {
    const bool resource = op.back() == '2';
    const std::string version = resource ? "V2" : "";
    const Output reader = CallIn(b, op, {}, attrs, "reader");
    const Output queue =
        CallIn(b, "FIFOQueue" + version, {}, {{"component_types", Types{DType::kString}}}, "queue");
    b.AddNode("QueueEnqueue" + version, {queue, Outputs{Text(b, path)}}, {}, "enqueue");
    b.AddNode("ReaderRead" + version, {reader, queue}, {}, kNode);
    return {"enqueue", kNode};
  };
}

Use Dataset(const std::string& op,
            std::function<std::vector<NodeInput>(GraphBuilder&, Output)> inputs) {
  return [=](GraphBuilder& b, const std::string& path) -> Strings {
    const Attrs types = {{"output_types", Types{DType::kString}},
                         {"output_shapes", std::vector<PartialShape>{PartialShape()}}};
    // The ops on lines and records have a fixed output, and ignore these attributes.
    const Output dataset = CallIn(b, op, inputs(b, Texts(b, {path})), types, "dataset");
    Attrs named = types;
    named["shared_name"] = "";
    named["container"] = "";
    const Output iterator = CallIn(b, "IteratorV2", {}, named, "iterator");
    b.AddNode("MakeIterator", {dataset, iterator}, {}, "make");
    b.AddNode("IteratorGetNext", {iterator}, types, kNode);
    return {"make", kNode};
  };
}

Use Table(const std::string& op, const std::string& table) {
  return [=](GraphBuilder& b, const std::string& path) -> Strings {
    const Output handle = CallIn(
        b, table, {}, {{"key_dtype", DType::kString}, {"value_dtype", DType::kInt64}}, "table");
    b.AddNode(op, {handle, Text(b, path)}, {{"key_index", -2}, {"value_index", -1}}, kNode);
    return {kNode};
  };
}

std::map<std::string, Use> UsesOfFiles() {
  const auto alone = [](GraphBuilder&, Output path) -> std::vector<NodeInput> { return {path}; };
  const auto value = [](GraphBuilder& b) { return Constant(b, Tensor::Scalar(1.0f)); };
  const auto compressed = [](GraphBuilder& b, Output paths) -> std::vector<NodeInput> {
    return {paths, Text(b, ""), Number(b, 0)};
  };
  const auto fixed = [](GraphBuilder& b, Output paths) -> std::vector<NodeInput> {
    return {paths, Number(b, 0), Number(b, 1), Number(b, 0), Number(b, 0)};
  };
  // With one column of strings; CSVDatasetV2 has one more input.
  const auto csv = [](bool excludes) {
    return [excludes](GraphBuilder& b, Output paths) -> std::vector<NodeInput> {
      const Output no_columns = Constant(b, Tensor::Vector<int64_t>({}));
      const auto flag = [&](bool set) { return Constant(b, Tensor::Scalar(set)); };
      std::vector<NodeInput> inputs = {paths,       Text(b, ""),  Number(b, 0),
                                       flag(false), Text(b, ","), flag(true),
                                       Text(b, ""), no_columns,   Outputs{Text(b, "")}};
      if (excludes) inputs.push_back(no_columns);
      return inputs;
    };
  };
  // A cache of one string; CacheDatasetV2 has one more input.
  const auto cached = [](bool memory) {
    return [memory](GraphBuilder& b, Output paths) -> std::vector<NodeInput> {
      const Attrs types = {{"Toutput_types", Types{DType::kString}},
                           {"output_shapes", std::vector<PartialShape>{PartialShape()}}};
      const Output input = CallIn(b, "TensorDataset", {Outputs{Text(b, "x")}}, types, "input");
      const Output path =
          CallIn(b, "Reshape", {paths, Constant(b, Tensor::Vector<int32_t>({}))}, {}, "path");
      std::vector<NodeInput> inputs = {input, path};
      if (memory) inputs.push_back(CallIn(b, "DummyMemoryCache", {}, {}, "memory"));
      return inputs;
    };
  };
  return {
      {"ReadFile", One("ReadFile", alone)},
      {"WriteFile", One("WriteFile",
                        [](GraphBuilder& b, Output path) -> std::vector<NodeInput> {
                          return {path, Text(b, "overwritten")};
                        })},
      {"MatchingFiles", One("MatchingFiles", alone)},
      {"SaveV2", One("SaveV2",
                     [=](GraphBuilder& b, Output path) -> std::vector<NodeInput> {
                       return {path, Texts(b, {"w"}), Texts(b, {""}), Outputs{value(b)}};
                     })},
      {"RestoreV2", One("RestoreV2",
                        [](GraphBuilder& b, Output path) -> std::vector<NodeInput> {
                          return {path, Texts(b, {"w"}), Texts(b, {""})};
                        },
                        {{"dtypes", Types{DType::kFloat}}})},
      {"MergeV2Checkpoints",
       [](GraphBuilder& b, const std::string& path) -> Strings {
         b.AddNode("MergeV2Checkpoints", {Texts(b, {path}), Text(b, "inside")}, {}, kNode);
         return {kNode};
       }},
      {"Save", One("Save",
                   [=](GraphBuilder& b, Output path) -> std::vector<NodeInput> {
                     return {path, Texts(b, {"w"}), Outputs{value(b)}};
                   })},
      {"SaveSlices", One("SaveSlices",
                         [=](GraphBuilder& b, Output path) -> std::vector<NodeInput> {
                           return {path, Texts(b, {"w"}), Texts(b, {""}), Outputs{value(b)}};
                         })},
      {"Restore", One("Restore",
                      [](GraphBuilder& b, Output path) -> std::vector<NodeInput> {
                        return {path, Text(b, "w")};
                      },
                      {{"dt", DType::kFloat}})},
      {"RestoreSlice", One("RestoreSlice",
                           [](GraphBuilder& b, Output path) -> std::vector<NodeInput> {
                             return {path, Text(b, "w"), Text(b, "")};
                           },
                           {{"dt", DType::kFloat}})},
      {"LoadAndRemapMatrix",
       One("LoadAndRemapMatrix",
           [](GraphBuilder& b, Output path) -> std::vector<NodeInput> {
             const Output rows = Constant(b, Tensor::Vector<int64_t>({0}));
             return {path, Text(b, "w"), rows, rows, Constant(b, Tensor::Vector<float>({}))};
           },
           {{"num_rows", 1}, {"num_cols", 1}})},
      {"GenerateVocabRemapping", One("GenerateVocabRemapping",
                                     [](GraphBuilder&, Output path) -> std::vector<NodeInput> {
                                       return {path, path};
                                     },
                                     {{"new_vocab_offset", 0}, {"num_new_vocab", 1}})},
      {"CreateSummaryFileWriter",
       [](GraphBuilder& b, const std::string& path) -> Strings {
         const Output writer = CallIn(b, "SummaryWriter", {}, {}, "writer");
         b.AddNode("CreateSummaryFileWriter",
                   {writer, Text(b, path), Constant(b, Tensor::Scalar<int32_t>(1)),
                    Constant(b, Tensor::Scalar<int32_t>(1)), Text(b, "")},
                   {}, kNode);
         return {kNode};
       }},
      {"ImmutableConst",
       [](GraphBuilder& b, const std::string& path) -> Strings {
         b.AddNode(
             "ImmutableConst", {},
             {{"dtype", DType::kUint8}, {"shape", PartialShape({1})}, {"memory_region_name", path}},
             kNode);
         return {kNode};
       }},
      {"RecordInput",
       [](GraphBuilder& b, const std::string& path) -> Strings {
         b.AddNode("RecordInput", {}, {{"file_pattern", path}}, kNode);
         return {kNode};
       }},
      {"Skipgram",
       [](GraphBuilder& b, const std::string& path) -> Strings {
         b.AddNode("Skipgram", {}, {{"filename", path}, {"batch_size", 1}}, kNode);
         return {kNode};
       }},
      {"FixedUnigramCandidateSampler",
       [](GraphBuilder& b, const std::string& path) -> Strings {
         const Output classes = Constant(b, Tensor::Of<int64_t>({1, 1}, {0}));
         b.AddNode("FixedUnigramCandidateSampler", {classes},
                   {{"num_true", 1},
                    {"num_sampled", 1},
                    {"unique", true},
                    {"range_max", 1},
                    {"vocab_file", path}},
                   kNode);
         return {kNode};
       }},
      {"InitializeTableFromTextFile", Table("InitializeTableFromTextFile", "HashTable")},
      {"InitializeTableFromTextFileV2", Table("InitializeTableFromTextFileV2", "HashTableV2")},
      {"TextLineDataset", Dataset("TextLineDataset", compressed)},
      {"TFRecordDataset", Dataset("TFRecordDataset", compressed)},
      {"TFRecordDatasetV2",
       Dataset(
           "TFRecordDatasetV2",
           [](GraphBuilder& b, Output paths) -> std::vector<NodeInput> {
             return {paths, Text(b, ""), Number(b, 0), Constant(b, Tensor::Vector<int64_t>({0}))};
           })},
      {"FixedLengthRecordDataset", Dataset("FixedLengthRecordDataset", fixed)},
      {"FixedLengthRecordDatasetV2",
       Dataset("FixedLengthRecordDatasetV2",
               [](GraphBuilder& b, Output paths) -> std::vector<NodeInput> {
                 return {paths,        Number(b, 0), Number(b, 1),
                         Number(b, 0), Number(b, 0), Text(b, "")};
               })},
      {"CacheDataset", Dataset("CacheDataset", cached(false))},
      {"CacheDatasetV2", Dataset("CacheDatasetV2", cached(true))},
      {"CSVDataset", Dataset("CSVDataset", csv(false))},
      {"CSVDatasetV2", Dataset("CSVDatasetV2", csv(true))},
      {"ExperimentalCSVDataset", Dataset("ExperimentalCSVDataset", csv(false))},
      // These ops take the file name from a queue.
      {"WholeFileReader", Reader("WholeFileReader")},
      {"WholeFileReaderV2", Reader("WholeFileReaderV2")},
      {"TextLineReader", Reader("TextLineReader")},
      {"TextLineReaderV2", Reader("TextLineReaderV2")},
      {"TFRecordReader", Reader("TFRecordReader")},
      {"TFRecordReaderV2", Reader("TFRecordReaderV2")},
      {"FixedLengthRecordReader", Reader("FixedLengthRecordReader", {{"record_bytes", 1}})},
      {"FixedLengthRecordReaderV2", Reader("FixedLengthRecordReaderV2", {{"record_bytes", 1}})},
  };
}

class FileRoot : public testing::TestWithParam<std::string> {
 protected:
  FileRoot() {
    top_ = StrCat(testing::TempDir(), "file_rootXXXXXX");
    CHECK(mkdtemp(top_.data()) != nullptr, "no folder for the test");
    Env& env = Env::Real();
    CHECK_OK(env.CreateDirectories(top_ + "/root"));
    CHECK_OK(env.WriteFileAtomically(top_ + "/secret", "secret"));
    CHECK(symlink("../secret", (top_ + "/root/link").c_str()) == 0);
    ServerOptions options = TestCluster::Direct();
    options.security = SecuritySettings{.file_root = top_ + "/root"};
    cluster_.emplace(std::map<std::string, int>{{"worker", 1}}, options);
  }

  // Runs a graph that uses `path` on the server, and returns the status.
  Status Ask(const Use& use, const std::string& path) {
    GraphBuilder b;
    const Strings targets = use(b, path);
    RETURN_IF_ERROR(b.status());
    const auto session = cluster_->NewSession();
    RETURN_IF_ERROR(session->Extend(b.graph()));
    for (const std::string& target : targets) {
      std::vector<Tensor> outputs;
      RETURN_IF_ERROR(session->Run({}, {}, {}, {target}, &outputs, nullptr));
    }
    return OkStatus();
  }

  std::string top_;
  std::optional<TestCluster> cluster_;
};

TEST_P(FileRoot, IsNotLeft) {
  const Use use = UsesOfFiles().at(GetParam());
  for (const std::string& path : {top_ + "/secret", std::string("../secret"),
                                  top_ + "/root/../secret", std::string("/etc/passwd")}) {
    const Status status = Ask(use, path);
    EXPECT_EQ(status.code(), StatusCode::kPermissionDenied) << path << ": " << status;
    const std::string said(status.message());
    EXPECT_THAT(said, HasSubstr("is outside of --file_root"));
    // the error may name the directory instead
    EXPECT_THAT(said, HasSubstr(path.substr(0, path.rfind('/'))));
    EXPECT_THAT(said, HasSubstr(StrCat("{{node ", kNode, "}}")));
  }
  // These ops do not follow a link in the last component of the path: a pattern matches the link's
  // name; a checkpoint or a cache replaces the link, or appends to its name.
  static const auto& by_name = *new std::set<std::string>{
      "CacheDataset", "CacheDatasetV2", "MatchingFiles", "Save", "SaveSlices", "SaveV2"};
  if (!by_name.contains(GetParam())) {
    EXPECT_FALSE(Ask(use, "link").ok());
  }
  EXPECT_EQ(*Env::Real().ReadFile(top_ + "/secret"), "secret");
  EXPECT_EQ(Env::Real().ListDirectory(top_)->size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(Ops, FileRoot, testing::ValuesIn([] {
                           Strings names;
                           for (const auto& [name, use] : UsesOfFiles()) names.push_back(name);
                           return names;
                         }()),
                         [](const auto& info) { return info.param; });

bool NamesFiles(const std::string& argument) {
  static const auto& names = *new std::set<std::string>{"file",
                                                        "filename",
                                                        "filenames",
                                                        "file_name",
                                                        "file_pattern",
                                                        "path",
                                                        "paths",
                                                        "prefix",
                                                        "checkpoint_prefixes",
                                                        "vocab_file",
                                                        "new_vocab_file",
                                                        "ckpt_path",
                                                        "destination_prefix",
                                                        "memory_region_name",
                                                        "directory",
                                                        "logdir",
                                                        "log_dir"};
  return names.contains(argument);
}

// A new op with an argument named like a file must get a row in UsesOfFiles, or be listed here.
TEST(FileRootOps, AreAllInTheTable) {
  const std::set<std::string> without_files = {
      "ShardedFilename",  // these ops only build strings
      "ShardedFilespec",  //
  };
  const std::map<std::string, Use> uses = UsesOfFiles();
  for (const OpDef* op : Registry::Global().ops()) {
    bool names_files = op->name.find("Reader") != std::string::npos && op->inputs.empty() &&
                       op->name.find("Identity") == std::string::npos;
    for (const auto& input : op->inputs) names_files |= NamesFiles(input.name);
    for (const auto& attr : op->attrs) names_files |= NamesFiles(attr.name);
    if (!names_files || without_files.contains(op->name)) continue;
    EXPECT_TRUE(uses.contains(op->name)) << op->name;
  }
  for (const auto& [name, use] : uses) EXPECT_NE(Registry::Global().FindOp(name), nullptr) << name;
}

}  // namespace
}  // namespace penstock
