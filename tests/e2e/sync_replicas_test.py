#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests synchronous workers: one of three is stopped or killed, and the others continue."""

import os
import re
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cluster import ClusterTest, main  # noqa: E402

STEP = r"^\[worker/0\] .*step +(\d+)"


class SyncReplicasTest(ClusterTest):
    def train(self, steps, *flags, **kwargs):
        return self.start("--model=mlp", "--steps=%d" % steps, "--strategy=replicas", *flags,
                          ps=1, workers=3, **kwargs)

    def accuracy(self, run):
        found = re.findall(r"test accuracy: (0\.\d+)", run.output())
        self.assertTrue(found, run.output())
        return float(found[-1])

    def steps_after(self, run, line, more):
        """Waits until the chief has taken `more` steps since line number `line`; returns the number
        of the last line that it read."""
        match, line = run.wait_for(STEP, start=line)
        first = int(match.group(1))
        while int(match.group(1)) < first + more:
            match, line = run.wait_for(STEP, start=line + 1, seconds=60)
        return line

    def test_all_of_three(self):
        run = self.train(150)
        self.assertEqual(run.finish(), 0, run.output())
        self.assertGreater(self.accuracy(run), 0.7)

    def test_a_stopped_worker_holds_nobody_up(self):
        run = self.train(600, "--replicas_to_aggregate=2")
        _, line = run.wait_for(STEP)
        stopped = run.pid("worker", 2)
        os.kill(stopped, signal.SIGSTOP)
        try:
            # The chief is done when it has printed the test accuracy.
            run.wait_for(r"test accuracy: 0\.", start=line, seconds=120)
        finally:
            os.kill(stopped, signal.SIGCONT)
        self.assertEqual(run.finish(60), 0, run.output())
        self.assertGreater(self.accuracy(run), 0.7)

    def test_a_killed_worker_comes_back(self):
        run = self.train(1500, "--replicas_to_aggregate=2", restarts=1)
        _, line = run.wait_for(STEP)
        run.kill("worker", 1)
        self.steps_after(run, line, 50)
        self.assertEqual(run.finish(180), 0, run.output())
        self.assertIn("worker/1 was killed by signal 9; starting it again", run.output())
        self.assertGreater(self.accuracy(run), 0.7)


if __name__ == "__main__":
    main()
