// SPDX-License-Identifier: Apache-2.0
//
// A program that runs one task of a cluster, for tests that kill, stop and restart it. Its
// arguments are ps_hosts, worker_hosts, job_name and task_index, in this order.
#include <cstdio>
#include <cstdlib>

#include "distributed/rpc/server.h"
#include "distributed/testing/test_cluster.h"

int main(int argc, char** argv) {
  using namespace penstock;
  if (argc != 5) return 2;
  const auto config = TaskConfigFromFlags({.ps_hosts = argv[1],
                                           .worker_hosts = argv[2],
                                           .job_name = argv[3],
                                           .task_index = std::atoi(argv[4])});
  CHECK_OK(config.status());
  ServerOptions options = TestCluster::Quick();
  options.task = *config;
  auto server = Server::Create(options);
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", server.status().ToString().c_str());
    return 1;
  }
  CHECK_OK((*server)->Start());
  std::printf("serving\n");
  std::fflush(stdout);
  (*server)->Join();
  return 0;
}
