#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests servers whose addresses in the cluster are not their own: a gateway's address, or a name
that cannot be resolved yet."""

import os
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cluster import PENSTOCK, READER, TRAIN, ClusterTest, free_ports, main  # noqa: E402

GATEWAY = "203.0.113.7"  # an address reserved by RFC 5737; no host has it


class AddressesTest(ClusterTest):
    def serve(self, *flags):
        """Starts `penstock server`; returns the two lines that it prints when it serves."""
        server = subprocess.Popen([PENSTOCK, "server", *flags], stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        return server.stdout.readline() + server.stdout.readline()

    def test_a_gateways_address(self):
        port, = free_ports(1)
        task = ["--job_name=worker", "--task_index=0", "--worker_hosts=%s:%d" % (GATEWAY, port)]
        said = self.serve(*task)
        self.assertIn("serves at grpc://%s:%d\n" % (GATEWAY, port), said)
        self.assertRegex(said, r"listens at (\[::\]|0\.0\.0\.0):%d\n" % port)
        trained = subprocess.run(
            [TRAIN, *task, "--server=grpc://127.0.0.1:%d" % port, "--steps=3", "--model=mlp",
             "--checkpoint_dir=" + tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))],
            capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(trained.returncode, 0, trained.stderr)
        self.assertIn("test accuracy: ", trained.stdout)

    def test_one_interface_only(self):
        port, = free_ports(1)
        said = self.serve("--job_name=worker", "--task_index=0", "--listen_address=127.0.0.1",
                          "--worker_hosts=%s:%d" % (GATEWAY, port))
        self.assertIn("listens at 127.0.0.1:%d\n" % port, said)
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port), timeout=10).close()

    def test_a_host_that_does_not_resolve_is_named(self):
        port, = free_ports(1)
        self.serve("--job_name=ps", "--task_index=0",
                   "--ps_hosts=%s:%d,late-ps.invalid:2222" % (GATEWAY, port))
        read = subprocess.run([READER, "--target=grpc://127.0.0.1:%d" % port], capture_output=True,
                              text=True, timeout=120, check=False)
        self.assertNotEqual(read.returncode, 0)
        self.assertIn("/job:ps/replica:0/task:1 at late-ps.invalid:2222", read.stderr)


if __name__ == "__main__":
    main()
