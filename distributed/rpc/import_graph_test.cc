// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/import_graph.h"

#include "core/op/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

OP(ImportedNothing) { return {}; }

constexpr char kTask[] = "/job:ps/replica:0/task:1";

tensorflow::GraphDef GraphOf(const std::string& op) {
  tensorflow::GraphDef def;
  tensorflow::NodeDef& node = *def.add_node();
  node.set_name("n");
  node.set_op(op);
  return def;
}

TEST(ImportForTask, Imports) {
  Graph graph(Registry::Global());
  EXPECT_TRUE(ImportForTask(GraphOf("ImportedNothing"), kTask, &graph).ok());
  EXPECT_NE(graph.FindNode("n"), nullptr);
}

TEST(ImportForTask, NamesTheTaskThatLacksAnOp) {
  Graph graph(Registry::Global());
  const Status status = ImportForTask(GraphOf("FromALibrary"), kTask, &graph);
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("there is no op 'FromALibrary'"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("this is /job:ps/replica:0/task:1: if"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--load=LIBRARY"));
}

TEST(ImportForTask, LooksIntoFunctions) {
  tensorflow::GraphDef def = GraphOf("F");
  tensorflow::FunctionDef& function = *def.mutable_library()->add_function();
  function.mutable_signature()->set_name("F");
  *function.add_node_def() = GraphOf("FromALibrary").node(0);
  Graph graph(Registry::Global());
  EXPECT_THAT(std::string(ImportForTask(def, kTask, &graph).message()), HasSubstr("--load="));
}

TEST(ImportForTask, LeavesOtherErrorsAlone) {
  tensorflow::GraphDef def = GraphOf("ImportedNothing");
  def.mutable_node(0)->add_input("missing");
  Graph graph(Registry::Global());
  const Status status = ImportForTask(def, kTask, &graph);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("--load")));
}

}  // namespace
}  // namespace penstock
