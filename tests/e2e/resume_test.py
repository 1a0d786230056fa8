#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training is killed amid an epoch, again and again: it sees each record once per epoch."""

import os
import random
import re
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cluster import main  # noqa: E402

PROGRAM = "tests/e2e/count_records"
FILES, LINES, EPOCHS, BATCH = 5, 31, 4, 8
RECORDS = FILES * LINES
STEPS = -(-RECORDS * EPOCHS // BATCH)


class InputTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.files = []
        for i in range(FILES):
            self.files.append(os.path.join(self.folder, "records%d" % i))
            with open(self.files[-1], "w") as f:
                f.writelines("%d\n" % (i * LINES + k) for k in range(LINES))

    def start(self, checkpoints, millis=0):
        process = subprocess.Popen(
            [PROGRAM, os.path.join(self.folder, checkpoints), str(EPOCHS), str(RECORDS),
             str(millis), *self.files], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        return process

    def read(self, process, until=None):
        """What each step took, from where the output is up to step `until` or the end; the counts
        at the end; and when the last step came."""
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

    def test_killed_and_resumed(self):
        whole, seen = self.read_to_the_end(self.start("whole"))
        self.assertEqual(seen, [EPOCHS] * RECORDS)
        self.assertEqual(sorted(whole), list(range(1, STEPS + 1)))

        choose = random.Random(3)
        pieces, kills = {}, [6, 13, 22, 23, 41, 60]
        for kill in kills:
            process = self.start("pieces", millis=5)
            pieces.update(self.read(process, until=kill)[0])
            time.sleep(choose.random() * 0.02)  # before, in or after the next step, or a save
            process.kill()
            process.wait()
            pieces.update(self.read(process)[0])
        took, seen = self.read_to_the_end(self.start("pieces"))
        pieces.update(took)
        self.assertEqual(seen, [EPOCHS] * RECORDS)
        self.assertEqual(pieces, whole)
        self.assertGreater(min(took), kills[-1] - 8, "it went on from a checkpoint")


if __name__ == "__main__":
    main()
