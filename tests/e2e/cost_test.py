#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the costs of steps: `penstock cost` for a cluster and for a file, and `penstock whatif`."""

import csv
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cluster import PENSTOCK, StuckCluster, free_ports, main  # noqa: E402

# Multiplies the fed matrix by a variable of 1 MB, and adds a tensor of that size to the variable.
# The variable's colocation attribute names the variable itself, as in TensorFlow's graphs.
GRAPH = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "v" op: "VariableV2" device: "/job:elsewhere/task:7"
       attr { key: "_class" value { list { s: "loc:@v" } } }
       attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: 512 } dim { size: 512 } } } } }
node { name: "read" op: "Identity" input: "v" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "y" op: "MatMul" input: "x" input: "read"
       attr { key: "T" value { type: DT_FLOAT } } }
node { name: "g" op: "MatMul" input: "x" input: "y"
       attr { key: "T" value { type: DT_FLOAT } }
       attr { key: "transpose_a" value { b: true } } }
node { name: "train" op: "AssignAdd" input: "v" input: "g"
       attr { key: "T" value { type: DT_FLOAT } } }
"""
STEP = ["--feed=x:0", "--feed_shape=x:0=128x512", "--target=train"]
CPU = "/job:worker/replica:0/task:0/device:CPU:0"


class CostTest(StuckCluster):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.graph = os.path.join(folder.name, "graph.pbtxt")
        self.costs = os.path.join(folder.name, "costs.json")
        with open(self.graph, "w", encoding="utf-8") as file:
            file.write(GRAPH)

    def ask(self, *command, code=0):
        """Checks that the command ends with `code`. Returns its output, or its error if `code` is
        not 0."""
        environment = {**os.environ, "XDG_CACHE_HOME": os.path.dirname(self.graph)}
        ran = subprocess.run([PENSTOCK, *command], capture_output=True, text=True, timeout=90,
                             env=environment)
        self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
        return ran.stdout if code == 0 else ran.stderr

    def test_steps_of_a_cluster_are_measured_and_predicted(self):
        self.start_servers()
        self.assertIn("is the master of no session", self.ask("cost", self.target, code=1))
        self.hang("steps")
        said = self.until(lambda: self.ask("cost", self.target), " than measured")
        self.assertRegex(said, r"measured: +[\d.]+ us, the median of the last of \d+ executions")
        self.assertRegex(said, r"predicted: [\d.]+ us, \d+ % (less|more) than measured")
        self.assertRegex(said, r"/job:ps/replica:0/task:0/device:CPU:0 +\d+ nodes")
        for job in ("ps", "worker"):
            self.assertRegex(said, r"/job:%s/replica:0/task:0/device:CPU:0: [\d.e+]+ GFLOP/s, "
                                   r"[\d.e+]+ GB/s, [\d.e+]+ us per kernel, \d+ at once "
                                   r"\(measured " % job)
        self.assertIn("--save: nothing was measured",
                      self.ask("cost", self.target, "--save=" + self.costs, code=1))
        self.assertIn("is the master of no session 'other'",
                      self.ask("cost", self.target, "--session=other", code=1))

    def test_a_calibration_of_another_version_is_measured_anew(self):
        folder = os.path.join(os.path.dirname(self.graph), "penstock")
        os.mkdir(folder)
        path = os.path.join(folder, "calibration.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"penstock_calibration": 7}, file)
        address = "127.0.0.1:%d" % free_ports(1)[0]
        command = [PENSTOCK, "server", "--job_name=worker", "--task_index=0",
                   "--worker_hosts=" + address, "--calibration_file=" + path, "--until_stdin_ends"]
        for said in ("is a calibration of version 7, expected version 1: measured anew", ""):
            server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True)
            self.addCleanup(server.kill)
            self.assertIn("serves at", server.stdout.readline())
            _, errors = server.communicate(timeout=60)
            warned = [line for line in errors.splitlines() if "calibration" in line]
            self.assertEqual([said in line for line in warned], [True] if said else [], errors)
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
        self.assertEqual(kept["penstock_calibration"], 1)
        self.assertGreater(kept["cpu"]["flops_per_ns"], 0)
        self.check_rates_of_predictions(path)

    def check_rates_of_predictions(self, path):
        step = [*STEP, "--calibration_file=none"]
        for command in ("place", "whatif"):
            graph = self.graph
            if command == "place":
                graph = os.path.join(os.path.dirname(self.graph), "anywhere.pbtxt")
                with open(graph, "w", encoding="utf-8") as file:
                    file.write(GRAPH.replace('device: "/job:elsewhere/task:7"', ""))
            measured = "rates of CPUs: measured on this machine, from " + path
            self.assertIn(measured, self.ask(command, graph, *STEP))
            self.assertIn("rates of CPUs: typical", self.ask(command, graph, *step))

    def write_costs(self, version, device=CPU, nanos=7e6):
        with open(self.costs, "w", encoding="utf-8") as file:
            json.dump({"penstock_costs": version,
                       "node": [{"node": "y", "time": [{"device": device, "nanos": nanos}]}]}, file)

    def test_a_graph_in_a_file(self):
        self.assertIn("assigned to /job:elsewhere/task:7 but",
                      self.ask("cost", self.graph, *STEP, "--devices=" + CPU, code=1))
        with open(self.graph, "w", encoding="utf-8") as file:
            file.write(GRAPH.replace('device: "/job:elsewhere/task:7"', ""))
        estimated = self.ask("cost", self.graph, *STEP, "--devices=" + CPU, "--csv")
        rows = {row["node"]: row for row in csv.DictReader(estimated.splitlines())}
        self.assertEqual(rows["y"]["flops"], str(2 * 128 * 512 * 512))
        self.assertEqual(rows["y"]["bytes"], str(128 * 512 * 4))
        self.assertEqual(rows["y"]["measured"], "0")
        self.write_costs(1)
        measured = self.ask("cost", self.graph, *STEP, "--devices=" + CPU, "--csv",
                            "--costs=" + self.costs)
        first = next(csv.DictReader(measured.splitlines()))
        self.assertEqual((first["node"], first["us"], first["measured"]), ("y", "7000.000", "1"))
        placed = self.ask("place", self.graph, *STEP, "--devices=" + CPU, "--costs=" + self.costs)
        self.assertGreater(float(re.search(r"predicted step: ([\d.]+) us", placed)[1]), 7000)

    def test_the_memory_of_a_graph_in_a_file(self):
        with open(self.graph, "w", encoding="utf-8") as file:
            file.write(GRAPH.replace('device: "/job:elsewhere/task:7"', ""))
        said = self.ask("cost", self.graph, *STEP, "--devices=" + CPU)
        # y and g: 128 x 512 and 512 x 512 floats.
        self.assertRegex(said, r"%s +1\.3 MB of tensors at the peak, beside 1\.0 MB of variables "
                               r"and 262 KB fed\n" % CPU)
        self.assertRegex(said, r"while g runs, the largest are\n +1\.0 MB  g:0\n +262 KB  y:0\n")
        refused = self.ask("cost", self.graph, *STEP, "--devices=" + CPU, "--memory_limit=1m",
                           code=1)
        self.assertIn("memory_limit: the step does not fit into 1048576 bytes", refused)
        self.assertRegex(refused, CPU + r": 1310720 bytes while 'g' runs, 262144 too many")
        self.assertIn("     1048576 bytes  g:0", refused)

    def steps_per_second(self, *flags):
        said = self.ask("whatif", self.graph, *STEP, *flags)
        return float(re.search(r"all workers: ([\d.]+) steps/s", said)[1]), said

    def test_what_if_there_were_more(self):
        slow, said = self.steps_per_second("--workers=16", "--net=1g")
        self.assertIn("bottleneck: the parameter servers' ", said)
        self.assertIn("ps 0: 2097152 bytes in a step of a worker", said)
        fast, said = self.steps_per_second("--workers=16", "--net=100g")
        self.assertGreater(fast, 10 * slow)
        self.assertIn("0 % of the nodes' time was measured", said)
        self.write_costs(1, nanos=1e9)
        one, said = self.steps_per_second("--workers=1", "--costs=" + self.costs)
        self.assertLess(one, 1, "the measured second, and as much again for the other product")
        self.assertIn("bottleneck: the workers' computing", said)

    def test_mistakes_are_named(self):
        self.write_costs(2)
        for flags, error in (
                (["--costs=" + self.costs], "costs of version 2, expected version 1"),
                (["--costs=" + self.graph], "is not a file of costs"),
                (["--calibration_file=" + self.costs], "--calibration_file: "),
                (["--devices=/job:ps"], "--devices: '/job:ps' is not a full device name"),
                (["--feed_shape=z:0=3"], "--feed_shape: 'z:0=3' is of a tensor that --feed does"),
                (["--feed_shape=x:0=3y"], "--feed_shape: 'x:0=3y' is no shape"),
                (["--save=" + self.costs], "--save and --session are for the sessions")):
            if "--save" not in flags[0]:
                self.assertIn(error, self.ask("place", self.graph, "--feed=x:0", "--target=train",
                                              *flags, code=1))
            self.assertIn(error, self.ask("cost", self.graph, "--feed=x:0", "--target=train",
                                          *flags, code=1))
        self.assertIn("--net: 'fast' is no bandwidth",
                      self.ask("whatif", self.graph, *STEP, "--net=fast", code=1))
        self.assertIn("--costs is for a graph", self.ask("cost", "grpc://127.0.0.1:1",
                                                         "--costs=" + self.costs, code=1))
        self.write_costs(1, device="/job:worker")
        self.assertIn("node 'y': '/job:worker' is not a full device name",
                      self.ask("whatif", self.graph, *STEP, "--costs=" + self.costs, code=1))


if __name__ == "__main__":
    main()
