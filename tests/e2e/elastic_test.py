#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests --strategy=allreduce --elastic: training goes on without a worker that is killed, and with
it when it is back."""

import glob
import os
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cluster import LANGUAGE_MODEL, TRAIN, ClusterTest, main  # noqa: E402

FLAGS = ["--strategy=allreduce", "--elastic", "--model=mlp", "--batch_size=64"]


def event_steps(path):
    """Returns the steps of the events in a TFRecord file, which may still be written."""
    steps = []
    with open(path, "rb") as file:
        while len(header := file.read(12)) == 12:
            length = struct.unpack_from("<Q", header)[0]
            event = file.read(length)
            if len(event) < length or len(file.read(4)) < 4:  # the checksum
                break
            at = 9  # behind the wall time, which is the first field
            if event[at:at + 1] != b"\x10":  # the field `step`, unless it is 0
                continue
            step = 0
            for shift, byte in enumerate(event[at + 1:at + 11]):
                step |= (byte & 0x7f) << 7 * shift
                if byte < 0x80:
                    break
            steps.append(step)
    return steps


class ElasticTest(ClusterTest):
    def train(self, steps, restarts=0):
        run = self.start(*FLAGS, "--steps=%d" % steps, "--save_every_steps=100", ps=0, workers=3,
                         restarts=restarts, run_flags=["--elastic"])
        run.wait_for("worker/0.*trains with 3 of 3 workers")
        run.wait_for(r"worker/0.* loss ")
        return run

    def ends_well(self, run, seconds=120):
        self.assertEqual(run.finish(seconds), 0, run.output())
        accuracy = re.search(r"test accuracy: (0\.\d+)", run.output())
        self.assertIsNotNone(accuracy, run.output())
        self.assertGreater(float(accuracy.group(1)), 0.7)

    def test_the_others_go_on_without_a_killed_worker(self):
        run = self.train(steps=2000)
        run.kill("worker", 2)
        for worker in (0, 1):
            run.wait_for("worker/%d.*trains with 2 of 3 workers; chief: /job:worker/task:0; "
                         "without /job:worker/task:2" % worker, seconds=20)
        self.ends_well(run)
        self.assertIn("worker/2 was killed by signal 9; going on without it", run.output())
        self.assertNotIn("restored", run.output())

    def test_the_next_worker_becomes_chief_and_saves(self):
        run = self.train(steps=2000)
        run.kill("worker", 0)
        run.wait_for("worker/1.*trains with 2 of 3 workers; chief: /job:worker/task:1", seconds=20)
        self.ends_well(run)
        self.assertTrue(os.path.exists(os.path.join(run.folder, "model.ckpt-2000.index")))

    def rejoins(self, killed):
        """Kills a worker, which is started again, and expects all three in the group then."""
        run = self.train(steps=4000, restarts=1)
        for worker in range(3):
            run.wait_for("worker/%d.*trains with 3 of 3 workers" % worker)
        start = len(run.lines)
        run.kill("worker", killed)
        for worker in range(3):
            run.wait_for("worker/%d.*trains with 3 of 3 workers" % worker, seconds=40, start=start)
        self.ends_well(run)
        return run

    def test_a_worker_that_is_back_joins_the_others(self):
        self.rejoins(killed=1)

    def test_a_chief_that_is_back_is_chief_again(self):
        # Worker 0 may be back before the others have formed a group of two.
        run = self.rejoins(killed=0)
        self.assertRegex(run.output(), r"worker/0.*test accuracy: 0\.\d+")

    def test_the_next_chief_writes_the_summaries(self):
        folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        # Enough steps that the training lasts longer than until the first flush, after 10 s.
        run = self.start(*FLAGS, "--steps=4000", "--summary_dir=" + folder, "--summary_steps=50",
                         ps=0, workers=3, run_flags=["--elastic"])
        run.wait_for("worker/0.*trains with 3 of 3 workers")
        run.wait_for(r"worker/0.* loss ")
        pids = [run.pid("worker", worker) for worker in range(3)]

        def steps_by_worker():
            steps = {}
            for path in glob.glob(folder + "/events.out.tfevents.*"):
                writer = int(path.split(".")[-2])
                steps.setdefault(pids.index(writer), []).extend(event_steps(path))
            return steps

        def ask():
            written = max(steps_by_worker().get(0, []), default=0)
            return "worker 0 has written a step" if written > 0 else run.output()

        self.until(ask, "worker 0 has written a step", seconds=60)
        run.kill("worker", 0)
        self.ends_well(run, seconds=300)
        steps = steps_by_worker()
        self.assertEqual(sorted(steps), [0, 1])
        self.assertGreaterEqual(max(steps[1]), 3950)
        self.assertLess(max(steps[0]), min(step for step in steps[1] if step > 0) + 50)

    def test_flags_that_do_not_go_together(self):
        cluster = ["--worker_hosts=a:1,b:1", "--job_name=worker", "--task_index=0"]
        for program in (TRAIN, LANGUAGE_MODEL):
            for flags, said in [
                    (["--elastic", *cluster], "--elastic: needs --strategy=allreduce"),
                    (["--strategy=allreduce", "--min_workers=1", *cluster], "needs --elastic"),
                    (["--strategy=allreduce", "--elastic", "--min_workers=3", *cluster],
                     "--min_workers=3: there are only 2 workers"),
                    (["--strategy=allreduce", "--elastic"], "needs workers")]:
                done = subprocess.run([program, *flags], capture_output=True, text=True,
                                      timeout=30, check=False)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(said, done.stderr)


if __name__ == "__main__":
    main()
