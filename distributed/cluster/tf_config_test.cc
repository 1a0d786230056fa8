// SPDX-License-Identifier: Apache-2.0
//
// Tests TaskConfigFromJson with values of TF_CONFIG that launchers write.
#include "distributed/cluster/cluster_spec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(TfConfigTest, JsonInBothForms) {
  const auto dense = TaskConfigFromJson(
      R"({"cluster": {"chief": ["a:1"], "ps": ["b:1"], "worker": ["c:1", "d:1"]},
          "task": {"type": "Worker", "index": "1"}, "environment": "cloud"})");
  ASSERT_TRUE(dense.ok()) << dense.status();
  EXPECT_EQ(dense->address(), "d:1");
  EXPECT_FALSE(dense->is_chief());

  const auto sparse = TaskConfigFromJson(
      R"({"cluster": {"ps": ["b:1"], "worker": {"7": "c:1"}},
          "task": {"type": "worker", "index": 7}})");
  ASSERT_TRUE(sparse.ok()) << sparse.status();
  EXPECT_EQ(sparse->cluster.ToString(), "ps: 0=b:1; worker: 7=c:1");

  const auto evaluator = TaskConfigFromJson(
      R"({"cluster": {"worker": ["c:1"]}, "task": {"type": "evaluator", "index": 0}})");
  ASSERT_TRUE(evaluator.ok()) << evaluator.status();
  EXPECT_EQ(evaluator->address(), "");
}

TEST(TfConfigTest, ChiefIsTheChiefJobElseWorkerZero) {
  const auto chief = [](const char* json) { return TaskConfigFromJson(json)->is_chief(); };
  EXPECT_TRUE(chief(R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker"}})"));
  EXPECT_FALSE(
      chief(R"({"cluster": {"chief": ["b:1"], "worker": ["a:1"]}, "task": {"type": "worker"}})"));
  EXPECT_TRUE(
      chief(R"({"cluster": {"chief": ["b:1"], "worker": ["a:1"]}, "task": {"type": "chief"}})"));
  EXPECT_TRUE(
      chief(R"({"cluster": {"master": ["b:1"], "worker": ["a:1"]}, "task": {"type": "master"}})"));
  EXPECT_FALSE(chief(R"({"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": 0}})"));
}

TEST(TfConfigTest, MistakesInJsonNameTheField) {
  const struct {
    const char* json;
    const char* error;
  } cases[] = {
      {"{", "TF_CONFIG: not valid JSON"},
      {"", "TF_CONFIG: not valid JSON"},
      {"\xff\xfe", "TF_CONFIG: not valid JSON"},
      {"[]", "TF_CONFIG: not a JSON object"},
      {"{}", "TF_CONFIG: the cluster has no jobs"},
      {R"({"cluster": 3})", "TF_CONFIG: cluster is not an object"},
      {R"({"cluster": {"ps": "a:1"}})", "TF_CONFIG: cluster.ps is neither"},
      {R"({"cluster": {"ps": [1]}})", "TF_CONFIG: cluster.ps task 0 is not a string"},
      {R"({"cluster": {"ps": {"x": "a:1"}}})", "TF_CONFIG: cluster.ps: key \"x\""},
      {R"({"cluster": {"ps": {"-1": "a:1"}}})", "TF_CONFIG: cluster.ps: task index -1"},
      {R"({"cluster": {"p s": ["a:1"]}})", "TF_CONFIG: cluster.p s: job name 'p s'"},
      {R"({"cluster": {"ps": ["a:1", "a:1"]}})", "'a:1' is the address of both ps 0 and ps 1"},
      {R"({"cluster": {"ps": ["a:1"]}})", "TF_CONFIG: there is no task"},
      {R"({"cluster": {"ps": ["a:1"]}, "task": {"type": 1}})", "TF_CONFIG: task.type"},
      {R"({"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": 1e99}})",
       "TF_CONFIG: task.index 1e+99"},
      {R"({"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": 1}})",
       "TF_CONFIG: task.index 1 is not a task of job 'ps'"},
      {R"({"cluster": {"ps": ["a:1"]}, "task": {"type": "worker", "index": 0}})",
       "TF_CONFIG: task.type 'worker' is not a job of the cluster (ps: 0=a:1)"},
  };
  for (const auto& c : cases) {
    const Status status = TaskConfigFromJson(c.json).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << c.json;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.error));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
  }
}

// Uses meaningless values that launchers write, and malformed ones.
TEST(TfConfigTest, HostileJsonIsAnErrorAndNoCrash) {
  const std::string deep(100'000, '[');
  const struct {
    std::string json;
    const char* error;
  } cases[] = {
      {deep, "TF_CONFIG: not valid JSON"},
      {StrCat(R"({"cluster": {"ps": )", deep), "TF_CONFIG: not valid JSON"},
      {std::string("{\0}", 3), "TF_CONFIG: not valid JSON"},
      {R"({"cluster": {"ps": {}}, "task": {"type": "ps"}})", "TF_CONFIG: the cluster has no jobs"},
      {R"({"cluster": {"ps": []}, "task": {"type": "ps"}})", "TF_CONFIG: the cluster has no jobs"},
      {R"({"cluster": {"ps": {"2147483648": "a:1"}}})", "key \"2147483648\" is not a task index"},
      {R"({"cluster": {"ps": {"1": "a:1", "01": "b:1"}}})", "TF_CONFIG: cluster.ps: "},
      {R"({"cluster": {"ps": ["a:1"]}, "task": 0})", "TF_CONFIG: there is no task"},
      {R"({"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": 4294967296}})",
       "TF_CONFIG: task.index 4294967296 is not a task index"},
      {R"({"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": 18446744073709551615}})",
       "TF_CONFIG: task.index 18446744073709551615 is not a task index"},
      {R"({"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": "0x0"}})",
       "TF_CONFIG: task.index \"0x0\" is not a task index"},
      {R"({"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": null}})",
       "TF_CONFIG: task.index null is not a task index"},
      {R"({"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": -1}})",
       "TF_CONFIG: task.index -1 is not a task of job 'ps'"},
  };
  for (const auto& c : cases) {
    const Status status = TaskConfigFromJson(c.json).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << c.json.substr(0, 100);
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.error));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
  }
}

}  // namespace
}  // namespace penstock
