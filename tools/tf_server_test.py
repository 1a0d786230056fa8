#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the lines that tf_server prints when tasks die. A program plays the tasks."""

import os
import signal
import subprocess
import sys
import tempfile
import unittest

TREE = os.path.realpath(os.getcwd())  # the test's runfiles

TASK = """#!/bin/sh
echo "/job:worker/replica:0/task:1 serves at grpc://localhost:4711"
read nothing
exit 0
"""

# Starts a task, ends it in the way of the argument, and waits until everything has been said.
CLIENT = """
import os, sys, threading
import tf_server
task = tf_server.Task({"worker": {"1": "localhost:4711"}}, "worker", 1)
watch = [thread for thread in threading.enumerate() if thread.daemon]
if sys.argv[1] == "stop":
    task.stop()
else:
    os.kill(task._process.pid, int(sys.argv[1]))
for thread in watch:
    thread.join(20)
"""


class TfServerTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.program = os.path.join(folder.name, "penstock")
        with open(self.program, "w", encoding="utf-8") as file:
            file.write(TASK)
        os.chmod(self.program, 0o755)

    def said(self, how):
        """Returns the output of a client whose task ends in this way."""
        env = dict(os.environ, PENSTOCK=self.program, PYTHONPATH=os.path.join(TREE, "tools"))
        client = subprocess.run([sys.executable, "-c", CLIENT, str(how)], env=env, timeout=60,
                                stderr=subprocess.PIPE, text=True, check=True)
        return client.stderr

    def test_names_a_task_that_dies(self):
        self.assertEqual(self.said(int(signal.SIGKILL)),
                         "/job:worker/replica:0/task:1 at grpc://localhost:4711 has died with "
                         "signal 9; sessions with it fail with UNAVAILABLE, such as "
                         "\"Socket closed\"\n")

    def test_a_task_that_is_stopped_has_not_died(self):
        self.assertEqual(self.said("stop"), "")


if __name__ == "__main__":
    unittest.main()
