// SPDX-License-Identifier: Apache-2.0
//
// Tests two workers whose graphs declare one variable of a ps differently.
#include "core/graph/builder.h"
#include "distributed/rpc/ask_cluster.h"
#include "distributed/testing/two_tasks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A variable "w" on the ps, and the node "init", which assigns zeros to it.
struct Program {
  Program(bool resource, PartialShape declared, int64_t size, DType dtype = DType::kFloat) {
    const auto ps = g.DeviceScope(kPs);
    w = CallIn(g, resource ? "VarHandleOp" : "VariableV2", {},
               {{"dtype", dtype}, {"shape", std::move(declared)}, {"shared_name", "w"}});
    const Tensor zeros = dtype == DType::kFloat
                             ? Tensor::Vector<float>(std::vector<float>(size))
                             : Tensor::Vector<int32_t>(std::vector<int32_t>(size));
    init = resource ? "AssignVariableOp" : "Assign";
    CallN(init, {w, Constant(g, zeros)}, {{"validate_shape", true}});
    value = Call(resource ? "ReadVariableOp" : "Identity", {w}, {{resource ? "dtype" : "T", dtype}})
                .name();
    initialized = Call(resource ? "VarIsInitializedOp" : "IsVariableInitialized", {w}).name();
  }
  GraphBuilder g;
  Output w;
  std::string init, value, initialized;
};

class DeclarationsTest : public TwoTasksTest {
 protected:
  // Runs a step that initialises the variable, and returns the number of its elements.
  StatusOr<int64_t> Init(SessionInterface& session, const Program& program) {
    RETURN_IF_ERROR(Run(session, program.g, {}, {}, {program.init}));
    RETURN_IF_ERROR(session.Run({}, {}, {program.value}, {}, &out, nullptr));
    return out[0].num_elements();
  }
};
INSTANTIATE_TEST_SUITE_P(Networks, DeclarationsTest, AllNetworks(), NameOf);

TEST_P(DeclarationsTest, AnotherShapeIsRefusedWhileTheFirstSessionLives) {
  for (const bool resource : {false, true}) {
    const Program ten(resource, {10}, 10), twelve(resource, {12}, 12);
    auto first = cluster_->NewSession({}, "worker", 0);
    ASSERT_EQ(*Init(*first, ten), 10);
    auto second = cluster_->NewSession({}, "worker", 1);
    const Status refused = Run(*second, twelve.g, {}, {}, {twelve.init});
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << refused;
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr("variable 'w' is in use as float[10]"), HasSubstr("float[12]"),
                      HasSubstr("the same program")));
    EXPECT_EQ(*Init(*first, ten), 10);
    EXPECT_TRUE(cluster_->Idle());
    // The next program may have another shape.
    ASSERT_TRUE(first->Close().ok());
    const auto size = Init(*second, twelve);
    ASSERT_TRUE(size.ok()) << size.status();
    EXPECT_EQ(*size, 12);
    ASSERT_TRUE(second->Close().ok());
  }
}

TEST_P(DeclarationsTest, AnotherTypeIsRefused) {
  const Program floats(true, {10}, 10), ints(true, {10}, 10, DType::kInt32);
  auto first = cluster_->NewSession({}, "worker", 0);
  ASSERT_EQ(*Init(*first, floats), 10);
  auto second = cluster_->NewSession({}, "worker", 1);
  const Status refused = Run(*second, ints.g, {}, {}, {ints.init});
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << refused;
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("variable 'w' exists already, as float[10]"),
                    HasSubstr("says int32[10]"), HasSubstr("penstock reset grpc://")));
}

// If an earlier program has left a value of another shape than a program declares, the variable
// counts as uninitialised for the later program. So its workers wait until their chief has
// initialised the variable.
TEST_P(DeclarationsTest, AnOldValueOfAnotherShapeDoesNotCountAsInitialised) {
  const Program ten(true, {10}, 10);
  const Program twelve(true, {12}, 12), any(true, PartialShape(), 12);
  const auto initialized = [&](const Program& program, SessionInterface& session) {
    const Status ran = Run(session, program.g, {}, {program.initialized});
    EXPECT_TRUE(ran.ok()) << ran;
    return ran.ok() && out[0].scalar<bool>();
  };
  auto first = cluster_->NewSession({}, "worker", 0);
  ASSERT_EQ(*Init(*first, ten), 10);
  ASSERT_TRUE(first->Close().ok());
  auto second = cluster_->NewSession({}, "worker", 1);
  EXPECT_FALSE(initialized(twelve, *second));
  ASSERT_EQ(*Init(*second, twelve), 12);
  EXPECT_TRUE(initialized(twelve, *second));
  ASSERT_TRUE(second->Close().ok());
  auto third = cluster_->NewSession({}, "worker", 1);
  EXPECT_TRUE(initialized(any, *third)) << "a program that declares no shape takes any";
}

TEST_P(DeclarationsTest, AnUnknownShapeAgreesWithAll) {
  const Program ten(false, {10}, 10), unknown(false, PartialShape(), 10);
  auto first = cluster_->NewSession({}, "worker", 0);
  auto second = cluster_->NewSession({}, "worker", 1);
  EXPECT_EQ(*Init(*first, ten), 10);
  EXPECT_EQ(*Init(*second, unknown), 10);
}

// Returns a program that updates the variable "w" of the ps, without initialising it.
std::string AddUpdate(GraphBuilder& g, const std::string& op) {
  const auto ps = g.DeviceScope(kPs);
  const Output w =
      CallIn(g, "VarHandleOp", {},
             {{"dtype", DType::kFloat}, {"shape", PartialShape({1})}, {"shared_name", "w"}});
  const Output number = Constant(g, Tensor::Scalar(0.1f));
  const Output row = Constant(g, Tensor::Vector<float>({1}));
  CallN("AssignVariableOp", {w, row});
  if (op == "ResourceApplyAddSign") {
    CallN(op, {w, w, number, number, number, number, row});
  } else {
    CallN(op, {w, number, row});
  }
  return op;
}

// If a worker's optimizer differs from that of the others, the ps reports it and names the worker.
TEST_P(DeclarationsTest, AnotherOptimiserIsReported) {
  const auto reported = [&]() -> std::vector<std::string> {
    const auto cluster = AskCluster(cluster_->target());
    EXPECT_TRUE(cluster.ok()) << cluster.status();
    std::vector<std::string> all;
    if (!cluster.ok()) return all;
    for (const wire::ClusterTask& task : cluster->task()) {
      const auto& its = task.report().program_difference();
      all.insert(all.end(), its.begin(), its.end());
    }
    return all;
  };
  GraphBuilder descent, sign;
  const std::string a = AddUpdate(descent, "ResourceApplyGradientDescent");
  const std::string b = AddUpdate(sign, "ResourceApplyAddSign");
  auto first = cluster_->NewSession({}, "worker", 0);
  ASSERT_EQ(Run(*first, descent, {}, {}, {"AssignVariableOp", a}), OkStatus());
  auto same = cluster_->NewSession({}, "worker", 1);
  ASSERT_EQ(Run(*same, descent, {}, {}, {a}), OkStatus());
  EXPECT_TRUE(reported().empty());
  auto other = cluster_->NewSession({}, "worker", 1);
  (void)Run(*other, sign, {}, {}, {b});
  const std::vector<std::string> differences = reported();
  ASSERT_FALSE(differences.empty());
  EXPECT_THAT(differences[0],
              AllOf(HasSubstr("variable 'w' is updated by "), HasSubstr("by GradientDescent in"),
                    HasSubstr("by AddSign in"), HasSubstr("/job:worker/replica:0/task:1 at ")));
  ASSERT_TRUE(other->Close().ok());
  EXPECT_TRUE(reported().empty());
}

}  // namespace
}  // namespace penstock
