#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests --strategy=allreduce: workers hold all variables themselves and average their gradients."""

import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cluster import PENSTOCK, TRAIN, ClusterTest, main  # noqa: E402

FLAGS = ["--strategy=allreduce", "--batch_size=64"]


def checksums(folder):
    """Returns the bytes of the newest checkpoint's data file."""
    with open(os.path.join(folder, "checkpoint")) as f:
        newest = re.search(r'model_checkpoint_path: "(.*)"', f.read()).group(1)
    with open(os.path.join(folder, newest + ".data-00000-of-00001"), "rb") as f:
        return f.read()


class AllReduceTest(ClusterTest):
    def train(self, *flags, model="mlp", workers=2):
        run = self.start(*FLAGS, "--model=" + model, *flags, ps=0, workers=workers)
        self.assertEqual(run.finish(), 0, run.output())
        return run

    def await_checkpoint(self, run):
        """Waits for the first checkpoint of a running training."""
        end = time.monotonic() + 60
        while not glob.glob(os.path.join(run.folder, "model.ckpt-[1-9]*.index")):
            self.assertLess(time.monotonic(), end, run.output())
            time.sleep(0.01)

    def accuracy(self, run):
        return float(re.search(r"test accuracy: (0\.\d+)", run.output()).group(1))

    def losses(self, run):
        return [line for line in run.lines if "loss" in line]

    def test_two_runs_have_the_same_bits_and_they_are_those_of_one_big_batch(self):
        runs = [self.train("--steps=200") for _ in range(2)]
        first, second = [checksums(run.folder) for run in runs]
        self.assertEqual(first, second)
        with tempfile.TemporaryDirectory() as folder:
            alone = subprocess.run(
                [TRAIN, "--model=mlp", "--batch_size=128", "--steps=200",
                 "--checkpoint_dir=" + folder],
                capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual(alone.returncode, 0, alone.stderr)
            by_hand = float(re.search(r"test accuracy: (0\.\d+)", alone.stdout).group(1))
        # Each step uses the same pictures, summed in another order.
        self.assertAlmostEqual(self.accuracy(runs[0]), by_hand, delta=0.02)
        self.assertGreater(self.accuracy(runs[0]), 0.7)

    def test_a_worker_that_is_killed_ends_the_step_for_all_and_training_goes_on(self):
        whole = self.train("--steps=400", "--save_every_steps=50", workers=3)
        run = self.start(*FLAGS, "--model=mlp", "--steps=400", "--save_every_steps=50", ps=0,
                         workers=3, restarts=1)
        self.await_checkpoint(run)
        run.kill("worker", 2)
        killed = time.monotonic()
        for worker in (0, 1):
            run.wait_for(r"worker/%d.*failed: .*job:worker/replica:0/task:2" % worker, seconds=8)
        self.assertLess(time.monotonic() - killed, 8)
        self.assertEqual(run.finish(), 0, run.output())
        self.assertIn("restored", run.output())
        # Batches depend only on the step, and sums only on their summands, so the bits are the
        # same.
        self.assertEqual(checksums(run.folder), checksums(whole.folder))

    def test_gradients_are_averaged_while_the_backward_pass_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            self.train("--steps=60", "--trace_file=" + path, model="convnet")
            with open(path) as f:
                events = json.load(f)["traceEvents"]
        spans = [(e["ts"], e["ts"] + e["dur"], e["name"]) for e in events if e["ph"] == "X"]
        reduces = [s for s in spans if s[2] == "CollectiveReduce"]
        backward = [s for s in spans if s[2].startswith(("Conv2DBackprop", "MatMul"))]
        self.assertGreater(len(reduces), 20)
        overlaps = sum(any(r[0] < b[1] and b[0] < r[1] for b in backward) for r in reduces)
        self.assertGreater(overlaps, 0, "no all-reduce ran beside the backward pass")

    def test_flags_that_do_not_go_together(self):
        for flags, said in [
                (["--sync", "--worker_hosts=a:1,b:1", "--job_name=worker"], "--sync"),
                (["--ps_hosts=c:1", "--worker_hosts=a:1,b:1", "--job_name=worker"], "--ps=0"),
                (["--concurrent_steps=2", "--worker_hosts=a:1", "--job_name=worker"], "say 1"),
                ([], "--worker_hosts")]:
            done = subprocess.run([TRAIN, *FLAGS, *flags], capture_output=True, text=True,
                                  timeout=30, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)
        self.assertTrue(os.path.exists(PENSTOCK))


if __name__ == "__main__":
    main()
