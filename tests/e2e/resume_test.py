#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills the tasks of a training repeatedly within epochs. Tests that all workers together use each
record once per epoch."""

import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cluster import ClusterTest, main  # noqa: E402

PROGRAM = "tests/e2e/count_records"
FILES, LINES, EPOCHS, BATCH = 6, 26, 4, 8
RECORDS = FILES * LINES
STEPS = -(-RECORDS * EPOCHS // BATCH)
SEED = int(os.environ.get("RESUME_TEST_SEED", "3"))


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def tfrecord(data):
    def checked(part):
        crc = crc32c(part)
        return part + struct.pack("<I", ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff)

    return checked(struct.pack("<Q", len(data))) + checked(data)


class ResumeTest(ClusterTest):
    input = []  # flags

    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.files = []
        for i in range(FILES):
            self.files.append(os.path.join(self.folder, "records%d" % i))
            with open(self.files[-1], "wb") as f:
                f.writelines(tfrecord(b"%d" % (i * LINES + k)) for k in range(LINES))

    def flags(self, epochs, millis):
        return ["--epochs=%d" % epochs, "--records=%d" % RECORDS, "--step_millis=%d" % millis,
                *self.input, *self.files]

    def start_alone(self, checkpoints, millis=0):
        process = subprocess.Popen(
            [PROGRAM, "--checkpoint_dir=" + os.path.join(self.folder, checkpoints),
             *self.flags(EPOCHS, millis)], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        return process

    def read(self, process, until=None):
        """Reads the output up to step `until` or the end. Returns the sum of the records that each
        step took; the final counts; and the time of the last step."""
        took, seen, last = {}, None, time.monotonic()
        for line in process.stdout:
            step = re.match(r"step (\d+) took (\d+)", line)
            if step:
                took[int(step[1])] = int(step[2])
                last = time.monotonic()
            elif line.startswith("seen"):
                seen = [int(n) for n in line.split()[1:]]
            if until in took:
                break
        return took, seen, last

    def read_to_the_end(self, process):
        took, seen, last = self.read(process)
        self.assertEqual(process.wait(), 0)
        self.assertLess(time.monotonic() - last, 1, "the end of the input ends everything")
        return took, seen

    def test_one_process(self):
        whole, seen = self.read_to_the_end(self.start_alone("whole"))
        self.assertEqual(seen, [EPOCHS] * RECORDS)
        self.assertEqual(sorted(whole), list(range(1, STEPS + 1)))

        choose = random.Random(SEED)
        pieces, kills = {}, [6, 13, 22, 23, 41, 60]
        for kill in kills:
            process = self.start_alone("pieces", millis=5)
            pieces.update(self.read(process, until=kill)[0])
            # a random pause, so that the kill comes before, in or after the next step or a save
            time.sleep(choose.random() * 0.02)
            process.kill()
            process.wait()
            pieces.update(self.read(process)[0])
        took, seen = self.read_to_the_end(self.start_alone("pieces"))
        pieces.update(took)
        self.assertEqual(seen, [EPOCHS] * RECORDS)
        self.assertEqual(pieces, whole)
        self.assertGreater(min(took), kills[-1] - 8, "it went on from a checkpoint")

    def kill_again_and_again(self, *flags, kills, training):
        """Runs a cluster of two workers and kills the tasks in `kills`. The workers in `training`
        print their steps. Each of the two parameter servers holds one of the variables."""
        epochs = 20
        run = self.start(*self.flags(epochs, millis=10), *flags, program=PROGRAM, ps=2, workers=2,
                         restarts=len(kills))
        choose = random.Random(SEED)
        start = 0
        for job, index in kills:
            # Waits until all workers train again.
            lines = [run.wait_for(r"^\[worker/%d\] step \d" % w, start=start)[1] for w in training]
            time.sleep(choose.random() * 0.1)
            run.kill(job, index)
            _, start = run.wait_for(r"%s/%d was killed" % (job, index), seconds=15,
                                    start=max(lines))
        self.assertEqual(run.finish(120), 0, run.output())
        seen = re.search(r"(?m)^\[worker/0\] seen (.*)$", run.output())
        self.assertEqual([int(n) for n in seen.group(1).split()], [epochs] * RECORDS, run.output())
        batches = 2 * -(-RECORDS * epochs // BATCH // 2)
        self.assertIn("batches %d" % batches, run.output())

    def test_workers_that_train_by_themselves(self):
        self.kill_again_and_again(
            kills=[("worker", 1), ("ps", 0), ("worker", 0), ("worker", 1), ("worker", 0),
                   ("ps", 1), ("worker", 1)], training=(0, 1))

    def test_workers_in_step(self):
        self.kill_again_and_again(
            "--sync", kills=[("worker", 1), ("worker", 0), ("ps", 0), ("worker", 0),
                             ("worker", 1)], training=(0,))

    def test_another_number_of_servers(self):
        """One client drives all workers, so each batch is on all servers at each save."""
        epochs, folder = 20, os.path.join(self.folder, "servers")
        for ps, until in (2, 20), (1, 40), (3, None):
            run = self.start(*self.flags(epochs, millis=10), "--sync", program=PROGRAM, ps=ps,
                             workers=2, folder=folder)
            first = int(run.wait_for(r"^\[worker/0\] step (\d+)")[0][1])
            self.assertEqual(first == 1, ps == 2, "it goes on from a checkpoint")
            if until:
                run.wait_for(r"^\[worker/0\] step %d " % until)
                run.close()
        self.assertEqual(run.finish(120), 0, run.output())
        seen = re.search(r"(?m)^\[worker/0\] seen (.*)$", run.output())
        self.assertEqual([int(n) for n in seen.group(1).split()], [epochs] * RECORDS, run.output())


class DatasetResumeTest(ResumeTest):
    """Tests the same with input from a dataset."""
    input = ["--dataset"]


if __name__ == "__main__":
    main()
