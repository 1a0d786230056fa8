#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that, when a task is killed during training, all others name the lost task, wait, and
continue; and that no task counts as lost because all cores are busy."""

import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cluster import ClusterTest, main  # noqa: E402

BUSY_SECONDS = float(os.environ.get("PENSTOCK_BUSY_SECONDS", "12"))
STEP = r"^\[worker/0\] .*step +(\d+)"


class RecoveryTest(ClusterTest):
    def test_a_ps_and_a_worker_killed(self):
        run = self.start("--model=mlp", "--steps=2500", "--save_every_steps=100", ps=2, workers=2,
                         restarts=4)
        run.wait_for(r"step +[1-9]\d\d")

        run.kill("ps", 1)
        lost = time.monotonic()
        _, line = run.wait_for(r"worker/[01]\].*/job:ps/replica:0/task:1", seconds=15)
        self.assertLess(time.monotonic() - lost, 10, "the loss is named within ten seconds")
        _, line = run.wait_for(r"worker/0\].*[Rr]estor", seconds=60, start=line)
        run.wait_for(STEP, seconds=60, start=line)

        run.kill("worker", 1)
        _, line = run.wait_for(r"worker/1 was killed by signal 9; starting it again", seconds=15)
        run.wait_for(STEP, seconds=60, start=line)

        self.assertEqual(run.finish(180), 0, run.output())
        accuracy = re.findall(r"test accuracy: (0\.\d+)", run.output())
        self.assertGreater(float(accuracy[-1]), 0.8, run.output())

    def test_the_chief_killed(self):
        run = self.start("--model=mlp", "--steps=1500", "--save_every_steps=100", ps=1, workers=2,
                         restarts=2)
        run.wait_for(r"step +[1-9]\d\d")
        run.kill("worker", 0)
        _, line = run.wait_for(r"worker/0 was killed by signal 9; starting it again", seconds=15)
        run.wait_for(STEP, seconds=60, start=line)
        self.assertEqual(run.finish(180), 0, run.output())

    def test_without_restarts_the_run_fails_and_says_who(self):
        run = self.start("--model=mlp", "--steps=1000000", ps=1, workers=1)
        run.wait_for(r"step +[1-9]")
        run.kill("ps", 0)
        self.assertEqual(run.finish(60), 128 + 9)
        self.assertIn("ps/0 was killed by signal 9", run.output())

    def test_busy_cores_lose_no_task(self):
        run = self.start("--model=mlp", "--steps=1000000", "--save_every_steps=100", ps=2,
                         workers=2)
        _, line = run.wait_for(r"step +[1-9]")
        for _ in range(2 * os.cpu_count()):
            busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            self.addCleanup(busy.wait)
            self.addCleanup(busy.kill)
        time.sleep(BUSY_SECONDS)
        run.wait_for(STEP, start=len(run.lines))
        said = "\n".join(run.lines[line:])
        self.assertNotRegex(said, r"task lost|heartbeat|cannot be reached|failed:|waiting:", said)


if __name__ == "__main__":
    main()
