#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the findings of `penstock doctor` about misconfigured clusters."""

import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cluster import PENSTOCK, ClusterTest, free_ports, main  # noqa: E402


class Cluster:
    """A cluster of one ps and two workers, each a `penstock server`."""

    def __init__(self, test):
        self.ps, *self.workers = ["127.0.0.1:%d" % port for port in free_ports(3)]
        self.test = test
        self.hosts = ["--ps_hosts=" + self.ps, "--worker_hosts=" + ",".join(self.workers)]

    def start(self, job, index, *flags, hosts=None):
        task = ["--job_name=" + job, "--task_index=%d" % index]
        server = subprocess.Popen(
            [PENSTOCK, "server", "--grace_seconds=0", *task, *(hosts or self.hosts), *flags],
            stdout=subprocess.PIPE, text=True)
        self.test.addCleanup(server.stdout.close)
        self.test.addCleanup(server.wait)
        self.test.addCleanup(server.kill)
        server.stdout.readline()  # the server serves when it prints its first line
        return server

    def start_all(self):
        return [self.start("ps", 0), self.start("worker", 0), self.start("worker", 1)]


class DoctorTest(ClusterTest):
    def doctor(self, *flags, variables=None, folder=None, expect=1):
        """Returns the findings, as "level subject: what"."""
        environment = {name: value for name, value in os.environ.items()
                       if not name.lower().endswith("_proxy")}
        asked = subprocess.run(
            [os.path.abspath(PENSTOCK), "doctor", "--timeout_seconds=4", "--json", *flags],
            env={**environment, **(variables or {})}, cwd=folder, capture_output=True, text=True,
            timeout=60, check=False)
        self.assertEqual(asked.returncode, expect, asked.stdout + asked.stderr)
        if expect == 2:
            return asked.stderr
        findings = json.loads(asked.stdout)
        return "\n".join("%s %s: %s" % (f["level"], f["subject"], f["what"])
                         for f in findings if f["level"] != "ok")

    def test_a_cluster_that_is_well(self):
        cluster = Cluster(self)
        cluster.start_all()
        self.assertEqual(self.doctor(*cluster.hosts, expect=0), "")
        shown = subprocess.run([PENSTOCK, "doctor", *cluster.hosts], capture_output=True, text=True,
                               timeout=60, check=False)
        self.assertIn("ok       /job:worker/task:1 at " + cluster.workers[1], shown.stdout)
        self.assertTrue(shown.stdout.endswith("0 errors, 0 warnings\n"), shown.stdout)

    def test_before_anything_is_started(self):
        cluster = Cluster(self)
        said = self.doctor(*cluster.hosts, "--job_name=ps", "--task_index=0", expect=0)
        self.assertNotIn("/job:ps", said)
        self.assertEqual(said.count("is not running: Connection refused"), 2, said)

    def test_tasks_that_are_missing_or_stand_still(self):
        cluster = Cluster(self)
        ps = cluster.start("ps", 0)
        cluster.start("worker", 0)
        said = self.doctor(*cluster.hosts)
        self.assertEqual(said, "error /job:worker/task:1 at %s: is not running: Connection refused"
                         % cluster.workers[1])
        ps.send_signal(signal.SIGSTOP)
        self.addCleanup(ps.send_signal, signal.SIGCONT)
        self.assertIn("error /job:ps/task:0 at %s: is connected to, but says nothing" % cluster.ps,
                      self.doctor(*cluster.hosts))

    def test_addresses_of_others(self):
        cluster = Cluster(self)
        cluster.start_all()
        swapped = ["--ps_hosts=" + cluster.workers[0],
                   "--worker_hosts=%s,%s" % (cluster.ps, cluster.workers[1])]
        said = self.doctor(*swapped)
        self.assertIn("/job:ps/task:0 at %s: says that it is /job:worker/replica:0/task:0"
                      % cluster.workers[0], said)
        self.assertIn("/job:worker/task:0 at %s: says that it is /job:ps/replica:0/task:0"
                      % cluster.ps, said)
        web = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
        threading.Thread(target=web.serve_forever, daemon=True).start()
        self.addCleanup(web.server_close)
        self.addCleanup(web.shutdown)
        port = web.server_address[1]
        said = self.doctor("--ps_hosts=127.0.0.1:%d,no-such-host.invalid:2222" % port,
                           "--worker_hosts=" + cluster.workers[0])
        self.assertIn("/job:ps/task:0 at 127.0.0.1:%d: what listens there is not a task" % port,
                      said)
        self.assertIn("/job:ps/task:1 at no-such-host.invalid:2222: the name has no address", said)

    def test_tasks_that_were_started_otherwise(self):
        cluster = Cluster(self)
        elsewhere = ["--ps_hosts=" + cluster.ps, "--worker_hosts=127.0.0.1:1," + cluster.workers[1]]
        cluster.start("ps", 0, hosts=elsewhere)
        cluster.start("worker", 0, "--protocol=grpc")
        cluster.start("worker", 1)
        said = self.doctor(*cluster.hosts)
        self.assertIn("warning /job:ps/task:0 at %s: was started with /job:worker/task:0 at "
                      "127.0.0.1:1, here it is at %s" % (cluster.ps, cluster.workers[0]), said)
        self.assertIn("error /job:worker/task:0 at %s: moves tensors by protocol 'grpc', "
                      "expected 'auto'" % cluster.workers[0], said)

    def test_a_server_logs_what_is_wrong_when_it_starts(self):
        cluster = Cluster(self)
        cluster.start("ps", 0, "--protocol=grpc")
        web = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
        threading.Thread(target=web.serve_forever, daemon=True).start()
        self.addCleanup(web.server_close)
        self.addCleanup(web.shutdown)
        # Worker 1 has not been started, which the doctor must not report as a mistake.
        hosts = ["--ps_hosts=%s,127.0.0.1:%d,no-such-host.invalid:2222"
                 % (cluster.ps, web.server_address[1]), cluster.hosts[1]]
        server = subprocess.Popen(
            [PENSTOCK, "server", "--job_name=worker", "--task_index=0", *hosts],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "http_proxy": "http://127.0.0.1:1", "TF_CONFIG": ""})
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        end = threading.Timer(10, server.terminate)  # closes the task's output, which ends the log
        end.start()
        self.addCleanup(end.cancel)
        said = ""
        for line in server.stderr:
            said += line
            if "no-such-host" in line and "the name has no address" in line:
                break
        self.assertIn("warning /job:worker/task:0: http_proxy: is set", said)
        self.assertIn("error /job:worker/task:0: /job:ps/task:0 at %s: moves tensors by "
                      "protocol 'grpc', expected 'auto'; start all tasks" % cluster.ps, said)
        self.assertIn("what listens there is not a task of Penstock", said)
        self.assertIn("the name has no address", said)
        self.assertNotIn("is not running", said)

    def test_replicas_of_a_ps(self):
        cluster = Cluster(self)
        second = "127.0.0.1:%d" % free_ports(1)[0]
        cluster.hosts.append("--ps_replica_hosts=" + second)
        cluster.start_all()
        said = self.doctor(*cluster.hosts)
        self.assertEqual(said, "error /job:ps/task:0 at %s: is not running: Connection refused"
                         % second)
        cluster.start("ps", 0, "--replica_index=1")
        self.assertEqual(self.doctor(*cluster.hosts, expect=0), "")
        self.assertIn("--ps_replica_hosts: 2 addresses for 1 parameter servers",
                      self.doctor(*cluster.hosts[:2], "--ps_replica_hosts=a:1,b:1", expect=2))

    def test_a_port_that_is_taken(self):
        cluster = Cluster(self)
        with socket.create_server(("127.0.0.1", int(cluster.ps.split(":")[1]))):
            said = self.doctor(*cluster.hosts, "--job_name=ps", "--task_index=0")
        self.assertIn("error /job:ps/replica:0/task:0: cannot listen on %s: Address already in use"
                      % cluster.ps, said)

    def test_checkpoint_directories(self):
        cluster = Cluster(self)
        cluster.start_all()
        folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        shared = ["--checkpoint_dir=" + os.path.join(folder, "run")]
        self.assertEqual(self.doctor(*cluster.hosts, *shared, expect=0), "")
        self.assertEqual(os.listdir(os.path.join(folder, "run")), [], "nothing is left behind")
        # The servers run in another current folder.
        said = self.doctor(*cluster.hosts, "--checkpoint_dir=run", folder=folder)
        self.assertEqual(said.count("does not see what is written here"), 3, said)
        with open(os.path.join(folder, "file"), "w"):
            pass
        said = self.doctor(*cluster.hosts, "--checkpoint_dir=" + os.path.join(folder, "file"))
        self.assertIn("no checkpoint could be written: ", said)

    def test_the_environment(self):
        cluster = Cluster(self)
        cluster.start_all()
        config = json.dumps({"cluster": {"ps": [cluster.ps], "worker": cluster.workers},
                             "task": {"type": "worker", "index": 1}})
        self.assertEqual(self.doctor(variables={"TF_CONFIG": config}, expect=0), "")
        said = self.doctor(*cluster.hosts, "--job_name=ps", "--task_index=0",
                           variables={"TF_CONFIG": config, "http_proxy": "http://127.0.0.1:1"},
                           expect=0)
        self.assertIn("warning TF_CONFIG: says otherwise than the flags: "
                      "/job:worker/replica:0/task:1", said)
        self.assertIn("warning http_proxy: is set", said)

    def test_mistakes_in_the_flags(self):
        for flags, message in (
                ([], "--ps_hosts, --worker_hosts: give the cluster"),
                (["--ps_hosts=a"], "--ps_hosts: "),
                (["--ps_hosts=a:1", "--worker_hosts=a:1"], "'a:1' is the address of both"),
                (["--ps_hosts=a:1", "--job_name=pss"], "--job_name: 'pss' is not a job"),
                (["--ps_hosts=a:1", "--job_name=ps", "--task_index=1"], "--task_index: 1 is out"),
                (["--ps_hosts=a:1", "--task_index=1"], "--task_index requires --job_name")):
            self.assertIn(message, self.doctor(*flags, expect=2))
        said = self.doctor("--ps_hosts=localhost:1", "--worker_hosts=no-such-host.invalid:1")
        self.assertIn("error the cluster: has 'localhost:1', which every host takes for itself",
                      said)
        self.assertIn("error the cluster: has no chief", self.doctor("--ps_hosts=127.0.0.1:1"))


if __name__ == "__main__":
    main()
