#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests `penstock trace` on a cluster that trains."""

import collections
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cluster import PENSTOCK, StuckCluster, main  # noqa: E402


class TraceTest(StuckCluster):
    def trace(self, *flags, code=0):
        ran = subprocess.run([PENSTOCK, "trace", *flags], capture_output=True, text=True,
                             timeout=90, check=False)
        self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
        return ran.stdout + ran.stderr

    def check_time_line(self, path):
        """Checks that boxes of one lane are nested, that transfers have bytes and a transport, and
        that arrows have two ends."""
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        self.assertEqual(sorted(name.split(",")[0] for name in processes.values()),
                         ["/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1", "steps"])
        lanes = {(e["pid"], e["tid"]): e["args"]["name"]
                 for e in events if e["name"] == "thread_name"}
        boxes = collections.defaultdict(list)
        arrows = collections.Counter()
        for event in events:
            if event["ph"] == "X":
                boxes[event["pid"], event["tid"]].append((event["ts"], event["dur"]))
            if event["ph"] in "sf":
                arrows[event["id"], event["ph"]] += 1
        for lane, times in boxes.items():
            self.assertIn(lane, lanes)
            for (start, length), (after, _) in zip(times, times[1:]):
                self.assertGreaterEqual(after, start + length - 0.002, lanes[lane])
        names = " ".join(lanes.values())
        for lane in "CPU:0 thread", "CPU:0 queueing", "receives":
            self.assertIn(lane, names)
        self.assertTrue(arrows)
        self.assertEqual(set(arrows.values()), {1})
        self.assertEqual(len(arrows) % 2, 0)
        transfers = [e["args"] for e in events if "road" in e.get("args", {})]
        self.assertTrue(transfers)
        self.assertEqual({t["road"] for t in transfers}, {"shm"})
        # The weights of the first layer: 784 x 512 floats.
        self.assertGreaterEqual(max(t["bytes"] for t in transfers), 784 * 512 * 4)

    def test_a_cluster_that_trains(self):
        run = self.start("--model=mlp", "--steps=1000000", ps=1, workers=2)
        run.wait_for(r"step +[1-9]\d\d")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            said = self.trace("grpc://" + run.address("ps"), "--steps=8", "--out=" + path)
            self.check_time_line(path)
        self.assertIn("Recorded 16 steps:", said)
        self.assertIn("/job:ps/task:0: is the master of no session", said)
        for worker in 0, 1:
            self.assertIn("/job:worker/task:%d: 8 steps\n" % worker, said)
            self.assertRegex(said, r"/job:worker/task:%d: [-+]\d+\.\d+ ms, to within \d+\.\d+ ms" %
                             worker)
        self.assertEqual(len(re.findall(r"(?m)^ *\d+\. +[\d.]+ ms +[\d.]+ % +\d+x  .* on /job:",
                                        said)), 10, said)
        shares = [float(share) for share in
                  re.findall(r"(?m)^ {1,4}([\d.]+) % +[\d.]+ ms  [a-z]", said)]
        self.assertAlmostEqual(sum(shares), 100, delta=0.4, msg=said)
        self.assertIn("transfers\n", said)
        run.wait_for(r"step +\d+", start=len(run.lines))  # the training continues

    def test_the_timeline_of_a_training_names_transports(self):
        for flags, road in ([], "shm"), (["--protocol=grpc"], "grpc"):
            with self.subTest(road=road), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "steps.json")
                run = self.start("--model=mlp", "--steps=100", "--trace_file=" + path, *flags,
                                 ps=1, workers=2)
                self.assertEqual(run.finish(), 0, run.output())
                with open(path, encoding="utf-8") as file:
                    events = json.load(file)["traceEvents"]
                transfers = [e["args"] for e in events if e["name"] == "RecvTensor"]
                self.assertTrue(transfers)
                self.assertEqual({t.get("road") for t in transfers}, {road})

    def test_nothing_runs(self):
        self.start_servers()
        said = self.trace(self.target, "--timeout=1", code=1)
        self.assertIn("/job:worker/task:0: is the master of no session", said)
        self.assertIn("no step was recorded", said)
        self.assertIn("does not answer", self.trace("grpc://127.0.0.1:1", code=1))
        self.assertIn("is not the address of a task", self.trace("nonsense", code=1))
        self.assertIn("--steps", self.trace(self.target, "--steps=0", code=2))


if __name__ == "__main__":
    main()
