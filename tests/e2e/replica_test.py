#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills parameter servers with replicas during a training. Tests that the follower takes over, that
nothing is restored from a checkpoint, and that the weights are those of an undisturbed training."""

import os
import random
import re
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cluster import PENSTOCK, ClusterTest, main  # noqa: E402

PROGRAM = "tests/e2e/replica_train"
KILLS = int(os.environ.get("REPLICA_TEST_KILLS", "6"))
SEED = int(os.environ.get("REPLICA_TEST_SEED", "1"))
TAKEN_OVER = r"task:%d, replica (\d): has taken over as the primary"
WHOLE = r"task:%d, replica \d: its follower .* has all of its state"


class ReplicaTest(ClusterTest):
    def train(self, *flags, ps=2, replicas=2, restarts=0):
        return self.start(*flags, program=PROGRAM, ps=ps, workers=1, restarts=restarts,
                          run_flags=["--ps_replicas=%d" % replicas])

    def weights(self, run):
        return re.search(r"weights ([0-9a-f]{16})", run.output()).group(1)

    def kill_primaries(self, *flags, ps, kills):
        undisturbed = self.train(*flags, ps=ps, replicas=1)
        self.assertEqual(undisturbed.finish(120 + 10 * kills), 0, undisturbed.output())
        expected = self.weights(undisturbed)

        run = self.train(*flags, "--step_millis=10", ps=ps, restarts=2 * kills)
        choose = random.Random(SEED)
        primaries = [0] * ps
        start = [0] * ps
        took = []  # seconds from each kill to the end of the take-over
        for _ in range(kills):
            victim = choose.randrange(ps)
            _, start[victim] = run.wait_for(WHOLE % victim, start=start[victim])
            run.wait_for(r"step \d", start=start[victim])
            time.sleep(choose.random() * 0.3)
            killed = time.monotonic()
            run.kill("ps", victim, primaries[victim])
            match, start[victim] = run.wait_for(TAKEN_OVER % victim, seconds=15,
                                                start=start[victim])
            took.append(time.monotonic() - killed)
            primaries[victim] = int(match.group(1))
        self.assertEqual(run.finish(240 + 10 * kills), 0, run.output())
        self.assertEqual(self.weights(run), expected, run.output())
        self.assertNotRegex(run.output(), r"restored|lost with their task")
        print("%d kills, take-over: median %.2f s, slowest %.2f s, %s" %
              (kills, statistics.median(took), max(took),
               re.search(r"longest step .*", run.output()).group()), flush=True)
        self.assertLess(max(took), 2, "a follower takes over within two seconds")

    def test_two_ps_with_exactly_once(self):
        self.kill_primaries("--steps=%d" % (150 * KILLS), ps=2, kills=KILLS)

    def test_one_ps_with_an_optimizer_alone(self):
        self.kill_primaries("--steps=%d" % (150 * KILLS), "--plain", ps=1, kills=KILLS)

    def test_followers_come_and_go(self):
        undisturbed = self.train("--steps=400", replicas=1)
        self.assertEqual(undisturbed.finish(120), 0, undisturbed.output())
        run = self.train("--steps=400", "--step_millis=10", restarts=3)
        line = 0
        for _ in range(3):
            _, line = run.wait_for(WHOLE % 1, start=line)
            run.kill("ps", 1, 1)
            _, line = run.wait_for(r"task:1, replica 0: lost its follower", start=line)
        self.assertEqual(run.finish(120), 0, run.output())
        self.assertEqual(self.weights(run), self.weights(undisturbed), run.output())
        self.assertNotRegex(run.output(), r"step after \d+ failed", "a follower's death fails none")

    def test_status_shows_who_is_the_primary(self):
        run = self.train("--steps=1000000", "--step_millis=10", ps=1, restarts=1)
        run.wait_for(WHOLE % 0)
        status = [PENSTOCK, "status", "grpc://" + run.address("worker")]

        def table():
            ran = subprocess.run(status, capture_output=True, text=True, timeout=60, check=True)
            return ran.stdout

        row = r"(?m)^  /job:ps/task:0 +(\S+) +%s +(\d+)"
        said = self.until(table, " primary ", " follower ")
        first, follower = (re.search(row % role, said) for role in ("primary", "follower"))
        self.assertRegex(said, r"primary .* (has everything|changes behind) ")
        run.kill("ps", 0, 0)
        run.wait_for(TAKEN_OVER % 0, seconds=15)
        second = re.search(row % "primary", self.until(table, " primary "))
        self.assertEqual(second.group(1), follower.group(1), "the other process")
        self.assertGreater(int(second.group(2)), int(first.group(2)), "a later epoch")
        ended = subprocess.run([PENSTOCK, "shutdown", "grpc://" + run.address("worker")],
                               capture_output=True, text=True, timeout=60, check=False)
        self.assertIn(follower.group(1) + " has ended", ended.stdout)

    def test_a_primary_that_was_only_frozen_is_fenced(self):
        undisturbed = self.train("--steps=600", replicas=1)
        self.assertEqual(undisturbed.finish(120), 0, undisturbed.output())
        run = self.train("--steps=600", "--step_millis=10", restarts=2)
        _, line = run.wait_for(WHOLE % 0)
        run.wait_for(r"step \d\d", start=line)
        pid = run.kill("ps", 0, 0, signal.SIGSTOP)
        _, line = run.wait_for(TAKEN_OVER % 0, seconds=15, start=line)
        run.wait_for(r"step \d", seconds=30, start=line)
        os.kill(pid, signal.SIGCONT)
        run.wait_for(r"ps/0.0 ended with code 143; starting it again", seconds=15, start=line)
        self.assertEqual(run.finish(120), 0, run.output())
        self.assertEqual(self.weights(run), self.weights(undisturbed), run.output())


if __name__ == "__main__":
    main()
