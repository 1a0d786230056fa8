#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests --strategy=allreduce --elastic: training goes on without a worker that is killed, and with
it when it is back."""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cluster import LANGUAGE_MODEL, TRAIN, ClusterTest, main  # noqa: E402

FLAGS = ["--strategy=allreduce", "--elastic", "--model=mlp", "--batch_size=64"]


class ElasticTest(ClusterTest):
    def train(self, steps, restarts=0):
        run = self.start(*FLAGS, "--steps=%d" % steps, "--save_every_steps=100", ps=0, workers=3,
                         restarts=restarts, run_flags=["--elastic"])
        run.wait_for("worker/0.*trains with 3 of 3 workers")
        run.wait_for(r"worker/0.* loss ")
        return run

    def ends_well(self, run):
        self.assertEqual(run.finish(), 0, run.output())
        accuracy = re.search(r"test accuracy: (0\.\d+)", run.output())
        self.assertIsNotNone(accuracy, run.output())
        self.assertGreater(float(accuracy.group(1)), 0.78)

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

    def test_a_worker_that_is_back_joins_the_others(self):
        run = self.train(steps=4000, restarts=1)
        _, line = run.wait_for("worker/0.*trains with 3 of 3 workers")
        run.kill("worker", 1)
        for worker in (0, 1):
            run.wait_for("worker/%d.*trains with 3 of 3 workers" % worker, seconds=40,
                         start=line + 1)
        self.ends_well(run)

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
