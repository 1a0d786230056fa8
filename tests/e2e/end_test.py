#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests `penstock shutdown`, which ends a cluster, and `penstock reset`, which drops its state."""

import glob
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cluster import PENSTOCK, StuckCluster, free_ports, main  # noqa: E402


def command(*arguments):
    return subprocess.run([PENSTOCK, *arguments], capture_output=True, text=True, timeout=120)


class EndTest(StuckCluster):
    def test_shutdown_ends_all_tasks(self):
        self.start_servers()
        ran = command("shutdown", self.target, "--reason=the experiment is over")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        for task in "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:1":
            self.assertRegex(ran.stdout, task + r" at 127\.0\.0\.1:\d+ has ended")
        for process in self.tasks.values():
            self.assertEqual(process.wait(30), 0)
            self.assertIn("the experiment is over", process.stdout.read())

    def test_shutdown_of_one_task(self):
        self.start_servers()
        ran = command("shutdown", self.target, "--one_task")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(ran.stdout.count("has ended"), 1)
        self.assertEqual(self.tasks["worker", 0].wait(30), 0)
        self.assertIsNone(self.tasks["ps", 0].poll())
        self.assertIsNone(self.tasks["worker", 1].poll())

    def test_a_task_that_cannot_be_told_is_named(self):
        self.start_servers()
        self.tasks["ps", 0].kill()
        ran = command("shutdown", self.target)
        self.assertEqual(ran.returncode, 1)
        self.assertRegex(ran.stderr, r"/job:ps/replica:0/task:0 at \S+ was not told to end: ")
        self.assertEqual(ran.stdout.count("has ended"), 2)

    def test_nobody_there(self):
        target = "grpc://127.0.0.1:%d" % free_ports(1)[0]
        for name in "shutdown", "reset":
            begun = time.monotonic()
            ran = command(name, target)
            self.assertLess(time.monotonic() - begun, 10)
            self.assertEqual(ran.returncode, 1)
            self.assertIn(target[len("grpc://"):], ran.stderr)
            self.assertEqual(ran.stderr.count("\n"), 1, ran.stderr)
            self.assertEqual(command(name, "nowhere").returncode, 2)

    def test_training_that_is_shut_down_saves(self):
        run = self.start("--model=mlp", "--steps=10000000", "--save_every_steps=10000000", ps=1)
        run.wait_for(r"step +[1-9]\d")
        target = "grpc://" + run.address("worker")
        # The checkpoint of the first step is written at the start.
        self.until(lambda: command("status", target).stdout, "Last checkpoints",
                   run.folder + "/model.ckpt-")
        ran = command("shutdown", target)
        self.assertEqual(ran.returncode, 0, ran.stderr + run.output())
        # 143: a signal has ended the training, which may be restarted
        self.assertEqual(run.finish(60), 143, run.output())
        # `penstock run` ends when the first task ends, so the chief's last lines may be missing.
        steps = re.findall(r"worker/0\] /job:worker/task:0 +step (\d+)/", run.output())
        saved = [int(path.rsplit("-", 1)[1].split(".")[0])
                 for path in glob.glob(run.folder + "/model.ckpt-*.index")]
        # There is a later checkpoint than that of the first step.
        self.assertGreaterEqual(max(saved, default=-1), max(2, int(steps[-1])), run.output())

    def test_reset_closes_sessions(self):
        self.start_servers()
        client = self.hang("dequeue")
        self.until(lambda: command("status", self.target).stdout, "1 session, 1 step in flight")
        ran = command("reset", self.target)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("its sessions are closed", ran.stdout)
        self.assertEqual(client.wait(30), 1)
        said = command("status", self.target).stdout
        self.assertIn("0 sessions", said)
        self.assertNotIn("FIFOQueue", said)


if __name__ == "__main__":
    main()
