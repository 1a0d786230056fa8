# SPDX-License-Identifier: Apache-2.0
"""Clusters of real processes, for stories about them.

Programs are found where the build puts them for tests: relative to the current folder.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PENSTOCK = "tools/penstock/penstock"
TRAIN = "client/examples/fashion_mnist"
LANGUAGE_MODEL = "client/examples/language_model"
RECOMMENDER = "client/examples/recommender"
READER = "client/examples/remote_reader"


class Run:
    """`penstock run` of a program: its lines as they come, and its tasks."""

    def __init__(self, *train_flags, program=TRAIN, ps=1, workers=2, restarts=0, run_flags=()):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        command = [PENSTOCK, "run", "--ps=%d" % ps, "--workers=%d" % workers,
                   "--restarts=%d" % restarts, *run_flags, "--", program,
                   "--checkpoint_dir=" + self.folder, *train_flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True, errors="replace")
        self.lines = []
        self.arrived = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            with self.arrived:
                self.lines.append(line.rstrip("\n"))
                self.arrived.notify_all()

    def output(self):
        return "\n".join(self.lines)

    def wait_for(self, pattern, seconds=60, start=0):
        """Waits for a line, from number `start` on, with `pattern`: the match and its number."""
        end = time.monotonic() + seconds
        with self.arrived:
            n = start
            while True:
                while n < len(self.lines):
                    match = re.search(pattern, self.lines[n])
                    if match:
                        return match, n
                    n += 1
                left = end - time.monotonic()
                if left <= 0 or self.process.poll() is not None and n >= len(self.lines):
                    raise AssertionError("no line with %r within %d s in:\n%s" %
                                         (pattern, seconds, self.output()))
                self.arrived.wait(min(left, 0.2))

    def pid(self, job, index):
        """The process of a task."""
        wanted = {"--job_name=" + job, "--task_index=%d" % index}
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open("/proc/%s/cmdline" % entry) as f:
                    arguments = set(f.read().split("\0"))
                with open("/proc/%s/stat" % entry) as f:
                    parent = int(f.read().rsplit(")", 1)[1].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            if wanted <= arguments and parent == self.process.pid:
                return int(entry)
        raise AssertionError("no process of %s/%d" % (job, index))

    def kill(self, job, index):
        os.kill(self.pid(job, index), signal.SIGKILL)

    def address(self, job):
        """host:port of the first task of a job."""
        with open("/proc/%d/cmdline" % self.pid("ps", 0)) as f:
            for argument in f.read().split("\0"):
                if argument.startswith("--%s_hosts=" % job):
                    return argument.split("=", 1)[1].split(",")[0]
        raise AssertionError("no --%s_hosts" % job)

    def finish(self, seconds=120):
        """The exit code, once the cluster has ended by itself."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError("not done within %d s:\n%s" % (seconds, self.output())) from None
        time.sleep(0.2)  # the last lines
        return code

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()


class ClusterTest(unittest.TestCase):
    def start(self, *args, **kwargs):
        run = Run(*args, **kwargs)
        self.addCleanup(run.close)
        return run


def main():
    os.environ.pop("TF_CONFIG", None)
    program = unittest.main(exit=False, verbosity=2)
    result = program.result
    failed = len(result.failures) + len(result.errors)
    print("%d passed, %d failed" % (result.testsRun - failed, failed))
    sys.exit(1 if failed or not result.testsRun else 0)
