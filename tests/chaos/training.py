# SPDX-License-Identifier: Apache-2.0
"""A training of real processes, whose tasks are restarted when they die."""

import os
import re
import signal
import subprocess
import threading
import time

# Output of a process that has found a bug of its own, or reports that equal programs differ.
CRASHED = re.compile(r"workers should run the same program|"
                     r"a Done was called|terminate called|CHECK failed|AddressSanitizer|"
                     r"ThreadSanitizer|runtime error:|corrupted|invalid size|double free")


class Task:
    def __init__(self, job, index, host):
        self.job, self.index, self.host = job, index, host
        self.process = None
        self.expected_to_die = False

    def __str__(self):
        return "%s/%d" % (self.job, self.index)

    @property
    def full_name(self):
        return "/job:%s/replica:0/task:%d" % (self.job, self.index)


class Training:
    """Runs `program` as every task of a cluster on `hosts`, the ps first."""

    def __init__(self, program, flags, hosts, ps, workers):
        self.hosts = hosts
        self.tasks = ([Task("ps", i, i) for i in range(ps)] +
                      [Task("worker", i, ps + i) for i in range(workers)])
        addresses = hosts.addresses
        self.command = [program, *flags, "--ps_hosts=" + ",".join(addresses[:ps]),
                        "--worker_hosts=" + ",".join(addresses[ps:ps + workers])]
        self.lines = []  # (when, task, text)
        self.failures = []
        self.arrived = threading.Condition()
        for task in self.tasks:
            self.start(task)

    def start(self, task):
        command = self.hosts.command(task.host, [
            *self.command, "--job_name=" + task.job, "--task_index=%d" % task.index])
        task.expected_to_die = False
        task.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True, errors="replace", start_new_session=True)
        threading.Thread(target=self._read, args=(task, task.process), daemon=True).start()

    def _read(self, task, process):
        for line in process.stdout:
            with self.arrived:
                self.lines.append((time.monotonic(), task, line.rstrip("\n")))
                if CRASHED.search(line):
                    self.failures.append("%s: %s" % (task, line.strip()))
                self.arrived.notify_all()
        code = process.wait()
        # A negative code is the signal that killed the task. Chaos.restart_the_ended judges others.
        if code < 0 and not task.expected_to_die:
            self.failures.append("%s was killed by signal %d, which nobody sent" % (task, -code))

    def signal(self, task, how):
        task.expected_to_die |= how in (signal.SIGKILL, signal.SIGTERM)
        os.killpg(task.process.pid, how)

    def running(self, task):
        return task.process.poll() is None

    def find(self, pattern, since, until=None, of=lambda task: True):
        """Returns the first line after `since` that matches `pattern`; waits for it until
        `until`."""
        at = 0
        with self.arrived:
            while True:
                while at < len(self.lines):
                    when, task, text = self.lines[at]
                    at += 1
                    if when >= since and of(task):
                        match = re.search(pattern, text)
                        if match:
                            return when, match
                left = (until or 0) - time.monotonic()
                if left <= 0:
                    return None
                self.arrived.wait(min(left, 0.2))

    def last_lines(self, count=40):
        with self.arrived:
            return "\n".join("[%s] %s" % (task, text) for _, task, text in self.lines[-count:])

    def end(self, seconds):
        """Asks all tasks to end, like Kubernetes; kills and reports those that do not."""
        for task in self.tasks:
            if self.running(task):
                self.signal(task, signal.SIGTERM)
        end = time.monotonic() + seconds
        for task in self.tasks:
            try:
                task.process.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.failures.append("%s runs on %d s after SIGTERM" % (task, seconds))
        self.kill()

    def kill(self):
        for task in self.tasks:
            if self.running(task):
                self.signal(task, signal.SIGKILL)
                task.process.wait()
