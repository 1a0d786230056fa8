#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that the chief still saves when all tasks are asked to end at the same time, as by
Kubernetes."""

import glob
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cluster import ClusterTest, main  # noqa: E402

ROUNDS = int(os.environ.get("PENSTOCK_SHUTDOWN_ROUNDS", "3"))


class ShutdownTest(ClusterTest):
    def end_at_once(self, *flags):
        run = self.start("--model=mlp", "--steps=10000000", "--save_every_steps=10000000", *flags,
                         ps=2, workers=2)
        run.wait_for(r"step +[1-9]\d")
        run.process.terminate()  # `penstock run` then sends SIGTERM to every task
        self.assertEqual(run.finish(60), 130, run.output())
        self.assertNotRegex(run.output(), r"Check failed|CHECK|called twice|killing them|exits now")
        told = re.findall(r"worker/0\] .*told to end at step (\d+)", run.output())
        self.assertEqual(len(told), 1, run.output())
        saved = [int(path.rsplit("-", 1)[1].split(".")[0])
                 for path in glob.glob(run.folder + "/model.ckpt-*.index")]
        self.assertGreaterEqual(max(saved, default=-1), int(told[0]), run.output())

    def test_asynchronous_training_ends_with_a_checkpoint(self):
        for _ in range(ROUNDS):
            self.end_at_once()

    def test_synchronous_training_ends_with_a_checkpoint(self):
        for _ in range(ROUNDS):
            self.end_at_once("--sync")


if __name__ == "__main__":
    main()
