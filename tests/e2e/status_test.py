#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests an operator's view of a cluster: `penstock status` and `top`, the status page, metrics."""

import json
import os
import re
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cluster import PENSTOCK, StuckCluster, free_ports, main  # noqa: E402


class StatusTest(StuckCluster):
    def setUp(self):
        self.status_port, = free_ports(1)
        self.start_servers({("worker", 0): ["--status_port=%d" % self.status_port]})

    def run_command(self, *command):
        ran = subprocess.run([PENSTOCK, *command], capture_output=True, text=True, timeout=60)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout

    def get(self, path):
        url = "http://127.0.0.1:%d%s" % (self.status_port, path)
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.headers["Content-Type"], answer.read().decode()

    def test_tasks_sessions_and_steps(self):
        self.hang("dequeue")
        said = self.until(lambda: self.run_command("status", self.target),
                          "1 session, 1 step in flight")
        self.assertIn("3 tasks, all answer", said)
        for task in "/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1":
            self.assertRegex(said, task + r" +127\.0\.0\.1:\d+ +alive +\d+ m?s")
        self.assertRegex(said, r"input +FIFOQueue +/job:ps/task:0 +0 +10 +0 +1\b")
        self.assertEqual(self.run_command("top", self.target, "--once").split("\n")[1:4],
                         said.split("\n")[1:4])

    def test_json_has_all_of_it(self):
        self.hang("dequeue")
        self.until(lambda: self.run_command("status", self.target), "1 step in flight")
        cluster = json.loads(self.run_command("status", self.target, "--json"))
        self.assertEqual(cluster["asked"], "/job:worker/replica:0/task:0")
        tasks = {task["name"]: task["report"] for task in cluster["task"]}
        self.assertEqual(len(tasks), 3)
        master = tasks["/job:worker/replica:0/task:0"]
        self.assertEqual(len(master["session"]), 1)
        self.assertEqual(master["steps"]["begun"], "1")
        waits = tasks["/job:ps/replica:0/task:0"]["part"][0]["wait"]
        self.assertEqual(waits[0]["resource"]["name"], "input")

    def test_the_memory_of_tensors(self):
        self.hang("dequeue")
        said = self.until(lambda: self.run_command("stats", self.target), "Memory of sessions")
        amount = r" +[\d.]+ [KMG]?B"
        for task in "/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1":
            self.assertRegex(said, r"\n  " + task + r"/device:CPU:0 +CPU memory" + 3 * amount +
                             r" +\d+ +([\d.]+ [KMG]?B|none)\n")
            self.assertRegex(said, r"\n  \S+ +" + task + 2 * amount + r" +none\n")
        self.tasks["ps", 0].kill()
        self.until(lambda: self.run_command("stats", self.target),
                   "/job:ps/task:0 does not answer")

    def test_a_task_that_is_dead_is_shown(self):
        self.tasks["ps", 0].kill()
        said = self.until(lambda: self.run_command("status", self.target), "1 does not answer")
        self.assertRegex(said, r"/job:ps/task:0 +127\.0\.0\.1:\d+ +does not answer")

    def test_the_page_shows_what_status_says(self):
        self.hang("dequeue")
        page = self.until(lambda: self.get("/")[1], "Nobody fills FIFOQueue &#39;input&#39;")
        self.assertEqual(self.get("/")[0], "text/html; charset=utf-8")
        for text in "1 session, 1 step in flight", "/job:ps/task:0", "<td>input</td>":
            self.assertIn(text, page)
        self.assertIn('http-equiv="refresh"', page)
        references = re.findall(r"""(?:src|href)=["']?([^"'> ]+)""", page)
        self.assertEqual(set(references), {"metrics", "status.json"}, "nothing from elsewhere")
        self.assertEqual(json.loads(self.get("/status.json")[1])["asked"],
                         "/job:worker/replica:0/task:0")

    def test_metrics(self):
        client = self.hang("steps")
        self.until(lambda: self.get("/metrics")[1],
                   'penstock_peer_alive{peer="/job:ps/replica:0/task:0"} 1')
        counted = re.compile(r"^penstock_step_seconds_count [1-9]", re.M)
        self.until(lambda: str(counted.search(self.get("/metrics")[1])), "match")
        kind, text = self.get("/metrics")
        self.assertIn("version=0.0.4", kind)
        values = dict(re.findall(r"^(penstock_[^ ]*) ([^ ]+)$", text, re.M))
        self.assertGreaterEqual(float(values["penstock_steps_total"]), 1)
        self.assertGreaterEqual(float(values['penstock_step_seconds_bucket{le="+Inf"}']), 1)
        self.assertEqual(values["penstock_sessions"], "1")
        self.assertGreater(float(values["penstock_memory_bytes"]), 1e6)
        for line in text.splitlines():  # parses the page like a metrics scraper
            self.assertRegex(line, r"^(# (HELP|TYPE) penstock_\w+ .+|penstock_\w+(\{.*\})? \S+)$")
        self.tasks["ps", 0].kill()
        client.wait(60)
        self.until(lambda: self.get("/metrics")[1], "penstock_steps_failed_total{code=")

    def test_only_what_is_there_is_served(self):
        for path, code in (("/none", 404), ("/../etc/passwd", 404)):
            with self.assertRaises(urllib.error.HTTPError) as raised:
                self.get(path)
            self.assertEqual(raised.exception.code, code)

    def test_other_sites_are_not_answered(self):
        for host, code in (("evil.example", 403), ("localhost:%d" % self.status_port, 200)):
            request = urllib.request.Request("http://127.0.0.1:%d/status.json" % self.status_port,
                                             headers={"Host": host})
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    got, said = answer.status, ""
            except urllib.error.HTTPError as refused:
                got, said = refused.code, refused.read().decode()
            self.assertEqual(got, code)
            self.assertEqual("--status_hosts=evil.example" in said, code == 403)

    def test_a_port_that_is_taken_is_named(self):
        port, = free_ports(1)
        ran = subprocess.run([PENSTOCK, "server", "--job_name=ps", "--task_index=0",
                              "--ps_hosts=127.0.0.1:%d" % port,
                              "--status_port=%d" % self.status_port],
                             capture_output=True, text=True, timeout=60)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("--status_port: cannot listen on 127.0.0.1:%d" % self.status_port, ran.stderr)


if __name__ == "__main__":
    main()
