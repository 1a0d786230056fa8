// SPDX-License-Identifier: Apache-2.0
#include "client/summary/summary_writer.h"

#include <unistd.h>

#include <thread>

#include "client/summary/testing/event_files.h"
#include "core/base/forwarding_env.h"
#include "core/graph/builder.h"
#include "core/runtime/testing/sim_test.h"
#include "gmock/gmock.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int64_t kDaySeconds = 24 * 3600;

// An Env whose files cannot be written while `full` is true.
class FullDisk : public ForwardingEnv {
 public:
  using ForwardingEnv::ForwardingEnv;
  StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) override {
    ASSIGN_OR_RETURN(auto file, ForwardingEnv::NewWritableFile(path));
    return std::unique_ptr<WritableFile>(std::make_unique<File>(*this, std::move(file)));
  }

  bool full = false;

 private:
  class File : public WritableFile {
   public:
    File(FullDisk& disk, std::unique_ptr<WritableFile> file)
        : disk_(disk), file_(std::move(file)) {}
    Status Append(string_view data) override {
      if (disk_.full) return ResourceExhausted("no space left");
      return file_->Append(data);
    }
    Status Sync() override { return file_->Sync(); }
    Status Close() override { return file_->Close(); }

   private:
    FullDisk& disk_;
    const std::unique_ptr<WritableFile> file_;
  };
};

TEST(SummaryWriterTest, TheFileThatTensorBoardExpects) {
  const std::string folder = NewTestFolder();
  {
    auto writer = SummaryWriter::Create(folder);
    ASSERT_TRUE(writer.ok()) << writer.status();
    EXPECT_THAT((*writer)->path(),
                testing::MatchesRegex(StrCat(folder, "/events\\.out\\.tfevents\\.[0-9]{10}\\..+\\.",
                                             getpid(), "\\.[0-9]+")));
    CHECK_OK((*writer)->AddScalars({{"accuracy", 0.5}, {"loss", 2.25}}, 7));
    CHECK_OK((*writer)->AddSession(SummaryWriter::SessionEvent::kCheckpoint, 8, "/c/model.ckpt-8"));
    CHECK_OK((*writer)->AddRunMetadata("step 8", "bytes", 8));
    CHECK_OK((*writer)->Close());
  }
  const auto events = ReadEvents(folder);
  ASSERT_THAT(events, SizeIs(4));
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_NEAR(events[0].wall_time(), static_cast<double>(Env::Real().WallMicros()) * 1e-6, 60);
  EXPECT_EQ(events[1].step(), 7);
  ASSERT_EQ(events[1].summary().value_size(), 2);
  EXPECT_EQ(events[1].summary().value(0).tag(), "accuracy");
  EXPECT_EQ(events[1].summary().value(1).tag(), "loss");
  EXPECT_EQ(events[1].summary().value(1).simple_value(), 2.25f);
  EXPECT_EQ(events[2].session_log().status(), tensorflow::SessionLog::CHECKPOINT);
  EXPECT_EQ(events[2].session_log().checkpoint_path(), "/c/model.ckpt-8");
  EXPECT_EQ(events[3].tagged_run_metadata().tag(), "step 8");
  EXPECT_EQ(events[3].tagged_run_metadata().run_metadata(), "bytes");
}

TEST(SummaryWriterTest, AHistogramOfWholeNumbers) {
  const std::string folder = NewTestFolder();
  {
    auto writer = SummaryWriter::Create(folder);
    ASSERT_TRUE(writer.ok()) << writer.status();
    CHECK_OK((*writer)->AddHistogram("counts", {{0, 3}, {1, 4}, {5, 2}}, 7));
    CHECK_OK((*writer)->AddHistogram("nothing", {}, 8));
  }
  const auto events = ReadEvents(folder);
  ASSERT_THAT(events, SizeIs(3));
  EXPECT_EQ(events[1].step(), 7);
  EXPECT_EQ(events[1].summary().value(0).tag(), "counts");
  const tensorflow::HistogramProto& counts = events[1].summary().value(0).histo();
  EXPECT_THAT(counts.bucket_limit(), testing::ElementsAre(-0.5, 0.5, 1.5, 4.5, 5.5));
  EXPECT_THAT(counts.bucket(), testing::ElementsAre(0, 3, 4, 0, 2));
  EXPECT_EQ(counts.min(), 0);
  EXPECT_EQ(counts.max(), 5);
  EXPECT_EQ(counts.num(), 9);
  EXPECT_EQ(counts.sum(), 14);
  EXPECT_EQ(counts.sum_squares(), 54);
  EXPECT_EQ(events[2].summary().value(0).histo().num(), 0);
}

TEST(SummaryWriterTest, TheGraph) {
  const std::string folder = NewTestFolder();
  GraphBuilder builder;
  (void)Constant(builder, Tensor::Scalar<float>(3));
  {
    auto writer = *SummaryWriter::Create(folder);
    CHECK_OK(writer->AddGraph(builder.graph()));
  }  // the destructor closes the writer
  const auto events = ReadEvents(folder);
  ASSERT_THAT(events, SizeIs(2));
  tensorflow::GraphDef def;
  ASSERT_TRUE(def.ParseFromString(events[1].graph_def()));
  ASSERT_EQ(def.node_size(), 1);
  EXPECT_EQ(def.node(0).op(), "Const");
}

TEST(SummaryWriterTest, Mistakes) {
  const auto writer = *SummaryWriter::Create(NewTestFolder());
  EXPECT_EQ(writer->AddSummary("\xff\xff no message", 1).code(), StatusCode::kInvalidArgument);
  CHECK_OK(writer->Close());
  EXPECT_EQ(writer->AddScalar("loss", 1, 1).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(writer->Flush().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(writer->Close().code(), StatusCode::kFailedPrecondition);
}

TEST(SummaryWriterTest, AFolderThatCannotBeMadeIsAnErrorAtOnce) {
  const auto writer = SummaryWriter::Create("/proc/no/such/folder");
  EXPECT_THAT(std::string(writer.status().message()), HasSubstr("/proc/no"));
}

TEST(SummaryWriterTest, ManyThreads) {
  const std::string folder = NewTestFolder();
  {
    const auto writer = *SummaryWriter::Create(folder, {.flush_seconds = 0});
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 250; ++i) CHECK_OK(writer->AddScalar(StrCat("t", t), i, i));
        CHECK_OK(writer->Flush());
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const auto events = ReadEvents(folder);
  for (int t = 0; t < 4; ++t) {
    const std::vector<int64_t> steps = StepsWith(events, StrCat("t", t));
    ASSERT_THAT(steps, SizeIs(250));
    for (int i = 0; i < 250; ++i) EXPECT_EQ(steps[i], i);
  }
}

class SummaryWriterSimTest : public SimTest {
 protected:
  SummaryWriter::Options Options() { return {.env = &disk_, .scheduler = &scheduler_}; }

  FullDisk disk_{env_};
  const std::string folder_ = NewTestFolder();
};

TEST_F(SummaryWriterSimTest, EventsAreInTheFileAfterFlushSeconds) {
  Simulate([&] {
    const auto writer = *SummaryWriter::Create(folder_, Options());
    CHECK_OK(writer->AddScalar("loss", 1, 1));
    Pass(9'000);
    CHECK_OK(writer->AddScalar("loss", 1, 2));
    EXPECT_THAT(StepsWith(ReadEvents(folder_), "loss"), IsEmpty());
    Pass(1'500);
    EXPECT_THAT(StepsWith(ReadEvents(folder_), "loss"), ElementsAre(1, 2));
    CHECK_OK(writer->AddScalar("loss", 1, 3));
    CHECK_OK(writer->Flush());
    EXPECT_THAT(StepsWith(ReadEvents(folder_), "loss"), ElementsAre(1, 2, 3));
  });
}

TEST_F(SummaryWriterSimTest, AFullDiskLosesNothing) {
  Simulate([&] {
    const auto writer = *SummaryWriter::Create(folder_, Options());
    CHECK_OK(writer->AddScalar("loss", 1, 1));
    CHECK_OK(writer->Flush());
    disk_.full = true;
    CHECK_OK(writer->AddScalar("loss", 1, 2));
    EXPECT_THAT(std::string(writer->Flush().message()), HasSubstr("no space left"));
    Pass(60'000);
    CHECK_OK(writer->AddScalar("loss", 1, 3));
    disk_.full = false;
    Pass(11'000);
    CHECK_OK(writer->Flush());
  });
  const auto events = ReadEvents(folder_);
  EXPECT_THAT(StepsWith(events, "loss"), ElementsAre(1, 2, 3));
  // One file from before the failure and one from after it remain; files that could not be written
  // were removed.
  EXPECT_THAT(*Env::Real().ListDirectory(folder_), SizeIs(2));
}

TEST_F(SummaryWriterSimTest, ADiskThatStaysFullIsAnErrorInTheEnd) {
  Simulate([&] {
    SummaryWriter::Options options = Options();
    options.give_up_seconds = 100;
    const auto writer = *SummaryWriter::Create(folder_, options);
    disk_.full = true;
    CHECK_OK(writer->AddScalar("loss", 1, 1));
    Pass(105'000);
    CHECK_OK(writer->AddScalar("loss", 1, 2));
    Pass(10'000);
    const Status given_up = writer->AddScalar("loss", 1, 3);
    EXPECT_EQ(given_up.code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(given_up.message()), HasSubstr("for 100 s"));
    EXPECT_THAT(std::string(given_up.message()), HasSubstr("no space left"));
    EXPECT_FALSE(writer->Close().ok());
  });
}

TEST_F(SummaryWriterSimTest, MemoryIsBoundedWhileTheDiskIsFull) {
  Simulate([&] {
    SummaryWriter::Options options = Options();
    options.pending_bytes_max = 1'000;
    options.give_up_seconds = 0;
    const auto writer = *SummaryWriter::Create(folder_, options);
    disk_.full = true;
    for (int step = 0; step < 500; ++step) CHECK_OK(writer->AddScalar("loss", 1, step));
    Pass(kDaySeconds * 1'000);
    disk_.full = false;
    CHECK_OK(writer->Flush());
    CHECK_OK(writer->AddScalar("loss", 1, 1'000));
  });
  const auto steps = StepsWith(ReadEvents(folder_), "loss");
  EXPECT_GT(steps.size(), 10u);
  EXPECT_LT(steps.size(), 100u);
  EXPECT_EQ(steps.front(), 0);
  EXPECT_EQ(steps.back(), 1'000);
}

}  // namespace
}  // namespace penstock::client
