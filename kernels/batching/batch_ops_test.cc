// SPDX-License-Identifier: Apache-2.0
//
// Tests Batch, Unbatch, UnbatchGrad and BatchFunction, each with several steps that run
// concurrently.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/base/scheduler.h"
#include "core/functions/embedded_functions.h"
#include "core/op/testing/op_runner.h"
#include "google/protobuf/text_format.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using Results = StatusOr<std::vector<Tensor>>;
using Sizes = std::vector<int64_t>;

// Runs the functions at the same time and returns their results.
std::vector<Results> Together(const std::vector<std::function<Results()>>& steps) {
  std::vector<Results> results(steps.size(), Internal("not run"));
  std::vector<std::unique_ptr<Thread>> threads;
  for (size_t i = 0; i < steps.size(); ++i) {
    threads.push_back(Scheduler::Real().StartThread("step", [&, i] { results[i] = steps[i](); }));
  }
  threads.clear();
  return results;
}

Tensor Column(std::vector<float> values) {
  return Tensor::Of<float>({static_cast<int64_t>(values.size()), 1}, values);
}
std::string Text(const Results& outputs) {
  if (!outputs.ok()) return std::string(outputs.status().message());
  return outputs->front().ToString();
}

class BatchOpsTest : public testing::Test {
 protected:
  OpRunner Op(const char* op) { return OpRunner(op, resources_); }
  OpRunner Batch(const std::vector<Tensor>& inputs, int64_t rows_max = 3,
                 int64_t timeout_micros = 5'000'000) {
    return Op("Batch")
        .InList(inputs)
        .Attr("num_batch_threads", 1)
        .Attr("max_batch_size", rows_max)
        .Attr("batch_timeout_micros", timeout_micros)
        .Attr("grad_timeout_micros", 5'000'000);
  }
  OpRunner Unbatch(const Tensor& batch, const Tensor& index, const Tensor& id,
                   int64_t timeout_micros = 5'000'000) {
    return Op("Unbatch").In(batch).In(index).In(id).Attr("timeout_micros", timeout_micros);
  }
  OpRunner Function(const std::vector<Tensor>& inputs, const char* function = "twice") {
    constexpr char kLibrary[] = R"(
      function { signature { name: 'twice' input_arg { name: 'x' type: DT_FLOAT }
                             input_arg { name: 'factor' type: DT_FLOAT }
                             output_arg { name: 'y' type: DT_FLOAT } }
        node_def { name: 'product' op: 'Mul' input: 'x' input: 'factor'
          attr { key: 'T' value { type: DT_FLOAT } } }
        ret { key: 'y' value: 'product:z:0' } }
      function { signature { name: 'scalar' input_arg { name: 'x' type: DT_FLOAT }
                             input_arg { name: 'factor' type: DT_FLOAT }
                             output_arg { name: 'y' type: DT_FLOAT } }
        ret { key: 'y' value: 'factor' } })";
    tensorflow::FunctionDefLibrary library;
    CHECK(google::protobuf::TextFormat::ParseFromString(kLibrary, &library));
    return Op("BatchFunction")
        .InList(inputs)
        .InList({Tensor::Scalar(2.0f)})
        .Attr("Tout", std::vector<DType>{DType::kFloat})
        .Attr("f", FunctionName{.name = function, .attrs = std::make_shared<Attrs>()})
        .Attr(kFunctionsAttr, library.SerializeAsString())
        .Attr("num_batch_threads", 1)
        .Attr("max_batch_size", 3)
        .Attr("batch_timeout_micros", 5'000'000);
  }
  std::string Error(OpRunner run) { return std::string(run.Run().status().message()); }

  std::shared_ptr<ResourceStore> resources_ = std::make_shared<ResourceStore>();
};

TEST_F(BatchOpsTest, OneStepGetsTheBatchAndAllGetTheirRowsBack) {
  // Each step doubles the rows that Batch returned to it, gets its own rows from Unbatch, and calls
  // UnbatchGrad with a gradient of ten times its rows.
  const auto step = [&](std::vector<float> rows) -> std::function<Results()> {
    return [this, rows]() -> Results {
      ASSIGN_OR_RETURN(const std::vector<Tensor> batch, Batch({Column(rows)}).Run());
      ASSIGN_OR_RETURN(const Tensor twice, Op("Mul").In(batch[0]).In(Tensor::Scalar(2.0f)).Run1());
      ASSIGN_OR_RETURN(const Tensor own, Unbatch(twice, batch[1], batch[2]).Run1());
      std::vector<float> tenfold = rows;
      for (float& row : tenfold) row *= 10;
      ASSIGN_OR_RETURN(
          const Tensor gradient,
          Op("UnbatchGrad").In(twice).In(batch[1]).In(Column(tenfold)).In(batch[2]).Run1());
      return std::vector<Tensor>{own, batch[0], batch[1], gradient};
    };
  };
  for (int round = 0; round < 20; ++round) {
    const std::vector<Results> results = Together({step({1}), step({2, 3})});
    EXPECT_EQ(Text(results[0]), "float[1,1] 2");
    EXPECT_EQ(Text(results[1]), "float[2,1] 4 6");
    int batches = 0;
    for (const Results& result : results) {
      ASSERT_TRUE(result.ok()) << result.status();
      const Tensor &batch = (*result)[1], &index = (*result)[2], &gradient = (*result)[3];
      if (index.dim(0) == 0) {
        EXPECT_EQ(batch.ToString(), "float[0,1]");
        EXPECT_EQ(gradient.ToString(), "float[0,1]");
        continue;
      }
      ++batches;
      const bool first_is_short = index.data<int64_t>()[2] == 1;
      EXPECT_EQ(batch.ToString(), first_is_short ? "float[3,1] 1 2 3" : "float[3,1] 2 3 1");
      EXPECT_EQ(gradient.ToString(),
                first_is_short ? "float[3,1] 10 20 30" : "float[3,1] 20 30 10");
    }
    EXPECT_EQ(batches, 1);
  }
}

TEST_F(BatchOpsTest, PadsWithTheFirstRow) {
  const auto result =
      Batch({Column({7, 8, 9}), Tensor::Vector<std::string>({"a", "b", "c"})}, 6, 1000)
          .Attr("allowed_batch_sizes", Sizes{2, 5, 6})
          .Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ((*result)[0].ToString(), "float[5,1] 7 8 9 7 7");
  EXPECT_EQ((*result)[1].data<std::string>()[4], "a");
  const int64_t id = (*result)[3].scalar<int64_t>();
  EXPECT_EQ((*result)[2].ToString(), StrCat("int64[1,3] ", id, " 0 3"));
  const auto gradient = Op("UnbatchGrad")
                            .In((*result)[0])
                            .In((*result)[2])
                            .In(Column({1, 2, 3}))
                            .In((*result)[3])
                            .Run1();
  ASSERT_TRUE(gradient.ok()) << gradient.status();
  EXPECT_EQ(gradient->ToString(), "float[5,1] 1 2 3 0 0");
  EXPECT_THAT(
      Error(Batch({Column({})}, 6, 0).NodeName("empty").Attr("allowed_batch_sizes", Sizes{2, 6})),
      HasSubstr("Cannot use an empty tensor with zero rows as padding"));
  const auto empty = Batch({Column({})}, 6, 0).NodeName("plain").Run();
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ((*empty)[0].ToString(), "float[0,1]");
}

TEST_F(BatchOpsTest, UnbatchDoesNotWaitForEver) {
  const Tensor none = Tensor::Of<int64_t>({0, 3}, {});
  const Status status = Unbatch(Column({}), none, Tensor::Scalar<int64_t>(1), 1000).Run().status();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
}

TEST_F(BatchOpsTest, UnbatchRefusesWrongIndices) {
  const Tensor three = Column({1, 2, 3}), id = Tensor::Scalar<int64_t>(1);
  const auto error = [&](const Shape& shape, const std::vector<int64_t>& index) {
    return Error(Unbatch(three, Tensor::Of<int64_t>(shape, index), id)
                     .SetKnownInputs(OpRunner::Known::kNothing));
  };
  EXPECT_THAT(error({3}, {1, 0, 3}), HasSubstr("must have shape [K, 3]"));
  EXPECT_THAT(error({1, 2}, {1, 0}), HasSubstr("must have shape [K, 3]"));
  EXPECT_THAT(error({1, 3}, {1, 0, 4}), HasSubstr("range 0 is [0, 4)"));
  EXPECT_THAT(error({1, 3}, {1, -1, 2}), HasSubstr("range 0 is [-1, 2)"));
  EXPECT_THAT(error({2, 3}, {1, 0, 2, 2, 1, 3}), HasSubstr("range 1 is [1, 3) after 2"));
  EXPECT_THAT(error({2, 3}, {1, 0, 2, 1, 2, 3}), HasSubstr("the id 1 twice"));
  EXPECT_THAT(error({1, 3}, {5, 0, 3}), HasSubstr("no row for the id 1"));
  EXPECT_THAT(Error(Unbatch(Tensor::Scalar(1.0f), Tensor::Of<int64_t>({0, 3}, {}), id)
                        .SetKnownInputs(OpRunner::Known::kNothing)),
              HasSubstr("batched_tensor must have at least one dimension"));
}

TEST_F(BatchOpsTest, RefusesWrongInputsAndAttributes) {
  EXPECT_THAT(Error(Batch({Column({1, 2}), Column({1})})),
              HasSubstr("must have equal 0th-dimension size"));
  EXPECT_THAT(Error(Batch({Tensor::Scalar(1.0f)}).SetKnownInputs(OpRunner::Known::kNothing)),
              HasSubstr("must have at least one dimension"));
  EXPECT_THAT(Error(Batch({Column({1, 2, 3, 4})})),
              HasSubstr("Task size 4 is larger than maximum input batch size 3"));
  const auto with = [&](const char* attr, AttrValue value) {
    return Error(Batch({Column({1})}, 4, 0).NodeName("other").Attr(attr, std::move(value)));
  };
  EXPECT_THAT(with("num_batch_threads", 0), HasSubstr("num_batch_threads must be from 1"));
  EXPECT_THAT(with("max_batch_size", 0), HasSubstr("max_batch_size must be from 1"));
  EXPECT_THAT(with("max_batch_size", int64_t{1} << 40), HasSubstr("max_batch_size must be from 1"));
  EXPECT_THAT(with("batch_timeout_micros", -1), HasSubstr("batch_timeout_micros must be from 0"));
  EXPECT_THAT(with("allowed_batch_sizes", Sizes{2, 1}), HasSubstr("monotonically increasing"));
  EXPECT_THAT(with("allowed_batch_sizes", Sizes{2}), HasSubstr("must equal max_batch_size"));
  EXPECT_THAT(with("allowed_batch_sizes", Sizes{-1, 4}), HasSubstr("entry 0 is -1"));
  EXPECT_EQ(with("max_enqueued_batches", -1), "");  // one batch may always wait
  EXPECT_THAT(Error(Batch({Column({1})}, 5)), HasSubstr("batcher 'Batch' exists already"));
  const auto function = [&](const char* attr, AttrValue value) {
    return Error(Function({Column({1, 2, 3})}).Attr(attr, std::move(value)));
  };
  EXPECT_THAT(function("low_priority_max_batch_size", -1), HasSubstr("must be from 0"));
  EXPECT_THAT(function("low_priority_allowed_batch_sizes", Sizes{3, 3}), HasSubstr("increasing"));
  EXPECT_THAT(function("batch_padding_policy", "OTHER"), HasSubstr("batch_padding_policy"));
  EXPECT_THAT(Error(Function({Column({1})})
                        .Attr("enable_large_batch_splitting", true)
                        .Attr("allowed_batch_sizes", Sizes{4})),
              HasSubstr("must be from 1 to max_batch_size = 3, is 4"));
}

TEST_F(BatchOpsTest, CallsTheFunctionForTheBatch) {
  const auto step = [&](std::vector<float> rows) -> std::function<Results()> {
    return [this, rows] { return Function({Column(rows)}).Run(); };
  };
  for (int round = 0; round < 20; ++round) {
    const std::vector<Results> results = Together({step({1}), step({2}), step({3})});
    EXPECT_EQ(Text(results[0]), "float[1,1] 2");
    EXPECT_EQ(Text(results[1]), "float[1,1] 4");
    EXPECT_EQ(Text(results[2]), "float[1,1] 6");
  }
  const Results large = Function({Column({1, 2, 3, 4, 5, 6, 7})})
                            .NodeName("split")
                            .Attr("max_batch_size", 10)
                            .Attr("allowed_batch_sizes", Sizes{1, 3})
                            .Attr("batch_timeout_micros", 1000)
                            .Attr("num_batch_threads", 0)
                            .Attr("enable_large_batch_splitting", true)
                            .Run();
  EXPECT_EQ(Text(large), "float[7,1] 2 4 6 8 10 12 14");
  const Status status = Function({Column({1, 2, 3})}, "scalar").Run().status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("Batched output tensor has 0 dimensions"));
  EXPECT_THAT(Error(Function({Column({1, 2, 3})}, "none").NodeName("other")), HasSubstr("none"));
}

}  // namespace
}  // namespace penstock
