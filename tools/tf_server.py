# SPDX-License-Identifier: Apache-2.0
"""A stand-in for tf.compat.v1.train.Server that serves with Penstock.

A script with between-graph replication changes one line:

    from tf_server import Server            # was: Server = tf.compat.v1.train.Server
    server = Server(cluster, job_name="worker", task_index=0)
    with tf.compat.v1.train.MonitoredTrainingSession(server.target, ...) as session: ...

If TensorFlow itself makes the servers, for example in tf.estimator.train_and_evaluate, call
tf_server.install() first. To run a program without any change, use `python tf_server.py PROGRAM
[ARGUMENTS]` (`python -m penstock.tf_server` if the wheel is installed), which calls install().

The constructor's arguments, .target, .server_def, .start(), .join() and create_local_server() are
the same as TensorFlow's. The task is a process of `penstock server`, which ends with this process,
or when stop() is called. As in TensorFlow, it keeps running when the Server object is dropped. With
PENSTOCK_TLS_CA or PENSTOCK_TOKEN_FILE in the environment the task is secured (SECURITY.md), and
.target is a port of this host for processes of this user. PENSTOCK_LOAD names op libraries that the
task loads (docs/custom-ops.md). The program is $PENSTOCK; else that of the wheel, the checkout's
build or the installation that contains this file; else the one on the PATH.
"""

import atexit
import json
import os
import runpy
import shutil
import subprocess
import sys
import threading

# Functions that need TensorFlow import it themselves, because Task does not need it.

# The folder of this file: tools, share/penstock/python, or the wheel's package.
_HERE = os.path.dirname(os.path.abspath(__file__))
_IN_WHEEL = os.path.join(_HERE, "bin", "penstock")
_BUILT = os.path.join(os.path.dirname(_HERE), "bazel-bin", "tools", "penstock", "penstock")
_INSTALLED = os.path.normpath(os.path.join(_HERE, "..", "..", "..", "bin", "penstock"))


def find_program():
    """Returns the path of the penstock program."""
    for path in (os.environ.get("PENSTOCK"), _IN_WHEEL, _BUILT, _INSTALLED,
                 shutil.which("penstock")):
        if path and os.access(path, os.X_OK):
            return path
    raise RuntimeError("there is no penstock program: build it with "
                       "`bazel build //tools/penstock`, or name it in $PENSTOCK")


def _only(choices, argument):
    if len(choices) != 1:
        raise ValueError("Must specify an explicit `%s`." % argument)
    return choices[0]


def _make_server_def(what, job_name, task_index, protocol, config):
    """Returns the ServerDef of the constructor's arguments. Arguments override the fields of a
    given ServerDef.

    A job or task that is not given must be the only one of the cluster.
    """
    import tensorflow as tf
    server_def = tf.train.ServerDef()
    if isinstance(what, tf.train.ServerDef):
        server_def.CopyFrom(what)
    else:
        cluster = tf.train.ClusterSpec(what)
        server_def.cluster.CopyFrom(cluster.as_cluster_def())
        if job_name is None:
            job_name = _only(cluster.jobs, "job_name")
        if task_index is None and job_name in cluster.jobs:
            task_index = _only(cluster.task_indices(job_name), "task_index")
    if job_name is not None:
        server_def.job_name = job_name
    if task_index is not None:
        server_def.task_index = task_index
    if protocol is not None:
        server_def.protocol = protocol
    if config is not None:
        server_def.default_session_config.MergeFrom(config)
    jobs = {job.name: dict(job.tasks) for job in server_def.cluster.job}
    if server_def.job_name not in jobs:
        raise ValueError("job_name %r is not a job of the cluster: %s" %
                         (server_def.job_name, ", ".join(sorted(jobs)) or "it has none"))
    if server_def.task_index not in jobs[server_def.job_name]:
        raise ValueError("task_index %d is not a task of job %r" %
                         (server_def.task_index, server_def.job_name))
    server_def.protocol = server_def.protocol or "auto"
    if server_def.cluster_device_filters.jobs:
        sys.stderr.write("ServerDef.cluster_device_filters has no effect: a task contacts the "
                         "tasks that its sessions use (ConfigProto.device_filters)\n")
    return server_def


def _addresses(server_def):
    """Returns the cluster as {"job": {"index": "host:port"}}."""
    cluster = {job.name: {str(i): address for i, address in job.tasks.items()}
               for job in server_def.cluster.job}
    if server_def.port:
        own = cluster[server_def.job_name]
        host = own[str(server_def.task_index)].rsplit(":", 1)[0]
        own[str(server_def.task_index)] = "%s:%d" % (host, server_def.port)
    return cluster


def _end(process):
    """Closes the process's standard input, which makes it end normally."""
    process.stdin.close()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Task:
    """A process of `penstock server`, which ends with this process, or when stop() is called.

    `cluster` has the addresses of each job, such as {"ps": ["host:port"]}. In a cluster of one
    task, port 0 means any free port. `flags` are flags of `penstock server`. RuntimeError if it
    does not start.
    """

    def __init__(self, cluster, job_name, task_index=0, flags=()):
        command = [find_program(), "server", "--until_stdin_ends", *flags]
        # TensorFlow's client supports neither TLS nor tokens.
        secured = os.environ.get("PENSTOCK_TLS_CA") or os.environ.get("PENSTOCK_TOKEN_FILE")
        if secured:
            command.append("--insecure_client_address=localhost:0")
        config = {"cluster": cluster, "task": {"type": job_name, "index": task_index}}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=dict(os.environ, TF_CONFIG=json.dumps(config)))
        self._stopped = False
        atexit.register(self.stop)
        # "/job:.. serves at grpc://host:port"; for a secured task, the port for this user's
        # clients.
        wanted = " without TLS at " if secured else " serves at "
        said = self._process.stdout.readline()
        while said and wanted not in said:
            said = self._process.stdout.readline()
        if not said:
            self.stop()
            raise RuntimeError("the server of /job:%s/task:%d did not start; it says why above" %
                               (job_name, task_index))
        self.target = said.split()[-1]  # grpc://host:port
        self._name = "/job:%s/replica:0/task:%d at %s" % (job_name, task_index, self.target)
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self):
        """Forwards the task's output, and prints a line if the task dies.

        TensorFlow's client would then only say "Socket closed", without naming a task.
        """
        for line in self._process.stdout:
            sys.stderr.write(line)
        code = self._process.wait()
        if self._stopped or code == 0:
            return
        how = "signal %d" % -code if code < 0 else "exit code %d" % code
        sys.stderr.write("%s has died with %s; sessions with it fail with UNAVAILABLE, such as "
                         "\"Socket closed\"\n" % (self._name, how))
        sys.stderr.flush()

    def stop(self):
        """Ends the task now."""
        self._stopped = True
        _end(self._process)

    def join(self):
        """Waits until the task is asked to end."""
        self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.stop()


class Server:
    def __init__(self, server_or_cluster_def, job_name=None, task_index=None, protocol=None,
                 config=None, start=True):
        self._server_def = _make_server_def(server_or_cluster_def, job_name, task_index, protocol,
                                            config)
        self._task = None
        if start:
            self.start()

    @staticmethod
    def create_local_server(config=None, start=True):
        """Starts a cluster of one task in job "local", on a free port of this host."""
        return Server({"local": ["localhost:0"]}, config=config, start=start)

    @property
    def server_def(self):
        return self._server_def

    @property
    def target(self):
        """Returns grpc://host:port."""
        if self._task is None:
            raise RuntimeError("the server has not been started: its address is not known yet")
        return self._task.target

    def start(self):
        if self._task is not None:
            return
        flags = ["--protocol=" + self._server_def.protocol]
        config = str(self._server_def.default_session_config)
        if config:
            flags.append("--default_session_config=" + config)
        self._task = Task(_addresses(self._server_def), self._server_def.job_name,
                          self._server_def.task_index, flags)

    def stop(self):
        """Ends the task now."""
        if self._task is not None:
            self._task.stop()

    def join(self):
        """Waits until the task is asked to end; a parameter server usually waits here until it
        ends."""
        self.start()
        self._task.join()


def install():
    """Makes TensorFlow use this class instead of its own Server."""
    import tensorflow as tf
    # TensorFlow's own code looks up the class in this module, which has no public name.
    from tensorflow.python.training import server_lib  # pylint: disable=g-direct-tensorflow-import
    server_lib.Server = Server
    for module in (tf.compat.v1.train, tf.distribute, tf.compat.v1.distribute):
        module.Server = Server


def _run_program(argv):
    """Runs a Python program like `python PROGRAM`, but with Penstock's servers."""
    if not argv:
        sys.exit("usage: python -m penstock.tf_server PROGRAM [ARGUMENTS]")
    install()
    sys.argv = argv
    sys.path[0] = os.path.dirname(os.path.abspath(argv[0]))
    runpy.run_path(argv[0], run_name="__main__")


if __name__ == "__main__":
    _run_program(sys.argv[1:])
