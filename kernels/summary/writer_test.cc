// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/base/env.h"
#include "core/op/testing/op_runner.h"
#include "core/record/record_reader.h"
#include "proto/tensorflow/event.pb.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

class WriterTest : public testing::Test {
 protected:
  OpRunner Op(const char* op) {
    OpRunner run(op, resources_);
    run.In(handle_);
    return run;
  }
  OpRunner Op(const char* op, int64_t step) {
    OpRunner run = Op(op);
    run.In(Tensor::Scalar(step));
    return run;
  }
  Status Open(int32_t max_queue = 10, const std::string& suffix = ".v2") {
    return Op("CreateSummaryFileWriter")
        .In(Tensor::Scalar(directory_))
        .In(Tensor::Scalar(max_queue))
        .In(Tensor::Scalar<int32_t>(1'000'000))
        .In(Tensor::Scalar(suffix))
        .Run()
        .status();
  }
  Status Scalar(int64_t step, float value) {
    return Op("WriteScalarSummary", step)
        .In(Tensor::Scalar<std::string>("loss"))
        .In(Tensor::Scalar(value))
        .Run()
        .status();
  }
  // Returns the events of the only file, as other processes can read them now.
  std::vector<tensorflow::Event> Events() {
    const auto names = Env::Real().ListDirectory(directory_);
    CHECK_OK(names.status());
    CHECK(names->size() == 1, names->size(), " files");
    file_ = names->front();
    auto reader = RecordReader::Open(Env::Real(), StrCat(directory_, "/", file_));
    CHECK_OK(reader.status());
    std::vector<tensorflow::Event> events;
    std::string record;
    for (auto more = reader->Read(&record); more.ok() && *more; more = reader->Read(&record)) {
      CHECK(events.emplace_back().ParseFromString(record));
    }
    return events;
  }

  const std::string directory_ =
      StrCat(testing::TempDir(), testing::UnitTest::GetInstance()->current_test_info()->name());
  const std::shared_ptr<ResourceStore> resources_ = std::make_shared<ResourceStore>();
  const Tensor handle_ = *OpRunner("SummaryWriter", resources_).Run1();
  std::string file_;
};

TEST_F(WriterTest, WritesEvents) {
  ASSERT_EQ(Open(), OkStatus());
  ASSERT_EQ(Open(), OkStatus());  // the same file
  ASSERT_EQ(Scalar(7, 0.5f), OkStatus());
  const Tensor tag = Tensor::Scalar<std::string>("w");
  ASSERT_EQ(
      Op("WriteHistogramSummary", 8).In(tag).In(Tensor::Vector<float>({1, 2, 3})).Run().status(),
      OkStatus());
  tensorflow::SummaryMetadata metadata;
  metadata.mutable_plugin_data()->set_plugin_name("scalars");
  ASSERT_EQ(Op("WriteSummary", 9)
                .In(Tensor::Scalar<float>(2))
                .In(tag)
                .In(Tensor::Scalar(metadata.SerializeAsString()))
                .Run()
                .status(),
            OkStatus());
  tensorflow::GraphDef graph;
  graph.add_node()->set_name("n");
  const std::string graph_def = graph.SerializeAsString();
  ASSERT_EQ(Op("WriteGraphSummary", 10).In(Tensor::Scalar(graph_def)).Run().status(), OkStatus());
  EXPECT_EQ(Events().size(), 1);  // the version; the others are not flushed yet
  ASSERT_EQ(Op("FlushSummaryWriter").Run().status(), OkStatus());
  const auto events = Events();
  EXPECT_THAT(file_, testing::StartsWith("events.out.tfevents."));
  EXPECT_THAT(file_, testing::EndsWith(".v2"));
  ASSERT_EQ(events.size(), 5);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_EQ(events[1].step(), 7);
  EXPECT_GT(events[1].wall_time(), 1e9);
  EXPECT_EQ(events[1].summary().value(0).tag(), "loss");
  EXPECT_EQ(events[1].summary().value(0).simple_value(), 0.5f);
  EXPECT_EQ(events[2].summary().value(0).histo().sum(), 6);
  EXPECT_EQ(events[3].summary().value(0).metadata().plugin_data().plugin_name(), "scalars");
  EXPECT_EQ(events[3].summary().value(0).tensor().dtype(), tensorflow::DT_FLOAT);
  EXPECT_EQ(events[4].graph_def(), graph_def);
  EXPECT_EQ(events[4].step(), 10);
}

TEST_F(WriterTest, WritesMessagesAsTheyAre) {
  ASSERT_EQ(Open(0), OkStatus());
  tensorflow::Event event;
  event.set_step(3);
  event.set_wall_time(5);
  event.mutable_summary()->add_value()->set_tag("a");
  ASSERT_EQ(Op("ImportEvent").In(Tensor::Scalar(event.SerializeAsString())).Run().status(),
            OkStatus());
  ASSERT_EQ(Op("WriteRawProtoSummary", 4)
                .In(Tensor::Scalar(event.summary().SerializeAsString()))
                .Run()
                .status(),
            OkStatus());
  const auto events = Events();  // max_queue is 0, so each event is flushed
  ASSERT_EQ(events.size(), 3);
  EXPECT_EQ(events[1].SerializeAsString(), event.SerializeAsString());
  EXPECT_EQ(events[2].step(), 4);
  EXPECT_EQ(events[2].summary().value(0).tag(), "a");
}

TEST_F(WriterTest, WritesImagesAndSounds) {
  ASSERT_EQ(Open(0), OkStatus());
  const Tensor tag = Tensor::Scalar<std::string>("m");
  const Tensor red = Tensor::Vector<uint8_t>({255, 0, 0, 255});
  const auto images = [&](Tensor pixels, const Tensor& bad) {
    return Op("WriteImageSummary", 5).In(tag).In(std::move(pixels)).In(bad).Run().status();
  };
  const auto sounds = [&](const Tensor& samples, float rate) {
    return Op("WriteAudioSummary", 6)
        .In(tag)
        .In(samples)
        .In(Tensor::Scalar(rate))
        .Attr("max_outputs", 1)
        .Run()
        .status();
  };
  const Tensor two = Tensor::Of<float>({2, 1, 2, 1}, {0, 1, 2, 3});
  ASSERT_EQ(images(two, red), OkStatus());
  ASSERT_EQ(sounds(Tensor::Of<float>({2, 3}, {0, 1, -1, 0, 0, 0}), 8000), OkStatus());
  const auto events = Events();
  ASSERT_EQ(events.size(), 3);
  const Tensor same = *OpRunner("ImageSummary").In(tag).In(two).Run1();
  EXPECT_EQ(events[1].summary().SerializeAsString(), same.scalar<std::string>());
  EXPECT_EQ(events[1].step(), 5);
  EXPECT_EQ(events[1].summary().value(1).tag(), "m/image/1");
  ASSERT_EQ(events[2].summary().value_size(), 1);
  EXPECT_EQ(events[2].summary().value(0).tag(), "m/audio");
  EXPECT_EQ(events[2].summary().value(0).audio().length_frames(), 3);
  EXPECT_THAT(images(two, Tensor::Vector<uint8_t>({})).message(), HasSubstr("bad_color.size = 0"));
  EXPECT_THAT(images(Tensor::Vector<float>({1}), red).message(), HasSubstr("must be 4-D"));
  EXPECT_THAT(sounds(Tensor::Vector<float>({1}), 8000).message(), HasSubstr("3-D or 2-D"));
  EXPECT_THAT(sounds(Tensor::Of<float>({1, 1}, {0}), -1).message(), HasSubstr("sample_rate"));
}

TEST_F(WriterTest, CloseEndsTheFile) {
  ASSERT_EQ(Open(), OkStatus());
  ASSERT_EQ(Scalar(1, 1), OkStatus());
  ASSERT_EQ(Op("CloseSummaryWriter").Run().status(), OkStatus());
  EXPECT_EQ(Events().size(), 2);
  EXPECT_EQ(Op("CloseSummaryWriter").Run().status(), OkStatus());
  EXPECT_EQ(Scalar(2, 1).code(), StatusCode::kFailedPrecondition);
}

TEST_F(WriterTest, MistakesAreNamed) {
  EXPECT_THAT(Scalar(1, 1).message(), HasSubstr("run CreateSummaryFileWriter first"));
  EXPECT_EQ(Op("FlushSummaryWriter").Run().status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(Open(1, "../x").message(), HasSubstr("filename_suffix must have no '/'"));
  ASSERT_EQ(Open(), OkStatus());
  const Tensor broken = Tensor::Scalar<std::string>("\x08");
  EXPECT_THAT(Op("ImportEvent").In(broken).Run().status().message(), HasSubstr("event must be"));
  EXPECT_THAT(Op("WriteRawProtoSummary", 1).In(broken).Run().status().message(),
              HasSubstr("tensor must be a serialized Summary"));
  EXPECT_THAT(Op("WriteGraphSummary", 1).In(broken).Run().status().message(),
              HasSubstr("tensor must be a serialized GraphDef"));
  EXPECT_THAT(Op("WriteHistogramSummary", 1)
                  .In(Tensor::Scalar<std::string>("h"))
                  .In(Tensor::Vector<float>({1, std::numeric_limits<float>::infinity()}))
                  .Run()
                  .status()
                  .message(),
              HasSubstr("histogram 'h' must be finite"));
}

}  // namespace
}  // namespace penstock
