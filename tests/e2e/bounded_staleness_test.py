#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests asynchronous workers with --staleness_bound: one of two is slow, stopped or killed."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cluster import PENSTOCK, ClusterTest, main  # noqa: E402

# Worker 0 waits for worker 1 only after the first step of worker 1.
FIRST_STEP = r"^\[worker/1\] .*step +\d+"
PERIOD_SECONDS = 0.04


class BoundedStalenessTest(ClusterTest):
    def train(self, steps, *flags, **kwargs):
        return self.start("--model=mlp", "--steps=%d" % steps, "--staleness_bound=2", *flags,
                          ps=1, workers=2, **kwargs)

    def check_result(self, run, seconds):
        self.assertEqual(run.finish(seconds), 0, run.output())
        found = re.findall(r"test accuracy: (0\.\d+)", run.output())
        self.assertTrue(found, run.output())
        self.assertGreater(float(found[-1]), 0.7)

    def slow_down(self, pid):
        """Lets a process run for a quarter of the time, until the test ends."""
        over = threading.Event()

        def pause():
            try:
                while not over.is_set():
                    os.kill(pid, signal.SIGSTOP)
                    over.wait(0.75 * PERIOD_SECONDS)
                    os.kill(pid, signal.SIGCONT)
                    over.wait(0.25 * PERIOD_SECONDS)
            except ProcessLookupError:
                pass

        thread = threading.Thread(target=pause, daemon=True)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(over.set)

    def test_a_fast_worker_waits_for_a_slow_one(self):
        run = self.train(600)
        run.wait_for(FIRST_STEP)
        self.slow_down(run.pid("worker", 1))
        self.check_result(run, 200)
        said = re.findall(r"\[worker/(\d)\].*staleness of (\d+) updates", run.output())
        updates = {int(worker): int(count) for worker, count in said}
        # Without a bound the slow worker would take a fifth of all steps. With the bound, it takes
        # half of the steps after its own first step.
        self.assertGreater(updates[1], 0.3 * (updates[0] + updates[1]), updates)
        waits = re.search(r"\[worker/0\].*staleness bound 2: (\d+) of \d+ steps waited",
                          run.output())
        self.assertTrue(waits, run.output())
        self.assertGreater(int(waits.group(1)), 20)

    def why(self, run):
        ran = subprocess.run([PENSTOCK, "why", "--patience_ms=300",
                              "grpc://" + run.address("worker")],
                             capture_output=True, text=True, timeout=60, check=False)
        return ran.stdout + ran.stderr

    def test_a_stopped_worker_is_named_and_left_behind(self):
        run = self.train(600, "--staleness_timeout=8")
        _, line = run.wait_for(FIRST_STEP)
        stopped = run.pid("worker", 1)
        os.kill(stopped, signal.SIGSTOP)
        try:
            self.until(lambda: self.why(run), "waits for worker 1 (/job:worker/task:1), after step",
                       "(WorkerClocksAdvance)")
            # The chief is done when it has printed the test accuracy.
            run.wait_for(r"test accuracy: 0\.", start=line, seconds=120)
        finally:
            os.kill(stopped, signal.SIGCONT)
        self.check_result(run, 60)

    def test_a_killed_worker_comes_back(self):
        run = self.train(1200, "--staleness_timeout=5", restarts=1)
        run.wait_for(FIRST_STEP)
        run.kill("worker", 1)
        _, line = run.wait_for("worker/1 was killed by signal 9; starting it again")
        run.wait_for(FIRST_STEP, start=line)
        self.check_result(run, 180)

    def test_records_that_are_applied_exactly_once(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([PENSTOCK, "convert", folder, "--shards=2"], capture_output=True,
                           timeout=60, check=True)
            run = self.train(1200, "--staleness_timeout=5", "--input=tfrecord",
                             "--data_dir=" + folder, restarts=2)
            run.wait_for(FIRST_STEP)
            run.kill("worker", 1)
            _, line = run.wait_for("worker/1 was killed by signal 9; starting it again")
            _, line = run.wait_for(FIRST_STEP, start=line)
            run.kill("ps", 0)
            _, line = run.wait_for(r"^\[worker/0\] .*restored", start=line)
            run.wait_for(r"^\[worker/1\] .*going on at step", start=line)
            self.check_result(run, 180)

    def test_a_ps_with_replicas(self):
        run = self.train(1200, "--staleness_timeout=5", restarts=3,
                         run_flags=["--ps_replicas=2"])
        run.wait_for(FIRST_STEP)
        _, line = run.wait_for("its follower .* has all of its state")
        run.kill("ps", 0, 0)
        _, line = run.wait_for("has taken over as the primary", start=line)
        _, line = run.wait_for(r"^\[worker/1\] .*going on at step", start=line)
        run.kill("worker", 1)
        _, line = run.wait_for("worker/1 was killed by signal 9; starting it again", start=line)
        run.wait_for(FIRST_STEP, start=line)
        self.check_result(run, 180)
        self.assertNotIn("restored", run.output())


if __name__ == "__main__":
    main()
