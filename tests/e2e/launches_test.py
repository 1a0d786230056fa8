#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that every broken launch of docs/broken-launches.md is named within seconds: by
`penstock doctor`, or by the start of a server or training program itself. Prints a table."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import strangers  # noqa: E402
from cluster import PENSTOCK, TRAIN, ClusterTest, free_ports, main  # noqa: E402

DOCUMENT = "docs/broken-launches.md"
CLOCK_AHEAD = "tests/e2e/clock_ahead.so"
TENSORFLOW = os.environ.get("PENSTOCK_TENSORFLOW_PYTHON")
PROMISED_SECONDS = 10
FAILED_SECONDS = 40  # long, because other tests may keep the machine busy
FAR_AWAY = "203.0.113.7"  # an address reserved by RFC 5737; no host has it

LAUNCHES = {}


class Skipped(Exception):
    pass


def launch(title, says):
    """Adds a broken launch: a function that makes it, and returns what was said about it. `says`:
    what that must match."""
    def add(function):
        LAUNCHES[title] = (function, says)
        return function
    return add


class Site:
    """Addresses of a ps and two workers, the environment of processes, and the processes that were
    started, which end with it."""

    def __init__(self):
        self.ps, *self.workers = ["127.0.0.1:%d" % port for port in free_ports(3)]
        self.hosts = ["--ps_hosts=" + self.ps, "--worker_hosts=" + ",".join(self.workers)]
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.closers = []
        self.seconds = None  # until the launch was named
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.lower().endswith("_proxy")}

    def close(self):
        for close in reversed(self.closers):
            close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def keep(self, stranger):
        self.closers.append(stranger.close)
        return stranger

    def spawn(self, command, variables=None):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   text=True, env={**self.environment, **(variables or {})})
        self.closers += [process.stdout.close, process.wait, process.kill]
        return process

    def task(self, job, index, *flags, hosts=None, variables=None):
        """Starts a task, and waits until it serves."""
        process = self.spawn([PENSTOCK, "server", "--grace_seconds=0", "--job_name=" + job,
                              "--task_index=%d" % index, *(hosts or self.hosts), *flags], variables)
        process.stdout.readline()
        return process

    def all_tasks(self):
        return [self.task("ps", 0), self.task("worker", 0), self.task("worker", 1)]

    def say(self, command, variables=None, folder=None):
        """Runs a command that ends by itself; returns what it has printed."""
        begin = time.monotonic()
        done = subprocess.run(command, env={**self.environment, **(variables or {})}, cwd=folder,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=60, check=False)
        self.seconds = time.monotonic() - begin
        return done.stdout

    def doctor(self, *flags, before=(), **kwargs):
        return self.say([*before, os.path.abspath(PENSTOCK), "doctor", *flags], **kwargs)

    def server(self, *flags, before=(), **kwargs):
        """Starts a server that must not start; returns what it says."""
        return self.say([*before, PENSTOCK, "server", *flags], **kwargs)

    def worker0(self):
        return ["--job_name=worker", "--task_index=0", *self.hosts]


@launch("two tasks have each other's address", "says that it is /job:worker/replica:0/task:0")
def _(site):
    site.all_tasks()
    return site.doctor("--ps_hosts=" + site.workers[0],
                       "--worker_hosts=%s,%s" % (site.ps, site.workers[1]))


@launch("one address is listed twice", "'127.0.0.1:1' is the address of both")
def _(site):
    return site.server("--ps_hosts=127.0.0.1:1", "--worker_hosts=127.0.0.1:1", "--job_name=ps")


@launch("two addresses lead to one task", "is the same process as 127.0.0.1")
def _(site):
    site.all_tasks()
    other_name = site.workers[0].replace("127.0.0.1", "localhost")
    return site.doctor("--ps_hosts=" + site.ps,
                       "--worker_hosts=%s,%s" % (site.workers[0], other_name))


@launch("the task index is not in the list", "--task_index: 2 is out of")
def _(site):
    return site.server(*site.hosts, "--job_name=worker", "--task_index=2")


@launch("the job's name is misspelt", "--job_name: 'pss' is not a job")
def _(site):
    return site.server(*site.hosts, "--job_name=pss", "--task_index=0")


@launch("a host's name does not resolve", "no-such-host.invalid:2222: the name has no address")
def _(site):
    return site.doctor("--ps_hosts=no-such-host.invalid:2222", site.hosts[1])


@launch("a loopback address in a cluster of several hosts", "which every host takes for itself")
def _(site):
    return site.doctor("--ps_hosts=localhost:2222", "--worker_hosts=%s:2222" % FAR_AWAY)


@launch("no worker 0 and no chief", "error +the cluster: has no chief")
def _(site):
    return site.doctor("--ps_hosts=" + site.ps)


@launch("a parameter server is not in the list", "warning +the cluster: has no ps")
def _(site):
    return site.doctor(site.hosts[1])


@launch("a parameter server was not started", "error +/job:ps/task:0 at .* is not running")
def _(site):
    site.task("worker", 0)
    site.task("worker", 1)
    return site.doctor(*site.hosts)


@launch("a task is stopped", "error +/job:ps/task:0 at .* is connected to, but says nothing")
def _(site):
    ps = site.all_tasks()[0]
    ps.send_signal(signal.SIGSTOP)
    return site.doctor(*site.hosts)


@launch("a firewall drops the packets", "/job:ps/task:0 at .*: nothing answers")
def _(site):
    hole = site.keep(strangers.BlackHole())
    return site.doctor("--ps_hosts=" + hole.address, site.hosts[1])


@launch("a program that says nothing has the port", "is connected to, but says nothing")
def _(site):
    silent = site.keep(strangers.Silent())
    return site.doctor("--ps_hosts=" + silent.address, site.hosts[1])


@launch("a web server has the port", "what listens there is not a task of Penstock")
def _(site):
    web = site.keep(strangers.Web())
    return site.doctor("--ps_hosts=" + web.address, site.hosts[1])


@launch("another gRPC server has the port", "what listens there is not a task of Penstock")
def _(site):
    other = site.keep(strangers.OtherGrpc())
    return site.doctor("--ps_hosts=" + other.address, site.hosts[1])


@launch("a TensorFlow server has the port", "what listens there is not a task of Penstock")
def _(site):
    if not TENSORFLOW:
        raise Skipped("PENSTOCK_TENSORFLOW_PYTHON is not set")
    program = ("import sys, tensorflow as tf\n"
               "server = tf.distribute.Server({'ps': [sys.argv[1]]}, job_name='ps', task_index=0)\n"
               "print('serves', flush=True)\nserver.join()")
    site.spawn([TENSORFLOW, "-c", program, site.ps]).stdout.readline()
    return site.doctor(*site.hosts)


@launch("a proxy in the environment", "warning +https_proxy: is set")
def _(site):
    return site.doctor(*site.hosts, variables={"https_proxy": "http://127.0.0.1:1"})


@launch("a task of another version", "speaks version 1 of the worker protocol, this program")
def _(site):
    other = site.keep(strangers.task_of_another_version())
    return site.doctor("--ps_hosts=" + other.address, site.hosts[1])


@launch("tasks were started with other lists of hosts", "was started with /job:worker/task:0 at")
def _(site):
    site.task("ps", 0, hosts=[site.hosts[0], "--worker_hosts=127.0.0.1:1," + site.workers[1]])
    return site.doctor(*site.hosts)


@launch("tasks move tensors by different protocols", "moves tensors by protocol 'grpc'")
def _(site):
    site.task("ps", 0, "--protocol=grpc")
    return site.doctor(*site.hosts)


@launch("workers run different programs",
        r"is updated by different programs: from node '\S+' \(.*\) in session \S+ of "
        r"/job:worker/replica:0/task:\d at .*, from node '\S+' \(.*\) in session")
def _(site):
    site.task("ps", 0)
    for index, rate in (0, 0.001), (1, 0.002):
        site.spawn([TRAIN, *site.hosts, "--job_name=worker", "--task_index=%d" % index,
                    "--model=mlp", "--steps=100000000", "--learning_rate=%g" % rate])
    end = time.monotonic() + 60
    while True:  # until both workers have taken a step
        said = site.doctor(*site.hosts)
        if "different programs" in said or time.monotonic() > end:
            return said
        time.sleep(0.2)


@launch("the clock of a host is wrong", r"its clock is 3[56]\d\d\.\d s ahead of this host's")
def _(site):
    ahead = {"LD_PRELOAD": os.path.abspath(CLOCK_AHEAD)}
    if "Sanitizer" in site.say([PENSTOCK, "--version"], variables=ahead):
        raise Skipped("with a sanitizer, processes preload no other library")
    site.task("ps", 0, variables=ahead)
    return site.doctor(*site.hosts)


@launch("another program has this task's port", "cannot listen on .*: Address already in use")
def _(site):
    silent = site.keep(strangers.Silent())
    return site.doctor("--ps_hosts=" + silent.address, site.hosts[1], "--job_name=ps",
                       "--task_index=0")


@launch("a task is started twice", "Address already in use; is this task running already")
def _(site):
    site.task("ps", 0)
    return site.server(*site.hosts, "--job_name=ps", "--task_index=0")


@launch("the port is for privileged processes", "low ports need the capability")
def _(site):
    with open("/proc/sys/net/ipv4/ip_unprivileged_port_start") as f:
        if int(f.read()) <= 81:
            raise Skipped("every process may listen at low ports here")
    without = [] if os.geteuid() else ["setpriv", "--bounding-set=-net_bind_service"]
    if subprocess.run([*without, "true"], capture_output=True, check=False).returncode:
        raise Skipped("this process may not give up its right to low ports")
    return site.server("--ps_hosts=127.0.0.1:81", site.hosts[1], "--job_name=ps", "--task_index=0",
                       before=without)


@launch("--listen_address is another host's",
        "cannot listen on .* give --listen_address an address")
def _(site):
    return site.server(*site.worker0(), "--listen_address=" + FAR_AWAY)


@launch("the port of the status page is taken", "--status_port: cannot listen on")
def _(site):
    silent = site.keep(strangers.Silent())
    return site.server(*site.worker0(), "--status_port=" + silent.address.split(":")[1])


@launch("TF_CONFIG is not JSON", "TF_CONFIG.*not valid JSON")
def _(site):
    return site.server(variables={"TF_CONFIG": "{'cluster': }"})


@launch("TF_CONFIG contradicts the flags", "warning +TF_CONFIG: says otherwise than the flags")
def _(site):
    config = {"cluster": {"ps": [site.ps], "worker": site.workers},
              "task": {"type": "worker", "index": 1}}
    return site.doctor(*site.worker0(), variables={"TF_CONFIG": json.dumps(config)})


@launch("the checkpoint directory cannot be written", "no checkpoint could be written: ")
def _(site):
    path = os.path.join(site.folder, "file")
    with open(path, "w"):
        pass
    return site.doctor(*site.hosts, "--checkpoint_dir=" + path)


@launch("the checkpoint directory is not shared",
        "/job:ps/replica:0/task:0 does not see what is written here")
def _(site):
    site.all_tasks()  # the tasks run in another current folder
    return site.doctor(*site.hosts, "--checkpoint_dir=run", folder=site.folder)


@launch("the disk of the checkpoint directory is full",
        "no checkpoint could be written: .*No space left on device")
def _(site):
    script = ("mount -t tmpfs -o size=8k none '%s' && (cat /dev/zero > '%s/full' || true) 2>&1 &&"
              " exec \"$@\"" % (site.folder, site.folder))
    before = ["unshare", "--map-root-user", "--mount", "bash", "-c", script, "bash"]
    if subprocess.run([*before, "true"], capture_output=True, check=False).returncode:
        raise Skipped("this machine allows no file system of the test's own")
    return site.doctor(*site.hosts, "--checkpoint_dir=" + site.folder, before=before)


@launch("the checkpoints are another model's",
        r"restoring .*model.ckpt-2: Key \S+ not found in checkpoint")
def _(site):
    train = [TRAIN, "--checkpoint_dir=" + site.folder, "--save_every_seconds=0"]
    site.say([*train, "--model=mlp", "--steps=2"])
    return site.say([*train, "--model=convnet", "--steps=4"])


@launch("the limit of open files is too low",
        "the limit of open files: is 100 for this process; a task of this")
def _(site):
    return site.doctor(*site.hosts, before=["bash", "-c", "ulimit -n 100; exec \"$@\"", "bash"])


class Certificates:
    """Certificates of two authorities, and tokens."""

    def __init__(self):
        self.ours, self.theirs = strangers.certificates(), strangers.certificates()

    def variables(self, ca=None, token=None):
        return {"PENSTOCK_TLS_CA": (ca or self.ours) + "/ca.pem",
                "PENSTOCK_TLS_CERT": self.ours + "/task.pem",
                "PENSTOCK_TLS_KEY": self.ours + "/task.key",
                "PENSTOCK_TOKEN_FILE": token or self.ours + "/token"}

    def secured_ps(self, site):
        site.task("ps", 0, variables=self.variables())


CERTIFICATES = []


def certificates():
    if not CERTIFICATES:
        CERTIFICATES.append(Certificates())
    return CERTIFICATES[0]


@launch("a task with TLS, a client without", "does not let this process in: .*the task speaks TLS")
def _(site):
    certificates().secured_ps(site)
    return site.doctor(*site.hosts)


@launch("a task without TLS, a client with it", "does not let this process in: .*not speak TLS")
def _(site):
    site.task("ps", 0)
    return site.doctor(*site.hosts, variables=certificates().variables())


@launch("the certificates are another authority's", "does not come from an authority")
def _(site):
    certificates().secured_ps(site)
    return site.doctor(*site.hosts, variables=certificates().variables(ca=certificates().theirs))


@launch("the token is wrong", "does not let this process in: .*is not one of this cluster's")
def _(site):
    certificates().secured_ps(site)
    token = certificates().theirs + "/token"
    return site.doctor(*site.hosts, variables=certificates().variables(token=token))


@launch("a certificate has expired", "--tls_cert.*expired on")
def _(site):
    variables = certificates().variables()
    variables["PENSTOCK_TLS_CERT"] = certificates().ours + "/expired.pem"
    return site.server(*site.worker0(), variables=variables)


class LaunchesTest(ClusterTest):
    def try_launch(self, title):
        """Returns the seconds until the launch was named, or the reason why it was skipped."""
        make, says = LAUNCHES[title]
        site = Site()
        try:
            said = make(site)
        except Skipped as why:
            return None, str(why)
        finally:
            site.close()
        found = [line for line in said.splitlines() if re.search(says, line)]
        self.assertTrue(found, "no %r in:\n%s" % (says, said))
        self.assertLess(site.seconds, FAILED_SECONDS)
        return site.seconds, " ".join(found[0].split())

    def test_every_launch_is_named(self):
        rows, late = [], 0
        for title in LAUNCHES:
            with self.subTest(launch=title):
                seconds, said = self.try_launch(title)
                late += seconds is not None and seconds > PROMISED_SECONDS
                rows.append("%-50s %8s  %s" % (title, "skipped" if seconds is None
                                               else "%.1f s" % seconds, said[:150]))
                print(rows[-1], flush=True)
        named = [row for row in rows if " skipped " not in row]
        print("%d of %d broken launches named, %d of them later than after %d s"
              % (len(named), len(LAUNCHES), late, PROMISED_SECONDS))
        self.assertGreaterEqual(len(named), 25)

    def test_the_document_lists_every_launch(self):
        with open(DOCUMENT) as f:
            listed = re.findall(r"^\| ([^|]+?) \| ", f.read(), re.MULTILINE)[1:]
        self.assertEqual(listed, list(LAUNCHES))


if __name__ == "__main__":
    threading.excepthook = lambda args: None  # of servers that are closed while they serve
    main()
