#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that every mistake in the flags gives one line that names the flag, and exit code 2."""

import glob
import os
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cluster import PENSTOCK, TRAIN, ClusterTest, main  # noqa: E402

HOSTS = ["--ps_hosts=127.0.0.1:0", "--worker_hosts=127.0.0.1:0,127.0.0.1:0"]


class FlagsTest(ClusterTest):
    def mistake(self, program, arguments, named, env=None):
        with self.subTest(program=program[-1], arguments=arguments):
            done = subprocess.run(program + arguments, capture_output=True, text=True, timeout=30,
                                  env=dict(os.environ, **(env or {})), check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            lines = [line for line in done.stderr.splitlines() if line]
            self.assertEqual(len(lines), 1, done.stderr)
            self.assertIn(named, lines[0])

    def test_cluster_flags(self):
        for program in ([TRAIN], [PENSTOCK, "server"]):
            for arguments, named in [
                    (HOSTS + ["--job_name=boss", "--task_index=0"], "--job_name"),
                    (HOSTS + ["--job_name=worker", "--task_index=2"], "--task_index"),
                    (HOSTS + ["--job_name=worker", "--task_index=-1"], "--task_index"),
                    (HOSTS + ["--job_name=worker", "--task_index=0", "--protocol=pigeon"],
                     "--protocol"),
                    (["--ps_hosts=nowhere", "--worker_hosts=127.0.0.1:0", "--job_name=ps",
                      "--task_index=0"], "--ps_hosts"),
                    (["--ps_hosts=127.0.0.1:99999", "--worker_hosts=127.0.0.1:0", "--job_name=ps",
                      "--task_index=0"], "--ps_hosts"),
                    (["--ps_hosts=127.0.0.1:71,127.0.0.1:71", "--worker_hosts=127.0.0.1:0",
                      "--job_name=ps", "--task_index=0"], "127.0.0.1:71"),
            ]:
                self.mistake(program, arguments, named)

    def test_staleness_bound(self):
        task = HOSTS + ["--job_name=worker", "--task_index=0"]
        for flags, named in (
                (task + ["--staleness_bound=-1"], "--staleness_bound=-1: must be at least 0"),
                (task + ["--staleness_bound=1", "--staleness_timeout=-2"],
                 "--staleness_timeout=-2"),
                (task + ["--staleness_bound=1", "--sync"], "--staleness_bound and --sync"),
                (task + ["--staleness_bound=1", "--strategy=replicas"],
                 "--staleness_bound and --strategy"),
                (task + ["--staleness_timeout=5"],
                 "--staleness_timeout: needs --staleness_bound"),
                (task[1:] + ["--staleness_bound=1"],
                 "--staleness_bound: needs parameter servers"),
                (["--staleness_bound=1"], "--staleness_bound: needs workers")):
            self.mistake([TRAIN], flags, named)

    def test_deterministic(self):
        task = HOSTS + ["--job_name=worker", "--task_index=0", "--deterministic"]
        saves = ["--checkpoint_dir=/tmp/nowhere"]
        for flags, named in (
                (task + ["--sync"], "--deterministic: goes back to checkpoints"),
                (task + saves, "--deterministic: workers that train by themselves"),
                (task + saves + ["--strategy=replicas"], "--deterministic and --strategy"),
                (saves + ["--deterministic", "--evaluate"], "--deterministic and --evaluate"),
                (task + saves + ["--sync", "--concurrent_steps=2"],
                 "--deterministic and --concurrent_steps")):
            self.mistake([TRAIN], flags, named)

    def test_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            arguments = ["--ps_hosts=" + address, "--worker_hosts=127.0.0.1:0", "--job_name=ps",
                         "--task_index=0"]
            for program in ([TRAIN], [PENSTOCK, "server"]):
                self.mistake(program, arguments, address)

    def test_listen_address(self):
        task = HOSTS + ["--job_name=worker", "--task_index=0"]
        for program in ([TRAIN], [PENSTOCK, "server"]):
            for address in ("eth 0", "203.0.113.7", "no-such-host.invalid:0", "127.0.0.1:x"):
                self.mistake(program, task + ["--listen_address=" + address], "--listen_address")
        self.mistake([TRAIN], ["--listen_address=127.0.0.1"], "--listen_address")
        self.mistake([TRAIN], task + ["--server=grpc://127.0.0.1:1", "--listen_address=127.0.0.1"],
                     "--listen_address")

    def test_intervals_that_make_no_sense(self):
        task = ["server", *HOSTS, "--job_name=worker", "--task_index=0"]
        for flag, named in (
                ("--heartbeat_ms=0", "--heartbeat_ms: 0, expected 50 to 20000 ms"),
                ("--heartbeats_missed_max=1", "--heartbeats_missed_max: 1, expected 2 to 100"),
                ("--keepalive_ms=1e3", "--keepalive_ms"),
                ("--keepalive_timeout_ms=100",
                 "--keepalive_timeout_ms: 100, expected at least --keepalive_ms, which is 2000")):
            self.mistake([PENSTOCK], task + [flag], named)

    def test_intervals_are_printed_at_the_start(self):
        said = subprocess.run(
            [PENSTOCK, "server", *HOSTS, "--job_name=worker", "--task_index=0",
             "--heartbeat_ms=500", "--until_stdin_ends"], stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=60, check=True)
        self.assertIn("sends heartbeats every 500 ms: a task that misses 3 is lost, within 2000 ms",
                      said.stdout)

    def test_tf_config(self):
        self.mistake([TRAIN], [], "TF_CONFIG", {"TF_CONFIG": "{not json"})
        self.mistake([TRAIN], [], "TF_CONFIG", {"TF_CONFIG": '{"cluster": {"ps": [3]}}'})

    def test_unknown_flags_and_commands(self):
        for program, arguments in [([TRAIN], ["--modle=mlp"]), ([TRAIN], ["--model=huge"]),
                                   ([TRAIN], ["--steps=many"])]:
            self.mistake(program, arguments, arguments[0].split("=")[0])
        for arguments, named in [(["dance"], "dance"), ([], "subcommand"),
                                 (["server", "--ps_host=x:1"], "--ps_host"),
                                 (["run", "--ps=999", "--", "true"], "--ps"),
                                 (["graph", "g.pb", "--after=lunch"], "--after")]:
            self.mistake([PENSTOCK], arguments, named)

    def test_version(self):
        for arguments in (["--version"], ["version"]):
            done = subprocess.run([PENSTOCK] + arguments, capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, r"^penstock [0-9]+\.[0-9]+\.[0-9]+\n")
            for part in ("GraphDefs of producer 22", " ops, ", "CUDA", "gRPC 1.", "Protobuf 3."):
                self.assertIn(part, done.stdout)

    def test_flags_of_checkpoint_that_come_together(self):
        folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        subprocess.run([TRAIN, "--model=mlp", "--steps=1", "--checkpoint_dir=" + folder],
                       capture_output=True, timeout=60, check=True)
        before, after = (os.path.join(folder, "model.ckpt-%d" % step) for step in (0, 1))

        def diff(*flags):
            return subprocess.run([PENSTOCK, "checkpoint", before, "--diff=" + after, *flags],
                                  capture_output=True, text=True, timeout=60, check=False)

        self.assertIn("every byte of both is as it was written", diff("--verify").stdout)
        for shard in glob.glob(after + ".data-*"):
            with open(shard, "r+b") as file:
                first = file.read(1)
                file.seek(0)
                file.write(bytes([first[0] ^ 1]))
        self.assertNotIn("differ", diff("--verify").stdout)
        self.assertIn("the checksum is wrong", diff("--verify").stderr)
        self.mistake([PENSTOCK], ["checkpoint", before, "--diff=" + after, "--tensor=w"],
                     "--tensor excludes --diff")

    def test_ops_are_found_in_any_case(self):
        def ops(wanted):
            return subprocess.run([PENSTOCK, "ops", "--grep=" + wanted], capture_output=True,
                                  text=True, check=False)

        self.assertIn("\nMaxPool ", "\n" + ops("maxpool").stdout)
        self.assertEqual(ops("maxpool").stdout, ops("MaxPool").stdout)
        for wanted, named in [("MatMull", "'MatMul'"), ("maxpooling", "MaxPool")]:
            done = ops(wanted)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertEqual(done.stdout, "")
            self.assertRegex(done.stderr, "^penstock: --grep=" + wanted + ": .*" + named)

    def test_help_teaches(self):
        for arguments in (["--help"], ["run", "--help"], ["server", "--help"], ["graph", "--help"],
                          ["checkpoint", "--help"], ["ops", "--help"]):
            done = subprocess.run([PENSTOCK] + arguments, capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 0, arguments)
            self.assertIn("penstock", done.stdout)


if __name__ == "__main__":
    main()
