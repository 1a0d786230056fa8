#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests build_with_estimate.py with a fake Bazel that makes files at a constant speed."""

import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
import build_with_estimate  # noqa: E402

# The fake's aquery names 50 objects, of which only the first exists; its build makes the others.
FAKE_BAZEL = """#!/bin/sh
cd "$(dirname "$0")"
case "$1" in
  aquery)
    echo "action 'Compiling a.cc'"
    for i in $(seq 50); do echo "  Outputs: [out/$i.pic.o, out/$i.pic.d]"; done
    ;;
  info) pwd ;;
  build)
    echo "$@" > asked
    for i in $(seq 50); do touch "out/$i.pic.o"; sleep 0.04; done
    exit "$(cat code)"
    ;;
esac
"""


class EstimateTest(unittest.TestCase):
    def test_the_speed_of_the_last_minutes_counts(self):
        # 100 files from the cache in one second, then one file every 5 s.
        samples = [(0, 0), (1, 100)] + [(1 + 5 * n, 100 + n) for n in range(1, 61)]
        self.assertAlmostEqual(build_with_estimate.seconds_left(samples, 260), 5 * 100)
        # With too few files in the last minutes, all samples count.
        samples = [(0, 0), (1, 100)] + [(1 + 20 * n, 100 + n) for n in range(1, 61)]
        self.assertAlmostEqual(build_with_estimate.seconds_left(samples, 260), 100 * 1201 / 160)
        fast = [(n, n) for n in range(100)]
        self.assertAlmostEqual(build_with_estimate.seconds_left(fast, 199), 100)

    def test_no_estimate_before_the_first_files(self):
        self.assertIsNone(build_with_estimate.seconds_left([(0, 0), (5, 19)], 100))
        self.assertAlmostEqual(build_with_estimate.seconds_left([(0, 0), (5, 20)], 100), 20)

    def test_units(self):
        self.assertEqual([build_with_estimate.describe(s) for s in (0.2, 89, 90, 2400)],
                         ["1 seconds", "89 seconds", "2 minutes", "40 minutes"])


class BuildTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.mkdir(self.folder + "/out")
        self.write("bazel", FAKE_BAZEL)
        os.chmod(self.folder + "/bazel", 0o755)
        self.write("out/1.pic.o", "")

    def write(self, name, text):
        with open(self.folder + "/" + name, "w", encoding="utf-8") as file:
            file.write(text)

    def build(self, code):
        self.write("code", str(code))
        done = subprocess.run(
            [sys.executable, HERE + "/build_with_estimate.py", "//a:b", "//c"],
            env=dict(os.environ, PATH=self.folder + ":" + os.environ["PATH"]),
            capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def test_says_how_many_and_how_long(self):
        said = self.build(0)
        self.assertRegex(said, r"^Compiling 49 files on \d+ cores\. ")
        self.assertRegex(said, r"\nCompiled [2-4]\d of 49 files; about \d+ seconds left\n")
        self.assertRegex(said, r"\nBuilt in \d+ seconds\.\n$")
        with open(self.folder + "/asked", encoding="utf-8") as file:
            self.assertEqual(file.read(), "build --noshow_progress //a:b //c\n")

    def test_with_nothing_to_compile(self):
        self.build(0)
        self.assertEqual(self.build(0), "")

    def test_failure_is_passed_on(self):
        self.assertNotIn("Built in", self.build(3))


if __name__ == "__main__":
    program = unittest.main(exit=False, verbosity=2)
    failed = len(program.result.failures) + len(program.result.errors)
    print(f"{program.result.testsRun - failed} passed, {failed} failed")
    raise SystemExit(1 if failed or not program.result.testsRun else 0)
