#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills tasks of a training with --deterministic at named moments, and tests that the final
checkpoint has the bytes of an undisturbed training's."""

import glob
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cluster import PENSTOCK, ClusterTest, main  # noqa: E402

STEPS, SAVE_EVERY = 400, 20
FLAGS = ["--deterministic", "--sync", "--model=mlp", "--batch_size=32", "--steps=%d" % STEPS,
         "--save_every_steps=%d" % SAVE_EVERY]


class DeterministicTest(ClusterTest):
    def train(self, *flags, ps=1, restarts=0):
        return self.start(*FLAGS, *flags, ps=ps, workers=2, restarts=restarts,
                          run_flags=["--restart_ended_workers"])

    def digest(self, run):
        """Returns a digest of the data files of the final checkpoint."""
        digest = hashlib.sha256()
        files = sorted(glob.glob(os.path.join(run.folder, "model.ckpt-%d.data-*" % STEPS)))
        self.assertTrue(files, run.output())
        for name in files:
            with open(name, "rb") as f:
                digest.update(f.read())
        return digest.hexdigest()

    def undisturbed(self, *flags, ps=1):
        run = self.train(*flags, ps=ps)
        self.assertEqual(run.finish(180), 0, run.output())
        return self.digest(run)

    def await_checkpoint(self, run, step, suffix="index", seconds=60):
        """Waits for a file of a checkpoint of `step` or of a later step: while one checkpoint is
        still being written, no other one is begun, so a multiple of SAVE_EVERY may be left out."""
        end = time.monotonic() + seconds
        while not any(found >= step for found in self.steps_of_files(run, suffix)):
            self.assertLess(time.monotonic(), end, "no checkpoint of step %d, .%s, in:\n%s" %
                            (step, suffix, run.output()))
            time.sleep(0.002)

    @staticmethod
    def steps_of_files(run, suffix):
        """Returns the steps of the checkpoints that have files with this suffix."""
        names = glob.glob(os.path.join(run.folder, "model.ckpt-*.%s" % suffix))
        matches = [re.search(r"model\.ckpt-(\d+)\.", os.path.basename(name)) for name in names]
        return [int(match.group(1)) for match in matches if match]

    def kill(self, run, job, index):
        """Kills a task, and returns the number of the line that says so."""
        start = len(run.lines)
        run.kill(job, index)
        return run.wait_for("%s/%d was killed by signal 9; starting it again" % (job, index),
                            seconds=20, start=start)[1]

    def await_resumed(self, run, line):
        run.wait_for(r"^\[worker/0\] .*going on at step \d", seconds=90, start=line)

    def check(self, run, expected):
        self.assertEqual(run.finish(240), 0, run.output())
        self.assertEqual(self.digest(run), expected, run.output())

    def test_the_bits_are_those_of_an_undisturbed_training(self):
        expected = self.undisturbed()
        run = self.train(restarts=9)
        # Within the steps after the first checkpoint.
        self.await_checkpoint(run, SAVE_EVERY)
        self.await_resumed(run, self.kill(run, "worker", 1))
        self.assertIn("restored", run.output(), "no variable was lost, but it goes back")
        # While a checkpoint is being written.
        self.await_checkpoint(run, 5 * SAVE_EVERY, suffix="*")
        self.await_resumed(run, self.kill(run, "ps", 0))
        # The ps again, while the chief restores its variables.
        self.await_checkpoint(run, 8 * SAVE_EVERY)
        line = self.kill(run, "worker", 1)
        run.wait_for(r"^\[worker/0\] .*restored", seconds=60, start=line)
        self.await_resumed(run, self.kill(run, "ps", 0))
        # The chief.
        self.await_checkpoint(run, 11 * SAVE_EVERY)
        line = self.kill(run, "worker", 0)
        run.wait_for(r"^\[worker/0\] .*restored", seconds=60, start=line)
        # Everything except the chief, at once.
        self.await_checkpoint(run, 15 * SAVE_EVERY)
        run.kill("ps", 0)
        self.await_resumed(run, self.kill(run, "worker", 1))
        self.check(run, expected)

    def test_two_ps_of_which_one_may_have_applied_a_step(self):
        expected = self.undisturbed(ps=2)
        run = self.train(ps=2, restarts=4)
        for number, victim in enumerate([("ps", 1), ("worker", 1), ("ps", 0), ("worker", 1)]):
            self.await_checkpoint(run, (4 * number + 2) * SAVE_EVERY)
            self.await_resumed(run, self.kill(run, *victim))
        self.check(run, expected)

    def test_records_that_the_workers_read(self):
        with tempfile.TemporaryDirectory() as folder:
            made = subprocess.run([PENSTOCK, "convert", folder, "--shards=2"], capture_output=True,
                                  text=True, timeout=60, check=False)
            self.assertEqual(made.returncode, 0, made.stderr)
            flags = ["--input=tfrecord", "--data_dir=" + folder]
            expected = self.undisturbed(*flags)
            run = self.train(*flags, restarts=2)
            self.await_checkpoint(run, 3 * SAVE_EVERY)
            self.await_resumed(run, self.kill(run, "worker", 1))
            self.await_checkpoint(run, 9 * SAVE_EVERY)
            self.await_resumed(run, self.kill(run, "ps", 0))
            self.check(run, expected)


if __name__ == "__main__":
    main()
