#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests tools/quickstart with packages whose programs only print their arguments."""

import os
import shutil
import subprocess
import tempfile
import unittest
import zipfile

TREE = os.path.realpath(os.getcwd())  # the test's runfiles

PENSTOCK = """#!/bin/sh
case "$1" in
  --version) echo "penstock 7.5.0" ;;
  run)
    echo "asked: $*"
    for flag; do
      case "$flag" in
        --checkpoint_dir=*) echo "test accuracy: 0.9" > "${flag#*=}/test_accuracy" ;;
      esac
    done
    ;;
esac
"""


class QuickstartTest(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.home)
        self.write("installed/bin/penstock", PENSTOCK)
        self.write("installed/libexec/penstock/fashion_mnist", "#!/bin/sh\n")

    def write(self, name, text):
        path = os.path.join(self.home, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def quickstart(self, *flags, expected=0):
        done = subprocess.run([TREE + "/tools/quickstart", *flags], cwd=self.home, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                              check=False)
        self.assertEqual(done.returncode, expected, done.stdout)
        return done.stdout

    def train(self, package):
        return self.quickstart("--prebuilt=" + package, "--ps=1", "--steps=7",
                               f"--checkpoint_dir={self.home}/run")

    def test_a_folder(self):
        said = self.train("installed")  # next to the folder that it is called from
        self.assertIn(f"Using penstock 7.5.0 of {self.home}/installed\n", said)
        self.assertIn("asked: run --ps=1 --workers=2 --restarts=20 "
                      f"--log_dir={self.home}/run/logs -- "
                      f"{self.home}/installed/libexec/penstock/fashion_mnist --model=convnet "
                      "--steps=7 ", said)
        self.assertIn(f"\n  tools/quickstart --prebuilt={self.home}/installed --checkpoint_dir=",
                      said)
        self.assertTrue(said.endswith("\ntest accuracy: 0.9\n"), said)

    def test_a_wheel(self):
        with zipfile.ZipFile(self.home + "/p.whl", "w") as wheel:
            for name in ("bin/penstock", "libexec/penstock/fashion_mnist"):
                wheel.write(f"{self.home}/installed/{name}", "penstock/" + name)
        said = self.train(self.home + "/p.whl")
        self.assertIn(f" -- {self.home}/run/package/penstock/libexec/penstock/fashion_mnist ", said)
        self.train(self.home + "/p.whl")  # unpacks the package again

    def test_a_debian_package(self):
        self.write("root/DEBIAN/control", "Package: penstock\nVersion: 7.5.0\nArchitecture: all\n"
                   "Maintainer: nobody <a@b.c>\nDescription: a test\n")
        shutil.copytree(self.home + "/installed", self.home + "/root/usr")
        subprocess.run(["dpkg-deb", "--build", self.home + "/root", self.home + "/p.deb"],
                       stdout=subprocess.DEVNULL, check=True)
        said = self.train("p.deb")
        self.assertIn(f" -- {self.home}/run/package/usr/libexec/penstock/fashion_mnist ", said)

    def test_packages_that_are_none(self):
        self.write("text.whl", "no archive")
        self.write("text.deb", "no archive")
        self.write("text.txt", "no package")
        os.makedirs(self.home + "/empty")
        for name, error in (("gone.whl", "there is no such file or folder"),
                            ("text.whl", "not a wheel"), ("text.deb", "not a Debian package"),
                            ("text.txt", "expected a *.whl, a *.deb, or a folder"),
                            ("empty", "it has no program")):
            with self.subTest(name=name):
                self.assertIn(error, self.quickstart("--prebuilt=" + name, expected=1))

    def test_libraries_that_are_missing(self):
        self.write("bin/ldd", "#!/bin/sh\necho ' libgrpc++.so.1.51 => not found'\n")
        path = {"PATH": self.home + "/bin:" + os.environ["PATH"]}
        done = subprocess.run([TREE + "/tools/quickstart", "--prebuilt=installed"], cwd=self.home,
                              env=dict(os.environ, **path), capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("needs libgrpc++.so.1.51, which", done.stderr)


if __name__ == "__main__":
    program = unittest.main(exit=False, verbosity=2)
    failed = len(program.result.failures) + len(program.result.errors)
    print(f"{program.result.testsRun - failed} passed, {failed} failed")
    raise SystemExit(1 if failed or not program.result.testsRun else 0)
