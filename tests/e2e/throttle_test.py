#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that automatic placement gives fewer nodes of a step to a throttled worker."""

import os
import re
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cluster import PENSTOCK, ClusterTest, main  # noqa: E402

LSTM = "client/examples/stacked_lstm"
NET = ["--layers=4", "--units=96", "--length=12", "--batch_size=128", "--steps=1000000"]
SECOND_WORKER = "/job:worker/replica:0/task:1/"
PERIOD_SECONDS = 0.04


class Throttle:
    """Stops a process for three quarters of each period, until it is closed."""

    def __init__(self, pid):
        self.pid = pid
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.over.is_set():
            os.kill(self.pid, signal.SIGSTOP)
            self.over.wait(0.75 * PERIOD_SECONDS)
            os.kill(self.pid, signal.SIGCONT)
            self.over.wait(0.25 * PERIOD_SECONDS)

    def close(self):
        self.over.set()
        self.thread.join()


class ThrottleTest(ClusterTest):
    def products(self, run):
        """Returns the number of matrix products in the last placement, and how many of them are on
        the second worker."""
        placed = dict(re.findall(r"(?m)(\S+): \(MatMul\): (\S+)$", run.output()))
        return len(placed), sum(SECOND_WORKER in device for device in placed.values())

    def median_us(self, run):
        """Returns the median time of the step that took the most time; None if it is not measured
        yet."""
        ran = subprocess.run([PENSTOCK, "cost", "grpc://" + run.address("worker")],
                             capture_output=True, text=True, timeout=90)
        found = re.search(r"measured: +([\d.]+) us, the median", ran.stdout)
        return float(found[1]) if found else None

    def test_a_throttled_worker_gets_less(self):
        run = self.start(*NET, "--log_device_placement", program=LSTM, ps=1, workers=2)
        run.wait_for(r"step +[1-9]\d\d", seconds=120)
        products, before = self.products(run)
        self.assertGreater(before, 0.2 * products, "both workers are of use")
        throttle = Throttle(run.pid("worker", 1))
        self.addCleanup(throttle.close)
        slowest, share, end = 0, before, time.monotonic() + 120
        while share > 0.6 * before:
            self.assertLess(time.monotonic(), end, "%d of %d products, %d before; %d us" %
                            (share, products, before, slowest))
            slowest = max(slowest, self.median_us(run) or 0)
            share = self.products(run)[1]
        # median_us is the median of the last 32 steps.
        while self.median_us(run) > slowest:
            self.assertLess(time.monotonic(), end, "the step is not faster than %d us" % slowest)


if __name__ == "__main__":
    main()
