// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "distributed/insight/metrics.h"
#include "distributed/insight/status_page.h"
#include "distributed/insight/status_tables.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

wire::ClusterReport Cluster() {
  wire::ClusterReport cluster;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    asked: '/job:worker/replica:0/task:0'
    task { name: '/job:ps/replica:0/task:0' address: 'a:1' error { message: 'refused' } }
    task { name: '/job:worker/replica:0/task:0' address: 'b:1' report {
      self { task: '/job:worker/replica:0/task:0' incarnation: 255 }
      version: '0.1.0' uptime_ms: 125000 memory_bytes: 2500000
      session { handle: 's1' age_ms: 60000 idle_ms: 5000 client: 'ipv4:10.0.0.9:4711'
                steps_begun: 12 step { step_id: 7 age_ms: 1500 } }
      new_session { age_ms: 3000 task: '/job:ps/replica:0/task:0' }
      steps { begun: 12 per_second: 2.5 failed { key: 'UNAVAILABLE' value: 3 }
              bound: 0.1 bound: 1 count: 4 count: 5 count: 2 seconds: 9.5 }
      part { step_id: 7 }
      resource { name { device: 'd' container: 'c' name: '<b>q' } type: 'FIFOQueue'
                 queue { size: 3 capacity: 10 waiting_takes: 1 } }
      resource { name { device: 'd' container: 'c' name: 'small' } type: 'Variable' bytes: 10 }
      resource { name { device: 'd' container: 'c' name: 'large' } type: 'Variable' bytes: 4000000 }
      variables: 2 variable_bytes: 4000010
      sent { to: '/job:ps/replica:0/task:0' bytes: 1234 tensors: 17 }
      peer { task: '/job:ps/replica:0/task:0' heartbeats_missed: 3 silent_ms: 6100
             lost { message: 'gone' } } } })",
                                                            &cluster));
  return cluster;
}

TEST(StatusTest, TheLineSumsUp) {
  EXPECT_EQ(StatusLine(Cluster()),
            "2 tasks, 1 does not answer; 1 session, 1 step in flight, 2.5 steps/s, 4.0 MB of "
            "variables");
}

TEST(StatusTest, ProgramsThatDiffer) {
  wire::ClusterReport cluster = Cluster();
  EXPECT_THAT(StatusText(cluster), Not(HasSubstr("differ")));
  cluster.mutable_task(1)->mutable_report()->add_program_difference("w: Adam here, Ftrl there");
  EXPECT_THAT(StatusText(cluster),
              AllOf(HasSubstr("Programs that differ"),
                    HasSubstr("/job:worker/task:0  w: Adam here, Ftrl there")));
}

TEST(StatusTest, TablesStandInColumns) {
  const std::string text = StatusText(Cluster());
  EXPECT_THAT(text, HasSubstr("\n  /job:ps/task:0      a:1      does not answer, for 6 s  -"));
  EXPECT_THAT(text, HasSubstr("\n  /job:worker/task:0  b:1      alive                     2 min  "
                              "2.5 MB  2.5      12     UNAVAILABLE 3  1             0.1.0    "
                              "00000000000000ff\n"));
  EXPECT_THAT(text, HasSubstr("\n  s1                    /job:worker/task:0  ipv4:10.0.0.9:4711  "
                              "60 s  -     12     1          1 s\n"));
  EXPECT_THAT(text, HasSubstr("\n  new, waits for tasks  /job:worker/task:0"));
  EXPECT_LT(text.find("large"), text.find("small")) << "the largest first";
  EXPECT_THAT(text, HasSubstr("/job:worker/task:0  /job:ps/task:0  17       1.2 KB"));
}

wire::ClusterReport WithReplicas() {
  wire::ClusterReport cluster;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    task { name: '/job:ps/replica:0/task:0' address: 'b:1'
      report { replica { index: 1 role: PRIMARY epoch: 3 feeding: true whole: true behind: 12
                         acknowledged_ms: 4000 waiting_steps: 2 } }
      other_replica { name: '/job:ps/replica:0/task:0' address: 'a:1'
        report { replica { role: FOLLOWER epoch: 3 whole: true } } } }
    task { name: '/job:ps/replica:0/task:1' address: 'c:1'
      report { replica { role: PRIMARY epoch: 1 acknowledged_ms: -1
                         cannot_copy: 'a queue has changed' } }
      other_replica { name: '/job:ps/replica:0/task:1' address: 'd:1'
        error { message: 'refused' } } })",
                                                            &cluster));
  return cluster;
}

TEST(StatusTest, BothProcessesOfAParameterServer) {
  const std::string text = StatusText(WithReplicas());
  EXPECT_THAT(text, HasSubstr("2 tasks, all answer"));
  EXPECT_THAT(text, HasSubstr("\n  /job:ps/task:0, replica  a:1      alive            "));
  EXPECT_THAT(text, HasSubstr("\n  /job:ps/task:1, replica  d:1      does not answer  -"));
  EXPECT_THAT(text, ContainsRegex("\n  /job:ps/task:0 +b:1 +primary +3 +12 changes behind +4 s "
                                  "ago +2\n"));
  EXPECT_THAT(text, ContainsRegex("\n  /job:ps/task:0 +a:1 +follower +3 +- +- +0\n"));
  EXPECT_THAT(text, ContainsRegex("/job:ps/task:1 +c:1 +primary +1 +none: a queue has changed"));
  const std::string metrics = MetricsText(WithReplicas().task(0).report());
  EXPECT_THAT(metrics, HasSubstr("\npenstock_replica_primary 1\n"));
  EXPECT_THAT(metrics, HasSubstr("\npenstock_replica_behind 12\n"));
  EXPECT_THAT(MetricsText(WithReplicas().task(0).other_replica().report()),
              HasSubstr("\npenstock_replica_primary 0\n"));
}

TEST(StatusTest, TheLastCheckpoints) {
  wire::ClusterReport cluster;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    task { name: '/job:ps/replica:0/task:0' report {
      checkpoint { path: 'run/model.ckpt-120' step: 120 age_ms: 61000 }
      checkpoint { path: 'run/best' step: -1 age_ms: 500 } } })",
                                                            &cluster));
  const std::string text = StatusText(cluster);
  EXPECT_THAT(text, ContainsRegex("\n  run/model.ckpt-120 +120 +61 s +/job:ps/task:0\n"));
  EXPECT_THAT(text, ContainsRegex("\n  run/best +- +500 ms +/job:ps/task:0\n"));
  const std::string metrics = MetricsText(cluster.task(0).report());
  EXPECT_THAT(metrics,
              HasSubstr("penstock_checkpoint_age_seconds{checkpoint=\"run/model.ckpt\"} 61\n"));
  EXPECT_THAT(metrics, HasSubstr("penstock_checkpoint_step{checkpoint=\"run/model.ckpt\"} 120\n"));
  EXPECT_THAT(StatusPage(cluster), HasSubstr("<td>run/model.ckpt-120</td>"));
}

TEST(StatusTest, TheStalenessOfUpdates) {
  wire::ClusterReport cluster = Cluster();
  EXPECT_THAT(StatusText(cluster), Not(HasSubstr("Staleness")));
  wire::TaskReport& worker = *cluster.mutable_task(1)->mutable_report();
  EXPECT_THAT(MetricsText(worker), Not(HasSubstr("staleness")));
  wire::StalenessReport& staleness = *worker.mutable_staleness();
  for (const int64_t bound : {0, 1, 3}) staleness.add_bound(bound);
  for (const int64_t count : {2, 0, 5, 1}) staleness.add_count(count);
  staleness.set_sum(22);
  EXPECT_THAT(StatusText(cluster),
              AllOf(HasSubstr("Staleness of updates"),
                    ContainsRegex("/job:worker/task:0 +8 +2.8 +0: 25 %, 2-3: 62 %, 4 and more: "
                                  "12 %")));
  EXPECT_THAT(MetricsText(worker),
              AllOf(HasSubstr("# TYPE penstock_update_staleness histogram"),
                    HasSubstr("penstock_update_staleness_count 8"),
                    HasSubstr("penstock_update_staleness_sum 22"),
                    HasSubstr("penstock_update_staleness_bucket{le=\"1\"} 2"),
                    HasSubstr("penstock_update_staleness_bucket{le=\"3\"} 7"),
                    HasSubstr("penstock_update_staleness_bucket{le=\"+Inf\"} 8")));
}

// A task of another version, or a broken one, may send more counts than its bounds have.
TEST(StatusTest, CountsOfStalenessWithoutABoundAreLeftOut) {
  wire::ClusterReport cluster = Cluster();
  wire::StalenessReport& staleness =
      *cluster.mutable_task(1)->mutable_report()->mutable_staleness();
  for (const int64_t count : {3, 4, 5}) staleness.add_count(count);
  staleness.set_sum(6);
  EXPECT_THAT(StatusText(cluster), ContainsRegex("/job:worker/task:0 +3 +2.0 +0 and more: 100 %"));
  staleness.add_bound(0);
  EXPECT_THAT(StatusText(cluster),
              ContainsRegex("/job:worker/task:0 +7 +0.9 +0: 43 %, 1 and more: 57 %"));
}

TEST(StatusTest, TheMemoryOfTensors) {
  wire::ClusterReport cluster;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    task { name: '/job:ps/replica:0/task:0' address: 'a:1' error { message: 'refused' } }
    task { name: '/job:worker/replica:0/task:0' report {
      allocator { device: '/job:worker/replica:0/task:0/device:CPU:0' name: 'cpu'
                  bytes_in_use: 2500000 peak_bytes_in_use: 9000000 bytes_reserved: 16000000
                  allocations: 77 bytes_limit: 1000000000 }
      session_memory { session: 's1' bytes_in_use: 1000 peak_bytes_in_use: 4000 }
      session_memory { session: 's2' peak_bytes_in_use: 5 bytes_limit: 64000 } } })",
                                                            &cluster));
  const std::string text = MemoryText(cluster);
  EXPECT_THAT(text, ContainsRegex("^/job:ps/task:0 does not answer\n"));
  EXPECT_THAT(text, ContainsRegex("\n  /job:worker/task:0/device:CPU:0 +cpu +2.5 MB +9.0 MB +16.0 "
                                  "MB +77 +1.0 GB\n"));
  EXPECT_THAT(text, ContainsRegex("\n  s1 +/job:worker/task:0 +1.0 KB +4.0 KB +none\n"));
  EXPECT_THAT(text, ContainsRegex("\n  s2 +/job:worker/task:0 +0 B +5 B +64.0 KB\n"));
}

TEST(StatusTest, WhatIsNotThereHasNoTable) {
  wire::ClusterReport cluster;
  cluster.add_task()->mutable_report();
  EXPECT_THAT(StatusText(cluster), Not(HasSubstr("Queues")));
}

TEST(StatusTest, JsonKeepsTheNames) {
  EXPECT_THAT(StatusJson(Cluster()), HasSubstr("\"memory_bytes\":\"2500000\""));
}

// Any client that can run graphs may choose the names of nodes.
TEST(StatusTest, NamesAreNoMarkup) {
  const std::string page = StatusPage(Cluster());
  EXPECT_THAT(page, HasSubstr("<td>&lt;b&gt;q</td>"));
  EXPECT_THAT(page, Not(HasSubstr("<b>")));
  EXPECT_THAT(page, HasSubstr("<tr class=\"lost\"><td>/job:ps/task:0</td>"));
  EXPECT_THAT(page, HasSubstr("/job:ps/task:0 at a:1 does not answer (refused)"));
}

TEST(StatusTest, MetricsOfATask) {
  const std::string text = MetricsText(Cluster().task(1).report());
  for (const char* line : {
           "# TYPE penstock_steps_total counter\npenstock_steps_total 12",
           "penstock_steps_failed_total{code=\"UNAVAILABLE\"} 3",
           "penstock_step_seconds_count 11",
           "penstock_step_seconds_sum 9.5",
           "penstock_step_seconds_bucket{le=\"0.1\"} 4",
           "penstock_step_seconds_bucket{le=\"1\"} 9",
           "penstock_step_seconds_bucket{le=\"+Inf\"} 11",
           "penstock_sessions 1",
           "penstock_sent_bytes_total{from=\"/job:worker/replica:0/task:0\",to=\"/job:ps/"
           "replica:0/task:0\"} 1234",
           "penstock_sent_tensors_total{from=\"/job:worker/replica:0/task:0\",to=\"/job:ps/"
           "replica:0/task:0\"} 17",
           "penstock_memory_bytes 2500000",
           "penstock_variable_bytes{variable=\"large\",container=\"c\",device=\"d\"} 4000000",
           "penstock_queue_elements{queue=\"<b>q\",container=\"c\",device=\"d\"} 3",
           "penstock_peer_alive{peer=\"/job:ps/replica:0/task:0\"} 0",
           "penstock_peer_silent_seconds{peer=\"/job:ps/replica:0/task:0\"} 6.1",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

}  // namespace
}  // namespace penstock
