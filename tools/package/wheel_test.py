#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel, installs it with pip into an empty Python as docs/install.md says, and tests it.

The tests with TensorFlow need $PENSTOCK_TENSORFLOW_PYTHON (tools/install_tensorflow).
"""

import base64
import csv
import glob
import hashlib
import io
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest
import zipfile

TREE = os.getcwd()  # the test's runfiles
TENSORFLOW_PYTHON = os.environ.get("PENSTOCK_TENSORFLOW_PYTHON")
# Libraries that every system with Python has (docker.io/python:3.11-slim has only these).
SYSTEM = (r"(linux-vdso|ld-linux-x86-64|libc|libm|libdl|librt|libpthread|libresolv|libstdc\+\+"
          r"|libgcc_s)\.")


def processes_in(folder):
    """Returns the command lines of processes whose program is in `folder`."""
    found = []
    for path in glob.glob("/proc/[0-9]*/exe"):
        try:
            if os.readlink(path).startswith(folder):
                with open(os.path.dirname(path) + "/cmdline", encoding="utf-8") as file:
                    found.append(file.read().replace("\0", " "))
        except OSError:
            pass  # the process has ended
    return found


class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = os.path.realpath(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
        cls.addClassCleanup(shutil.rmtree, cls.home)
        cls.environment = {"PATH": os.environ["PATH"], "HOME": cls.home, "TMPDIR": cls.home,
                           "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
                           "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
        with open(TREE + "/docs/install.md", encoding="utf-8") as file:
            build, install = re.findall(r"```bash\n(.*?)```", file.read(), re.DOTALL)
        cls.shell(build.replace("tools/install", f"{TREE}/tools/install "
                                f"--image={TREE}/tools/package/penstock.tar"))
        cls.wheel, = glob.glob(cls.home + "/dist/*.whl")
        # TensorFlow's modules need this version of Python.
        cls.shell(install.replace("python3 -m venv", (TENSORFLOW_PYTHON or "python3") + " -m venv"))
        cls.bin = cls.home + "/venv/bin/"
        cls.package = glob.glob(cls.home + "/venv/lib/python3*/site-packages/penstock")[0]

    @classmethod
    def run_command(cls, command, expected=0, **environment):
        done = subprocess.run(command, cwd=cls.home, env=dict(cls.environment, **environment),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=200, check=False)
        if done.returncode != expected:
            raise AssertionError(f"{command} ended with {done.returncode}: {done.stdout}")
        return done.stdout

    @classmethod
    def shell(cls, script):
        return cls.run_command(["bash", "-euc", script])

    @classmethod
    def pip(cls, *arguments):
        return cls.run_command([cls.bin + "python", "-m", "pip", *arguments])

    def python(self, text, expected=0, **environment):
        return self.run_command([self.bin + "python", "-c", text], expected, **environment)

    def assert_nothing_runs(self):
        end = time.monotonic() + 20
        while processes_in(self.home) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(processes_in(self.home), [])

    def test_the_file_is_as_the_standard_wants_it(self):
        name = os.path.basename(self.wheel)
        match = re.fullmatch(r"penstock-([\d.]+)-(py3-none-manylinux_2_\d+_x86_64)\.whl", name)
        self.assertTrue(match, name)
        info = f"penstock-{match[1]}.dist-info/"
        with zipfile.ZipFile(self.wheel) as file:
            contents = {name: file.read(name) for name in file.namelist()}
        self.assertIn("Tag: " + match[2], contents[info + "WHEEL"].decode().splitlines())
        rows = list(csv.reader(io.StringIO(contents[info + "RECORD"].decode())))
        self.assertEqual([row[0] for row in rows], list(contents))
        for path, digest, size in rows[:-1]:
            wanted = base64.urlsafe_b64encode(hashlib.sha256(contents[path]).digest())
            self.assertEqual((digest, size), ("sha256=" + wanted.decode().rstrip("="),
                                              str(len(contents[path]))), path)
        self.assertEqual(rows[-1], [info + "RECORD", "", ""])

        # Each bundled library is listed, and has its licence.
        bundled = re.findall(r"(?m)^(\S+): package (\S+) \S+, source \S+$",
                             contents[info + "licenses/BUNDLED"].decode())
        self.assertEqual({"penstock/lib/" + name for name, _ in bundled},
                         {name for name in contents if name.startswith("penstock/lib/")
                          and "/libpenstock.so" not in name})
        for _, package in bundled:
            self.assertIn(info + "licenses/" + package, contents)
        self.assertIn(b"Apache License", contents[info + "licenses/LICENSE"])

    def test_programs_need_nothing_of_the_system(self):
        for program in ("/bin/penstock", "/libexec/penstock/fashion_mnist"):
            for line in self.run_command(["ldd", self.package + program]).splitlines():
                if not re.match(SYSTEM, os.path.basename(line.split()[0])):
                    self.assertIn("=> " + self.package, line)

    def test_the_command(self):
        said = self.run_command([self.bin + "penstock", "--version"])
        self.assertRegex(said, r"^penstock [\d.]+")
        self.assertEqual(self.run_command([self.bin + "python", "-m", "penstock", "--version"]),
                         said)
        self.assertEqual(self.python("import penstock; print(penstock.__version__)").strip(),
                         said.split()[1].rstrip(","))
        self.pip("check")

    def test_a_cluster_without_tensorflow(self):
        begin = time.monotonic()
        said = self.python("""if True:
            import penstock, sys
            from penstock.tf_server import find_program
            with penstock.server() as task:
                import subprocess
                subprocess.run([find_program(), "status", task.target], check=True)
            penstock.run([find_program(), "run", "--help"], workers=1)
            assert "tensorflow" not in sys.modules
            """)
        self.assertIn("/job:local/task:0", said)
        self.assertLess(time.monotonic() - begin, 60)
        self.assert_nothing_runs()

    def test_mistakes(self):
        for call, error in (
                ("penstock.server({'ps': ['a:1']}, 'worker')", "expected a task of the cluster"),
                ("penstock.server(staatus_port=1)", "did not start"),
                ("penstock.run(['false'])", "CalledProcessError")):
            with self.subTest(call=call):
                self.assertIn(error, self.python("import penstock; " + call, expected=1))
        self.assertIn("usage: python -m penstock.tf_server", self.run_command(
            [self.bin + "python", "-m", "penstock.tf_server"], expected=1))
        self.assert_nothing_runs()

    def test_a_program_of_tensorflow_as_it_is(self):
        if TENSORFLOW_PYTHON is None:
            self.skipTest("there is no TensorFlow: $PENSTOCK_TENSORFLOW_PYTHON is not set")
        found = self.run_command([TENSORFLOW_PYTHON, "-c",
                                  "import sysconfig; print(sysconfig.get_path('purelib'))"])
        path = {"PYTHONPATH": found.strip()}
        shutil.copy(TREE + "/tools/package/wheel_train.py", self.home + "/train.py")
        said = self.python("import penstock; penstock.run('train.py', ps=1, workers=2)", **path)
        self.assertEqual(sorted(re.findall(r"\[worker/(\d)\] w = 3\.00 -1\.00", said)), ["0", "1"],
                         said)
        self.assert_nothing_runs()
        # The same with the command `penstock`.
        said = self.run_command([self.bin + "penstock", "run", "--ps=1", "--workers=1", "--",
                                 self.bin + "python", "-m", "penstock.tf_server", "train.py",
                                 "--steps=150"], **path)
        self.assertIn("[worker/0] w = 3.00 -1.00", said)
        said = self.python("""if True:
            import penstock, tensorflow.compat.v1 as tf
            with penstock.server() as task, tf.Graph().as_default():
                with tf.Session(task.target) as session:
                    print(session.run(tf.constant(20) + 22))
            """, **path)
        self.assertIn("42", said.splitlines())
        self.assert_nothing_runs()

    def test_z_removing(self):
        # The name makes this test run last: tests run in the order of their names.
        self.pip("uninstall", "--yes", "penstock")
        left = [path for path in glob.glob(os.path.dirname(self.package) + "/penstock*/**",
                                           recursive=True) if os.path.isfile(path)]
        self.assertEqual(left, [])
        self.assertFalse(os.path.exists(self.bin + "penstock"))


if __name__ == "__main__":
    program = unittest.main(exit=False, verbosity=2)
    failed = len(program.result.failures) + len(program.result.errors)
    skipped = len(program.result.skipped)
    print(f"{program.result.testsRun - failed - skipped} passed, {failed} failed")
    raise SystemExit(1 if failed or not program.result.testsRun else 0)
