// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <string>

#include "core/base/forwarding_env.h"
#include "core/op/registry.h"
#include "distributed/calibration/calibrate.h"
#include "distributed/calibration/calibration_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

class CalibrationTest : public ::testing::Test {
 protected:
  CalibrationTest() {
    const std::string pattern = StrCat(::testing::TempDir(), "/calibrationXXXXXX");
    std::string folder = pattern;
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    path_ = StrCat(folder, "/cache/calibration.json");
  }

  std::string MessageOf(const std::string& text) {
    EXPECT_TRUE(Env::Real().CreateDirectories(path_.substr(0, path_.rfind('/'))).ok());
    EXPECT_TRUE(Env::Real().WriteFileAtomically(path_, text).ok());
    return std::string(ReadCalibration(Env::Real(), path_, "here").status().message());
  }

  std::string path_;
  const Calibration known_ = {
      .machine = "here",
      .measured_us = 1'000'000,
      .cpu = {.flops_per_ns = 12.5, .bytes_per_ns = 3.25, .launch_ns = 410}};
  const MeasureOptions options_ = {.registry = &Registry::Global(),
                                   .threads = &Scheduler::Real(),
                                   .env = &Env::Real(),
                                   .timer = &DeadlineTimer::Real(),
                                   .limit_ns = 30'000'000};
};

TEST_F(CalibrationTest, AFileKeepsRates) {
  ASSERT_TRUE(WriteCalibration(Env::Real(), path_, known_).ok());
  const auto read = ReadCalibration(Env::Real(), path_, "here");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->cpu.flops_per_ns, 12.5);
  EXPECT_EQ(read->cpu.bytes_per_ns, 3.25);
  EXPECT_EQ(read->cpu.launch_ns, 410);
  EXPECT_EQ(read->measured_us, 1'000'000);
}

TEST_F(CalibrationTest, OtherVersionsAndMachinesAreRefused) {
  EXPECT_TRUE(absl::IsNotFound(ReadCalibration(Env::Real(), path_, "here").status()));
  ASSERT_TRUE(WriteCalibration(Env::Real(), path_, known_).ok());
  const Status other = ReadCalibration(Env::Real(), path_, "there").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(other)) << other;
  EXPECT_THAT(std::string(other.message()),
              HasSubstr("is a calibration of the machine 'here', this one is 'there'"));
  EXPECT_THAT(MessageOf(R"({"penstock_calibration": 7})"),
              HasSubstr("calibration.json: is a calibration of version 7, expected version 1"));
}

TEST_F(CalibrationTest, BadFilesAreNamedByField) {
  EXPECT_THAT(MessageOf("no JSON"), HasSubstr("is not a calibration"));
  EXPECT_THAT(MessageOf(R"({"penstock_calibration": 1})"), HasSubstr("machine: expected a string"));
  const std::string head = R"({"penstock_calibration": 1, "machine": "here", "measured_us": )";
  EXPECT_THAT(MessageOf(head + "1.5}"), HasSubstr("measured_us: expected a whole number"));
  EXPECT_THAT(MessageOf(head + R"(1, "cpu": {"flops_per_ns": "many"}})"),
              HasSubstr("cpu.flops_per_ns: expected a number"));
  EXPECT_THAT(MessageOf(head + R"(1, "cpu": {"flops_per_ns": 1, "bytes_per_ns": 0,
                                  "launch_ns": 1}})"),
              HasSubstr("cpu: bytes_per_ns: 0 is not between"));
}

TEST_F(CalibrationTest, MeasuresPlausibleRates) {
  const auto rates = MeasureCpuRates(options_);
  ASSERT_TRUE(rates.ok()) << rates.status();
  EXPECT_GT(rates->flops_per_ns, 0.1);
  EXPECT_LT(rates->flops_per_ns, 1e5);
  EXPECT_GT(rates->bytes_per_ns, 0.01);
  EXPECT_GT(rates->launch_ns, 1);
  EXPECT_LT(rates->launch_ns, 1e6);
}

TEST_F(CalibrationTest, MeasuresOnceForAFile) {
  const auto first = Calibrate(path_, options_);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT(first->origin, HasSubstr("measured when the task started"));
  EXPECT_EQ(first->warning, "");
  const auto second = Calibrate(path_, options_);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_THAT(second->origin, HasSubstr("kept in " + path_));
  EXPECT_EQ(second->cpu.flops_per_ns, first->cpu.flops_per_ns);
}

TEST_F(CalibrationTest, ReplacesFilesThatItRefuses) {
  ASSERT_TRUE(WriteCalibration(Env::Real(), path_, known_).ok());
  const auto anew = Calibrate(path_, options_);
  ASSERT_TRUE(anew.ok()) << anew.status();
  EXPECT_THAT(anew->warning, HasSubstr("is a calibration of the machine 'here'"));
  EXPECT_THAT(anew->warning, HasSubstr("measured anew"));
  const auto kept = ReadCalibration(Env::Real(), path_, MachineIdentity(Env::Real()));
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->cpu.launch_ns, anew->cpu.launch_ns);
}

TEST_F(CalibrationTest, ContinuesIfTheFileCannotBeWritten) {
  const auto rates = Calibrate("/proc/no/such/place.json", options_);
  ASSERT_TRUE(rates.ok()) << rates.status();
  EXPECT_THAT(rates->warning, HasSubstr("cannot write /proc/no/such/place.json"));
}

// A clock that does not advance while kernels run, as in a simulation.
class StoppedClock final : public ForwardingEnv {
 public:
  StoppedClock() : ForwardingEnv(Env::Real()) {}
  int64_t NowNanos() override { return 1; }
};

TEST_F(CalibrationTest, AStoppedClockIsAnError) {
  StoppedClock env;
  MeasureOptions options = options_;
  options.env = &env;
  options.limit_ns = 0;
  const auto rates = MeasureCpuRates(options);
  EXPECT_TRUE(absl::IsOutOfRange(rates.status())) << rates.status();
}

TEST_F(CalibrationTest, TheRegistryMustHaveTheOps) {
  const Registry none({}, {});
  MeasureOptions options = options_;
  options.registry = &none;
  EXPECT_FALSE(MeasureCpuRates(options).ok());
}

}  // namespace
}  // namespace penstock
