# SPDX-License-Identifier: Apache-2.0
"""Clusters of real processes, for tests.

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

from ports import free_ports

PENSTOCK = "tools/penstock/penstock"
TRAIN = "client/examples/fashion_mnist"
LANGUAGE_MODEL = "client/examples/language_model"
RECOMMENDER = "client/examples/recommender"
READER = "client/examples/remote_reader"
HANG = "tests/e2e/hang"

# Servers store their measurements of this machine in this folder, so a test measures only once.
os.environ.setdefault("XDG_CACHE_HOME", os.environ.get("TEST_TMPDIR", tempfile.gettempdir()))


class Run:
    """`penstock run` of a program: its lines as they come, and its tasks."""

    def __init__(self, *train_flags, program=TRAIN, ps=1, workers=2, restarts=0, run_flags=(),
                 folder=None):
        """`folder`: for checkpoints; a new one if not given."""
        self.folder = folder or tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
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
        """Waits for a line that matches `pattern`, from line number `start` on. Returns the match
        and the line's number."""
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

    def pid(self, job, index, replica=None):
        """Returns the id of the process of a task, or of one of its two replicas."""
        wanted = {"--job_name=" + job, "--task_index=%d" % index}
        if replica is not None:
            wanted.add("--replica_index=%d" % replica)
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
        raise AssertionError("no process of %s/%d, replica %s" % (job, index, replica))

    def kill(self, job, index, replica=None, how=signal.SIGKILL):
        """Sends the signal `how` to a task's process, and returns the process id."""
        pid = self.pid(job, index, replica)
        os.kill(pid, how)
        return pid

    def address(self, job):
        """Returns host:port of the first task of a job."""
        with open("/proc/%d/cmdline" % self.pid("ps", 0)) as f:
            for argument in f.read().split("\0"):
                if argument.startswith("--%s_hosts=" % job):
                    return argument.split("=", 1)[1].split(",")[0]
        raise AssertionError("no --%s_hosts" % job)

    def finish(self, seconds=120):
        """Waits until the cluster has ended by itself; returns the exit code."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError("not done within %d s:\n%s" % (seconds, self.output())) from None
        time.sleep(0.2)  # until the last lines have been read
        if "workers should run the same program" in self.output():
            raise AssertionError("a false alarm:\n" + self.output())
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

    def until(self, ask, *needed, seconds=30):
        """Calls ask() until the answer contains all of `needed`; returns that answer."""
        end = time.monotonic() + seconds
        while True:
            said = ask()
            if all(part in said for part in needed):
                return said
            self.assertLess(time.monotonic(), end, "no %r in:\n%s" % (needed, said))


class StuckCluster(ClusterTest):
    """A ps and two workers that only serve, and clients whose steps hang (hang.cc)."""

    def start_servers(self, flags=None, proxy=None):
        """Starts the tasks. `flags`: additional flags by (job, index). Other tasks reach the ps
        through `proxy`."""
        ps, *workers = ["127.0.0.1:%d" % port for port in free_ports(3)]
        self.target = "grpc://" + workers[0]
        self.tasks = {}
        self.worker_targets = ["grpc://" + worker for worker in workers]
        if proxy:
            proxy.forward_to(ps)
        for job, index in (("ps", 0), ("worker", 0), ("worker", 1)):
            ps_hosts = proxy.address if proxy and job == "worker" else ps
            self.tasks[job, index] = self.spawn(
                [PENSTOCK, "server", "--job_name=" + job, "--task_index=%d" % index,
                 "--ps_hosts=" + ps_hosts, "--worker_hosts=" + ",".join(workers),
                 *(flags or {}).get((job, index), [])], " serves at ")

    def spawn(self, command, until):
        """Starts a process, which is killed at the end, and waits until it says `until`. Returns
        the process."""
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        said = []
        for line in process.stdout:
            said.append(line)
            if until in line:
                return process
        self.fail("%r did not say %r:\n%s" % (command, until, "".join(said)))

    def hang(self, kind, *flags, target=None):
        command = [HANG, "--kind=" + kind, "--target=" + (target or self.target), *flags]
        return self.spawn(command, "begun")


def main():
    os.environ.pop("TF_CONFIG", None)
    program = unittest.main(exit=False, verbosity=2)
    result = program.result
    failed = len(result.failures) + len(result.errors)
    print("%d passed, %d failed" % (result.testsRun - failed, failed))
    sys.exit(1 if failed or not result.testsRun else 0)
