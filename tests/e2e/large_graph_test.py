#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests graphs that are larger than the messages between processes."""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cluster import PENSTOCK, ClusterTest, free_ports, main  # noqa: E402

LARGE_CONSTANT = "tests/e2e/large_constant"


class LargeGraphTest(ClusterTest):
    def serve(self, *flags):
        """Starts a ps and a worker; returns the worker's address."""
        ps, worker = ("127.0.0.1:%d" % port for port in free_ports(2))
        for job in ("ps", "worker"):
            server = subprocess.Popen(
                [PENSTOCK, "server", "--job_name=" + job, "--task_index=0", "--ps_hosts=" + ps,
                 "--worker_hosts=" + worker, *flags], stdout=subprocess.PIPE, text=True)
            self.addCleanup(server.stdout.close)
            self.addCleanup(server.wait)
            self.addCleanup(server.terminate)
            self.assertIn("serves at", server.stdout.readline())
        return worker

    def run_constant(self, address, *flags):
        return subprocess.run([LARGE_CONSTANT, "--target=grpc://" + address, *flags],
                              capture_output=True, text=True, timeout=120, check=False)

    def test_a_constant_larger_than_a_message(self):
        address = self.serve("--max_message_bytes=2m")
        path = os.path.join(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")), "graph.pb")
        ran = self.run_constant(address, "--bytes=20000000", "--message_bytes=1000000",
                                "--file=" + path)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("done\n", ran.stdout)
        # A graph that the client sends whole is refused by the master's limit.
        ran = self.run_constant(address, "--bytes=20000000")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("--max_message_bytes", ran.stderr)

    def test_a_constant_larger_than_the_memory_of_a_task(self):
        address = self.serve("--memory_limit=100m")
        ran = self.run_constant(address, "--bytes=200000000", "--message_bytes=1000000")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("no memory for a tensor float[50000000]", ran.stderr)
        # The task frees the first constant if the second one is too large.
        ran = self.run_constant(address, "--bytes=60000000", "--more_bytes=200000000",
                                "--message_bytes=1000000")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("no memory for a tensor uint8[200000000]", ran.stderr)
        ran = self.run_constant(address, "--bytes=45000000", "--message_bytes=1000000")
        self.assertEqual(ran.returncode, 0, ran.stderr)


if __name__ == "__main__":
    main()
