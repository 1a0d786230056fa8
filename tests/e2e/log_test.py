#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the logs of tasks: as JSON during a kill and a recovery, and as text."""

import datetime
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cluster import PENSTOCK, TRAIN, ClusterTest, free_ports, main  # noqa: E402

TEXT_LINE = r"^(\[\S+\] )?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (debug|info|warning|error) "


class LogTest(ClusterTest):
    def test_every_line_is_json_through_a_kill_and_a_recovery(self):
        run = self.start("--model=mlp", "--steps=2500", "--save_every_steps=100", ps=1, workers=2,
                         restarts=1, run_flags=["--log_format=json"])
        run.wait_for(r'"step":[1-9]\d\d')
        run.kill("ps", 0)
        self.assertEqual(run.finish(180), 0, run.output())

        events = [json.loads(line) for line in run.lines]
        for event in events:
            for field in ("time", "level", "task", "event", "text"):
                self.assertIsInstance(event.get(field), str, event)
            datetime.datetime.strptime(event["time"], "%Y-%m-%dT%H:%M:%S.%fZ")
            self.assertIn(event["level"], ("debug", "info", "warning", "error"))

        def of(task, name):
            return [e for e in events if e["task"] == task and e["event"] == name]

        ps, chief, other = "/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"
        self.assertEqual(len(of(ps, "server_started")), 2, "killed once")
        told = []
        for worker in (chief, other):
            started, = of(worker, "server_started")
            self.assertIn("ps", started["cluster"])
            self.assertGreater(started["memory_limit"], 0)
            self.assertGreaterEqual(len(of(worker, "session_made")), 2, "a new one after the kill")
            self.assertGreaterEqual(len(of(worker, "session_closed")), 2)
            self.assertEqual(len(of(worker, "server_ended")), 1)
            self.assertTrue(of(worker, "progress"))
            # The training loop logs its failure, the master logs the step's. A worker that was
            # between two steps logs neither.
            failed = of(worker, "step_failed") + of(worker, "task_lost")
            told += [e["text"] for e in failed]
            self.assertTrue(all(e["session"] for e in failed if "session" in e))
            back = of(worker, "task_back")
            self.assertEqual([e["peer"] for e in back], ["/job:ps/replica:0/task:0"])
        self.assertTrue(any("/job:ps/replica:0/task:0" in text for text in told), told)
        restored, = of(chief, "restored")
        saved = [e["checkpoint"] for e in of(chief, "checkpoint")]
        self.assertGreater(len(saved), 2)
        self.assertIn(restored["text"].split()[-1], saved)
        restarted, = of("penstock run", "task_restarted")
        self.assertEqual(restarted["process"], "ps/0")
        self.assertIn("killed by signal 9", restarted["text"])
        printed = [e["text"] for e in events if e["event"] == "output"]
        self.assertTrue(any(text.startswith("test accuracy: 0.") for text in printed), printed)

    def test_text(self):
        run = self.start("--model=mlp", "--steps=30", ps=1, workers=1)
        self.assertEqual(run.finish(60), 0, run.output())
        for task, text in (("ps", "serves at grpc://"), ("worker", "serves at grpc://"),
                           ("worker", "session [0-9a-f]+ made for a client in this process"),
                           ("worker", "session [0-9a-f]+ closed after "),
                           ("worker", "saved .*model.ckpt-30"), ("ps", "has ended")):
            line, _ = run.wait_for(r"%s.*%s" % (task, text), seconds=1)
            self.assertRegex(line.string, TEXT_LINE)
        self.assertNotIn("\x1b", run.output(), "no colour but on a terminal")

    def test_the_level(self):
        run = self.start("--model=mlp", "--steps=30", ps=1, workers=1,
                         run_flags=["--log_level=warning"])
        self.assertEqual(run.finish(60), 0, run.output())
        self.assertFalse([line for line in run.lines if " info " in line], run.output())

    def test_a_server_alone(self):
        port, = free_ports(1)
        command = [PENSTOCK, "server", "--job_name=ps", "--task_index=0", "--until_stdin_ends",
                   "--ps_hosts=127.0.0.1:%d" % port]
        said = subprocess.run(command + ["--log_format=json"], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, check=True)
        self.assertEqual(said.stdout, "")
        names = [json.loads(line)["event"] for line in said.stderr.splitlines()]
        self.assertIn("server_started", names)
        self.assertEqual(names[-1], "server_ended")
        # With text logs, the server prints its address on standard output.
        said = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60, check=True)
        self.assertIn("serves at grpc://127.0.0.1:%d\n" % port, said.stdout)

    def test_unknown_values_are_refused_with_the_choices(self):
        for command in ([PENSTOCK, "server"], [PENSTOCK, "run", "--", "true"], [TRAIN]):
            for flag, choices in (("--log_format=xml", "text, json"),
                                  ("--log_level=loud", "debug, info, warning, error, off")):
                at = 2 if command[0] == PENSTOCK else 1
                done = subprocess.run(command[:at] + [flag] + command[at:], capture_output=True,
                                      text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, 2, done)
                self.assertIn(flag.split("=")[0], done.stderr)
                self.assertIn("expected one of " + choices, done.stderr)
        environment = dict(os.environ, PENSTOCK_LOG_FORMAT="xml")
        done = subprocess.run([TRAIN, "--steps=1"], capture_output=True, text=True, timeout=60,
                              check=False, env=environment)
        self.assertEqual(done.returncode, 2, done)
        self.assertIn("PENSTOCK_LOG_FORMAT in the environment: 'xml'", done.stderr)


if __name__ == "__main__":
    main()
