#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests which clients a secured cluster accepts, with certificates made as SECURITY.md says."""

import os
import re
import subprocess
import sys
import tempfile
import time
import unittest.mock
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cluster import HANG, PENSTOCK, READER, TRAIN, ClusterTest, free_ports, main  # noqa: E402

DOCUMENT = "SECURITY.md"
TOKEN = "PENSTOCK_TOKEN_FILE"
NOBODY = 65534


def blocks():
    """Returns the blocks of commands in the document."""
    with open(DOCUMENT) as f:
        return re.findall(r"^```sh\n(.*?)^```$", f.read(), re.DOTALL | re.MULTILINE)


def shell(script, folder, **env):
    """Runs a script of bash. Fails, with the script's output, if it does not end in time."""
    try:
        return subprocess.run(["bash", "-euc", script], cwd=folder, env=dict(os.environ, **env),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=170, check=False)
    except subprocess.TimeoutExpired as late:
        raise AssertionError("not done within 170 s:\n%s" % late.stdout) from None


def other_user_can_run():
    """Returns whether this process can switch to another user: root can, except in a sandbox's user
    namespace."""
    try:
        return subprocess.run(["true"], user=NOBODY, cwd="/", check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def new_folder():
    return tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))


def make_certificates(folder):
    done = shell(blocks()[0], folder)
    assert done.returncode == 0, done.stdout


class SecurityTest(ClusterTest):
    @classmethod
    def setUpClass(cls):
        cls.ours, cls.theirs = new_folder(), new_folder()
        for folder in (cls.ours, cls.theirs):
            make_certificates(folder)
        done = shell("openssl x509 -req -in task.csr -CA ca.pem -CAkey ca.key -CAcreateserial "
                     "-days -1 -extfile names -out expired.pem; "
                     "openssl rand -hex 32 > wrong_token; chmod 644 wrong_token", cls.ours)
        assert done.returncode == 0, done.stdout

    def secured(self, **changes):
        """Returns the environment variables of a task of the cluster; a change to None removes a
        variable."""
        names = {"TLS_CA": "ca.pem", "TLS_CERT": "task.pem", "TLS_KEY": "task.key",
                 "TOKEN_FILE": "token"}
        env = {"PENSTOCK_" + name: os.path.join(self.ours, file) for name, file in names.items()}
        env["PENSTOCK_TLS_CLIENT_AUTH"] = "1"
        for name, value in changes.items():
            env["PENSTOCK_" + name] = value
        return {name: value for name, value in env.items() if value is not None}

    def plain(self, **variables):
        return {"PENSTOCK_" + name: value for name, value in variables.items()}

    def run_with(self, env, command, seconds=60):
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds,
                              env=dict(os.environ, **env), check=False)
        return done.returncode, done.stdout, done.stderr

    def serve(self, env, *flags, job="worker"):
        """Starts a task, and waits until it serves; returns its address."""
        address = "127.0.0.1:%d" % free_ports(1)[0]
        self.server = subprocess.Popen(
            [PENSTOCK, "server", "--job_name=" + job, "--task_index=0",
             "--%s_hosts=%s" % (job, address), *flags],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=dict(os.environ, **env))
        for stream in (self.server.stdout, self.server.stderr):
            self.addCleanup(stream.close)
        self.addCleanup(self.server.wait)
        self.addCleanup(self.server.kill)
        self.said = []
        for line in self.server.stdout:
            self.said.append(line)
            if " may hold " in line:
                return address
        self.fail("it does not serve:\n%s%s" % ("".join(self.said), self.server.stderr.read()))

    def refused(self, env, address, *parts):
        """Checks that every kind of client soon ends with a one-line error."""
        for command in ([PENSTOCK, "status", "grpc://" + address],
                        [READER, "--target=grpc://" + address]):
            with self.subTest(client=command[0], parts=parts):
                begin = time.monotonic()
                code, _, error = self.run_with(env, command)
                lines = error.splitlines()
                self.assertGreater(code, 0, "a signal has ended it: " + error)
                self.assertEqual(len(lines), 1, error)
                self.assertIn(address, lines[0])
                for part in parts:
                    self.assertIn(part, lines[0])
                self.assertLess(time.monotonic() - begin, 20)

    def test_training_over_mutual_tls_with_a_token(self):
        with unittest.mock.patch.dict(os.environ, self.secured()):
            run = self.start("--model=mlp", "--steps=500")
            run.wait_for("step ")
            address = run.address("worker")
            self.assertEqual(self.run_with({}, [PENSTOCK, "status", "grpc://" + address])[0], 0,
                             run.output())
        self.assertIn("the task speaks TLS",
                      self.run_with({}, [PENSTOCK, "status", "grpc://" + address])[2])
        self.assertEqual(run.finish(), 0, run.output())
        self.assertIn("test accuracy: ", run.output())
        self.assertNotRegex(run.output(), "warning .*(TLS|token)")

    def test_training_with_a_token_alone(self):
        token = self.plain(TOKEN_FILE=os.path.join(self.ours, "token"))
        with unittest.mock.patch.dict(os.environ, token):
            run = self.start("--model=mlp", "--steps=10")
            self.assertEqual(run.finish(), 0, run.output())
        self.assertIn("test accuracy: ", run.output())
        self.assertIn("travels in the clear", run.output())

    def test_strangers_of_a_mutual_tls_cluster(self):
        address = self.serve(self.secured())
        self.assertEqual(self.run_with(self.secured(),
                                       [PENSTOCK, "status", "grpc://" + address])[0], 0)
        self.refused({}, address, "the task speaks TLS, this process does not",
                     "--tls_ca (PENSTOCK_TLS_CA)")
        self.refused(self.secured(TLS_CA=os.path.join(self.theirs, "ca.pem")), address,
                     "does not come from an authority", "--tls_ca")
        self.refused(self.secured(TLS_CERT=None, TLS_KEY=None, TLS_CLIENT_AUTH=None), address,
                     "wants a certificate of its clients", "--tls_cert")
        self.refused(self.secured(TLS_CERT=os.path.join(self.theirs, "task.pem"),
                                  TLS_KEY=os.path.join(self.theirs, "task.key")), address,
                     "refuses this process's certificate", "--tls_ca")
        self.refused(self.secured(TLS_SERVER_NAME="other.example"), address,
                     "is not for 'other.example'", "--tls_server_name")
        self.refused(self.secured(TOKEN_FILE=None), address, "wants a token", TOKEN)
        self.refused(self.secured(TOKEN_FILE=os.path.join(self.ours, "wrong_token")), address,
                     "is not one of this cluster's", TOKEN)

    def test_a_flag_beats_the_environment(self):
        address = self.serve(self.secured(), "--tls_client_auth=false")
        without = self.secured(TLS_CERT=None, TLS_KEY=None, TLS_CLIENT_AUTH=None)
        code, _, error = self.run_with(without, [PENSTOCK, "status", "grpc://" + address])
        self.assertEqual(code, 0, error)

    def test_a_secured_client_of_a_plain_task(self):
        address = self.serve({})
        self.refused(self.secured(TOKEN_FILE=None), address, "the task does not speak TLS",
                     "--tls_cert")

    def test_the_doctor_says_so(self):
        address = self.serve(self.secured())
        doctor = [PENSTOCK, "doctor", "--worker_hosts=" + address]
        code, found, _ = self.run_with(self.secured(), doctor)
        self.assertEqual(code, 0, found)
        for env, what in [({}, "the task speaks TLS"),
                          (self.secured(TOKEN_FILE=None), "wants a token")]:
            code, found, _ = self.run_with(env, doctor)
            self.assertEqual(code, 1, found)
            self.assertRegex(found, "error +/job:worker/task:0 at %s: does not let this process "
                             "in: .*%s" % (address, what))

    def test_tasks_that_do_not_fit_together(self):
        ps, worker = ["127.0.0.1:%d" % port for port in free_ports(2)]
        hosts = ["--ps_hosts=" + ps, "--worker_hosts=" + worker]
        for job, env in (("ps", {}), ("worker", self.secured(TOKEN_FILE=None))):
            task = subprocess.Popen([PENSTOCK, "server", "--job_name=" + job, "--task_index=0",
                                     *hosts], stdout=subprocess.PIPE, env=dict(os.environ, **env))
            self.addCleanup(task.stdout.close)
            self.addCleanup(task.wait)
            self.addCleanup(task.kill)
        code, _, error = self.run_with(self.secured(TOKEN_FILE=None),
                                       [HANG, "--kind=dequeue", "--target=grpc://" + worker], 100)
        self.assertNotEqual(code, 0)
        self.assertRegex(error, "/job:ps/replica:0/task:0 at %s.*the task does not speak TLS, this "
                         "process does: start the task with --tls_cert" % ps)

    def test_wrong_files_are_named_at_start(self):
        def mistake(parts, **changes):
            code, _, error = self.run_with(
                self.secured(**changes),
                [PENSTOCK, "server", "--job_name=worker", "--task_index=0",
                 "--worker_hosts=127.0.0.1:0"])
            self.assertEqual(code, 2, error)
            self.assertEqual(len(error.splitlines()), 1, error)
            for part in parts:
                self.assertIn(part, error)

        expired = os.path.join(self.ours, "expired.pem")
        mistake(["--tls_cert", expired, "expired on"], TLS_CERT=expired)
        mistake(["--tls_key", "/no/such.key", "No such file"], TLS_KEY="/no/such.key")
        mistake(["--tls_ca", "is missing"], TLS_CA=None)
        mistake(["--token_file", "/no/such"], TOKEN_FILE="/no/such")
        mistake(["PENSTOCK_TLS_CLIENT_AUTH", "maybe"], TLS_CLIENT_AUTH="maybe")
        mistake(["--file_root", "/no/such"], FILE_ROOT="/no/such")

    def test_a_token_that_others_may_read_is_warned_of(self):
        self.serve(self.secured(TOKEN_FILE=os.path.join(self.ours, "wrong_token")))
        self.assertRegex(self.server.stderr.readline(),
                         r" warning /job:\S+: --token_file .*other users may read .*chmod 600")

    def test_ops_stay_in_the_file_root(self):
        inside = new_folder()
        with unittest.mock.patch.dict(os.environ, self.plain(FILE_ROOT=inside)):
            run = self.start("--model=mlp", "--steps=5")  # the task saves in its own folder
            self.assertNotEqual(run.finish(), 0, run.output())
            self.assertRegex(run.output(), r"'%s\S*' is outside of --file_root "
                             r"\(PENSTOCK_FILE_ROOT\)=%s" % (run.folder, inside))
            self.assertRegex(run.output(), r"\{\{node \S*[sS]ave")
        self.assertEqual([f for f in os.listdir(run.folder) if ".data-" in f], [])
        with unittest.mock.patch.dict(os.environ, self.plain(FILE_ROOT=os.path.dirname(inside))):
            run = self.start("--model=mlp", "--steps=5")
            self.assertEqual(run.finish(), 0, run.output())

    def test_a_clients_sessions(self):
        address = self.serve({}, "--max_sessions_per_client=1")
        training = subprocess.Popen(
            [TRAIN, "--job_name=worker", "--task_index=0", "--worker_hosts=" + address,
             "--server=grpc://" + address, "--model=mlp", "--steps=1000000"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(training.stdout.close)
        self.addCleanup(training.wait)
        self.addCleanup(training.kill)
        for line in training.stdout:
            if "step " in line:
                break
        self.assertIsNone(training.poll())
        code, _, error = self.run_with({}, [READER, "--target=grpc://" + address])
        self.assertNotEqual(code, 0)
        self.assertIn("--max_sessions_per_client=1: the client at 127.0.0.1 has 1 sessions", error)

    def train(self, address, *flags):
        return self.run_with(
            {}, [TRAIN, "--job_name=worker", "--task_index=0", "--worker_hosts=" + address,
                 "--server=grpc://" + address, "--model=mlp", *flags])

    def test_a_long_message_names_the_limit(self):
        address = self.serve({}, "--max_message_bytes=2m")
        code, _, error = self.train(address, "--steps=2", "--batch_size=5000")
        self.assertNotEqual(code, 0)
        self.assertIn("--max_message_bytes", error)
        self.assertIn("2097152", error)

    def test_steps_in_flight(self):
        address = self.serve({}, "--max_steps_in_flight=1")
        code, _, error = self.train(address, "--steps=20", "--concurrent_steps=8")
        self.assertNotEqual(code, 0)
        self.assertRegex(error, "--max_steps_in_flight=1: session [0-9a-f]+ has 1 steps in flight")

    def test_the_status_page_of_a_secured_task(self):
        port = free_ports(1)[0]
        self.serve(self.secured(), "--status_port=%d" % port)
        self.assertIn("at http://127.0.0.1:%d/\n" % port, "".join(self.said))
        url = "http://127.0.0.1:%d/metrics" % port
        with urllib.request.urlopen(url, timeout=10) as page:  # a client that belongs to this user
            self.assertIn(b"penstock", page.read())
        if not other_user_can_run():
            return
        with open(os.path.join(self.ours, "token"), encoding="ascii") as f:
            token = f.read().strip()
        for sent, answer in [("Authorization: Bearer " + token, "200"), ("X-Nothing: x", "401"),
                             ("Authorization: Bearer wrong", "401")]:
            done = subprocess.run(["curl", "--silent", "--output", "/dev/null", "--write-out",
                                   "%{http_code}", "--header", sent, url], user=NOBODY, cwd="/",
                                  stdout=subprocess.PIPE, text=True, check=False)
            self.assertEqual(done.stdout, answer)

    def test_the_port_for_clients_without_tls(self):
        port = free_ports(1)[0]
        self.serve(self.secured(), "--insecure_client_address=localhost:%d" % port)
        code, said, error = self.run_with({}, [READER, "--target=grpc://localhost:%d" % port])
        self.assertNotIn("TLS", error)
        self.assertEqual(self.run_with({}, [PENSTOCK, "status",
                                            "grpc://localhost:%d" % port])[0], 0, (code, said))
        code, _, error = self.run_with(
            {}, [PENSTOCK, "server", "--job_name=worker", "--task_index=0",
                 "--worker_hosts=127.0.0.1:0", "--insecure_client_address=0.0.0.0:%d" % port])
        self.assertEqual(code, 2)
        self.assertIn("--insecure_client_address: '0.0.0.0:%d'" % port, error)

    def test_every_command_of_the_document(self):
        folder, programs = new_folder(), new_folder()
        for program in (PENSTOCK, TRAIN):
            os.symlink(os.path.abspath(program), os.path.join(programs, os.path.basename(program)))
        task, client, status = free_ports(3)
        lines = []
        for block in blocks():
            lines.append(block)
            if block.rstrip().endswith("&"):
                for port in (task, client, status):
                    lines.append("until (exec 3<>/dev/tcp/127.0.0.1/%d) 2> /dev/null; "
                                 "do kill -0 $!; sleep 0.1; done\n" % port)
        script = "trap 'kill $(jobs -p)' EXIT\n" + "".join(lines)
        for fixed, free in ((2222, task), (2300, client), (8000, status)):
            self.assertIn(str(fixed), script)
            script = script.replace(str(fixed), str(free))
        done = shell(script, folder, PATH=programs + ":" + os.environ["PATH"])
        self.assertEqual(done.returncode, 0, done.stdout)
        for part in ("test accuracy: ", "0 errors", "/job:worker", "penstock_"):
            self.assertIn(part, done.stdout)


if __name__ == "__main__":
    main()
