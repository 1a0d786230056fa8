#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that records that a worker reads never pass through the client: counts bytes on the
client's connection and in the worker."""

import contextlib
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cluster import PENSTOCK, TRAIN, ClusterTest, free_ports, main  # noqa: E402

BATCH = 128
PICTURE_BYTES = 784
DEADLINE_SECONDS = 120  # time limit for the client's first steps


class CountingProxy:
    """Forwards connections to an address, and counts their bytes in both directions."""

    def __init__(self, host, port):
        self.to, self.bytes, self.lock = (host, port), 0, threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self.to)
            except OSError:  # the server does not listen yet; the client retries
                client.close()
                continue
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source, sink):
        with contextlib.suppress(OSError):  # one of the two connections is closed
            while data := source.recv(1 << 16):
                with self.lock:
                    self.bytes += len(data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def count(self):
        with self.lock:
            return self.bytes


def bytes_read(pid):
    """Returns the bytes that the process has read from files."""
    with open("/proc/%d/io" % pid) as f:
        return int(re.search(r"rchar: (\d+)", f.read()).group(1))


class InputTest(ClusterTest):
    def serve(self, hosts, job):
        command = [PENSTOCK, "server", "--job_name=" + job, "--task_index=0", *hosts]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        return server

    def train(self, *flags):
        """Returns the bytes on the client's connection, and the bytes that the worker read from
        files, per step from the first steps to the last."""
        ps, worker = free_ports(2)
        hosts = ["--ps_hosts=127.0.0.1:%d" % ps, "--worker_hosts=127.0.0.1:%d" % worker]
        self.serve(hosts, "ps")
        server = self.serve(hosts, "worker")
        proxy = CountingProxy("127.0.0.1", worker)
        self.addCleanup(proxy.listener.close)
        command = [TRAIN, "--job_name=worker", "--task_index=0", *hosts, "--model=mlp",
                   "--steps=1000000", "--server=grpc://127.0.0.1:%d" % proxy.port,
                   "--batch_size=%d" % BATCH, *flags]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) as client:
            self.addCleanup(client.kill)
            deadline = threading.Timer(DEADLINE_SECONDS, client.kill)
            self.addCleanup(deadline.cancel)
            deadline.start()
            seen, said = [], []
            for line in client.stdout:
                said.append(line)
                match = re.search(r"step +(\d+)", line)
                if match:
                    seen.append((int(match.group(1)), proxy.count(), bytes_read(server.pid)))
                if match and seen[-1][0] - seen[0][0] >= 200:
                    break
            else:
                self.fail("the client ended:\n" + "".join(said))
            client.kill()
        (first, sent0, read0), (last, sent1, read1) = seen[0], seen[-1]
        return (sent1 - sent0) / (last - first), (read1 - read0) / (last - first)

    def test_records_do_not_pass_through_the_client(self):
        with tempfile.TemporaryDirectory() as folder:
            made = subprocess.run([PENSTOCK, "convert", folder, "--shards=3"], capture_output=True,
                                  text=True, timeout=60, check=False)
            self.assertEqual(made.returncode, 0, made.stderr)
            passed, read = self.train("--input=tfrecord", "--data_dir=" + folder)
        print("tfrecord, per step: %.0f bytes on the client's connection, %.0f read by the worker" %
              (passed, read))
        # When the counting begins, the queue may already hold the input of some steps.
        self.assertGreater(read, BATCH * PICTURE_BYTES / 2)
        self.assertLess(passed, 2000)

    def test_pictures_that_are_fed_do(self):
        passed, _ = self.train("--input=idx")
        print("idx, per step: %.0f bytes on the client's connection" % passed)
        self.assertGreater(passed, BATCH * PICTURE_BYTES)


if __name__ == "__main__":
    main()
