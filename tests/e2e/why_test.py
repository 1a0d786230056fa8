#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that `penstock why` names the cause of a stuck cluster within five seconds."""

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cluster import PENSTOCK, StuckCluster, main  # noqa: E402
from network import Proxy  # noqa: E402


class WhyCluster(StuckCluster):
    def why(self, *flags):
        """Returns the output of `penstock why`; checks that it takes less than five seconds."""
        begun = time.monotonic()
        ran = subprocess.run([PENSTOCK, "why", self.target, *flags], capture_output=True, text=True,
                             timeout=60)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertLess(time.monotonic() - begun, 5)
        return ran.stdout

    def explained(self, *needed, flags=("--patience_ms=300",)):
        return self.until(lambda: self.why(*flags), *needed)


class WhyTest(WhyCluster):
    def setUp(self):
        self.start_servers()

    def test_nothing_is_stuck(self):
        said = self.explained("3 tasks, all answer", "no step runs", "Nothing is stuck")
        self.assertNotIn("Why:", said)

    def test_a_queue_that_nobody_fills(self):
        self.hang("dequeue")
        said = self.explained("Nobody fills FIFOQueue 'input' on /job:ps/task:0 (0 of 10 elements)",
                              "(QueueDequeueV2)")
        self.assertIn("for the tensor", said)  # the worker's own wait is listed as a consequence

    def test_a_queue_that_nobody_empties(self):
        self.hang("enqueue")
        self.explained("Nobody takes from FIFOQueue 'full' on /job:ps/task:0 (1 of 1 elements)",
                       "(QueueEnqueueV2)")

    def test_two_queues_in_a_cycle(self):
        self.hang("cycle")
        said = self.explained("in a cycle", "FIFOQueue 'left'", "FIFOQueue 'right'", "comes after")
        self.assertNotIn("Nobody", said)

    def test_a_barrier_one_element_short(self):
        self.hang("barrier")
        self.explained("Nobody fills Barrier 'pairs', 1 tuples ready, 1 incomplete, on",
                       "(BarrierTakeMany)")

    def test_an_accumulator_one_gradient_short(self):
        self.hang("accumulator")
        self.explained("Nobody fills ConditionalAccumulator 'gradients'",
                       "(AccumulatorTakeGradient)")

    def test_a_lock_whose_holder_waits(self):
        self.hang("lock")
        said = self.explained("Nobody fills FIFOQueue 'input'", "(MutexLock)", "has locked it")
        self.assertNotIn("Nobody would free", said)

    def test_a_client_that_has_gone(self):
        self.hang("dequeue").kill()
        self.explained("0 sessions; no step runs", "Nothing is stuck")

    def test_a_loop_without_an_end(self):
        self.hang("loop")
        self.explained("computes in /job:worker/task:0", "of loop 'while", "a loop without an end")

    def test_a_worker_that_is_stopped(self):
        self.hang("steps")
        worker = self.tasks["worker", 1]
        os.kill(worker.pid, signal.SIGSTOP)
        self.addCleanup(os.kill, worker.pid, signal.SIGCONT)
        self.explained("/job:worker/task:1 at 127.0.0.1:", "does not answer")

    def test_a_ps_that_is_dead(self):
        self.tasks["ps", 0].kill()
        self.hang("dequeue")
        self.explained("/job:ps/task:0 at 127.0.0.1:", "does not answer",
                       "1 new session of /job:worker/task:0 waits", "for /job:ps/task:0")

    def test_a_chief_that_is_missing(self):
        self.hang("chief", target=self.worker_targets[1])
        self.explained("Nobody has initialised the variables ", "'weights'", "on /job:ps/task:0",
                       "Clients wait for them", "the chief, in most programs /job:worker/task:0, "
                       "has no session: its program has not started, or has ended",
                       "Sessions now: /job:worker/task:1 (1)")

    def test_a_variable_that_nobody_initialises(self):
        self.hang("variable")
        self.explained("Nobody has initialised the variable 'forgotten' on /job:ps/task:0",
                       "Clients wait for it", "/job:worker/task:0, has a session")

    def test_a_disk_that_takes_no_checkpoint(self):
        folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        resource.prlimit(self.tasks["ps", 0].pid, resource.RLIMIT_FSIZE, (65536, 65536))
        self.hang("save", "--checkpoint_dir=" + folder)
        self.explained("Checkpoint %s/model.ckpt-" % folder,
                       "could not be written by /job:ps/task:0", "cannot write", "File too large",
                       "in a row there")

    def test_the_task_asked_is_stopped(self):
        asked = self.tasks["worker", 0]
        os.kill(asked.pid, signal.SIGSTOP)
        self.addCleanup(os.kill, asked.pid, signal.SIGCONT)
        begun = time.monotonic()
        ran = subprocess.run([PENSTOCK, "why", self.target], capture_output=True, text=True,
                             timeout=60)
        self.assertLess(time.monotonic() - begun, 5)
        self.assertEqual(ran.returncode, 1)
        address = self.target.replace("grpc://", "")
        self.assertIn("the task at %s does not answer" % address, ran.stderr)


class PartitionTest(WhyCluster):
    def setUp(self):
        self.proxy = Proxy()
        self.addCleanup(self.proxy.close)
        self.start_servers(proxy=self.proxy)

    def cut(self):
        """Cuts the network between the ps and the worker whose client repeats steps."""
        self.hang("retry")
        self.until(lambda: self.why("--patience_ms=0"), "1 session;")
        self.proxy.cut(self.tasks["worker", 0].pid)

    def test_two_tasks_that_cannot_reach_each_other(self):
        self.cut()
        self.target = self.worker_targets[1]
        self.explained("/job:worker/task:0 cannot reach /job:ps/task:0, for ",
                       "although both of them have answered now", "3 tasks, all answer")

    def test_a_task_that_only_the_operator_reaches(self):
        self.cut()
        self.explained("/job:worker/task:0 cannot reach /job:ps/task:0, for ",
                       "3 tasks, all answer")


class LogTest(StuckCluster):
    def test_the_master_says_so_by_itself(self):
        master = ("worker", 0)
        self.start_servers({master: ["--stuck_after_seconds=1"]})
        self.hang("dequeue")
        said = []
        for line in self.tasks[master].stdout:
            said.append(line)
            if "Nobody fills" in line:
                break
        said = "".join(said)
        self.assertRegex(said, "no progress: step -?[0-9]+, for [12] s")
        self.assertIn("Nobody fills FIFOQueue 'input' on /job:ps/task:0 (0 of 10 elements)", said)


if __name__ == "__main__":
    main()
