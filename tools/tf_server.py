# SPDX-License-Identifier: Apache-2.0
"""A stand-in for tf.compat.v1.train.Server that serves with Penstock.

A script that trains between graphs changes one line:

    from tf_server import Server            # was: Server = tf.compat.v1.train.Server
    server = Server(cluster, job_name="worker", task_index=0)
    with tf.compat.v1.train.MonitoredTrainingSession(server.target, ...) as session: ...

A program that leaves it to TensorFlow to make servers, by tf.estimator.train_and_evaluate for
example, calls tf_server.install() before.

The constructor's arguments, .target, .server_def, .start(), .join() and create_local_server() are
TensorFlow's. The task itself is a process of `penstock server`, which ends with this one, or when
stop() is called: as TensorFlow's, it lives on when nobody holds the Server any more. With
PENSTOCK_TLS_CA or PENSTOCK_TOKEN_FILE in the environment the task is secured (SECURITY.md), and
.target is a port of this host for processes of this user. PENSTOCK_LOAD names op libraries that it
loads (docs/custom-ops.md). The program is $PENSTOCK, else the one of this checkout's build or of
the installation that this file belongs to, else the one on the PATH.
"""

import atexit
import json
import os
import shutil
import subprocess
import sys
import threading

import tensorflow as tf

_HERE = os.path.dirname(os.path.abspath(__file__))  # tools, or share/penstock/python
_BUILT = os.path.join(os.path.dirname(_HERE), "bazel-bin", "tools", "penstock", "penstock")
_INSTALLED = os.path.normpath(os.path.join(_HERE, "..", "..", "..", "bin", "penstock"))


def find_program():
    """Returns the path of the penstock program."""
    for path in (os.environ.get("PENSTOCK"), _BUILT, _INSTALLED, shutil.which("penstock")):
        if path and os.access(path, os.X_OK):
            return path
    raise RuntimeError("there is no penstock program: build it with "
                       "`bazel build //tools/penstock`, or name it in $PENSTOCK")


def _only(choices, argument):
    if len(choices) != 1:
        raise ValueError("Must specify an explicit `%s`." % argument)
    return choices[0]


def _make_server_def(what, job_name, task_index, protocol, config):
    """The ServerDef of the constructor's arguments, which go before what it brings.

    Of a cluster, a job or a task that is left out is the only one there is.
    """
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
    return server_def


def _task_config(server_def):
    """Returns the JSON that `penstock server` reads from TF_CONFIG."""
    cluster = {job.name: {str(i): address for i, address in job.tasks.items()}
               for job in server_def.cluster.job}
    if server_def.port:
        own = cluster[server_def.job_name]
        host = own[str(server_def.task_index)].rsplit(":", 1)[0]
        own[str(server_def.task_index)] = "%s:%d" % (host, server_def.port)
    return json.dumps({"cluster": cluster,
                       "task": {"type": server_def.job_name, "index": server_def.task_index}})


def _end(process):
    """It ends in good order when nobody holds its standard input any more."""
    process.stdin.close()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _forward(lines):
    for line in lines:
        sys.stderr.write(line)


class Server:
    def __init__(self, server_or_cluster_def, job_name=None, task_index=None, protocol=None,
                 config=None, start=True):
        self._server_def = _make_server_def(server_or_cluster_def, job_name, task_index, protocol,
                                            config)
        self._process = None
        self._target = None
        if start:
            self.start()

    @staticmethod
    def create_local_server(config=None, start=True):
        """A cluster of one task in job "local", on a free port of this host."""
        return Server({"local": ["localhost:0"]}, config=config, start=start)

    @property
    def server_def(self):
        return self._server_def

    @property
    def target(self):
        """grpc://host:port."""
        if self._target is None:
            raise RuntimeError("the server has not been started: its address is not known yet")
        return self._target

    def start(self):
        if self._process is not None:
            return
        command = [find_program(), "server", "--until_stdin_ends",
                   "--protocol=" + self._server_def.protocol]
        config = str(self._server_def.default_session_config)
        if config:
            command.append("--default_session_config=" + config)
        # TensorFlow's client knows neither TLS nor tokens.
        secured = os.environ.get("PENSTOCK_TLS_CA") or os.environ.get("PENSTOCK_TOKEN_FILE")
        if secured:
            command.append("--insecure_client_address=localhost:0")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=dict(os.environ, TF_CONFIG=_task_config(self._server_def)))
        atexit.register(_end, self._process)
        # "/job:.. serves at grpc://host:port"; of a secured task, the port for this user's clients.
        wanted = " without TLS at " if secured else " serves at "
        said = self._process.stdout.readline()
        while said and wanted not in said:
            said = self._process.stdout.readline()
        if not said:
            self.stop()
            raise RuntimeError("the server of /job:%s/task:%d did not start; it says why above" %
                               (self._server_def.job_name, self._server_def.task_index))
        self._target = said.split()[-1]
        threading.Thread(target=_forward, args=(self._process.stdout,), daemon=True).start()

    def stop(self):
        """Ends the task now."""
        if self._process is not None:
            _end(self._process)

    def join(self):
        """Waits until the task is asked to end: for a parameter server, the rest of its life."""
        self.start()
        self._process.wait()


def install():
    """Has TensorFlow make this Server wherever it would make its own, from now on."""
    # TensorFlow's own code looks the class up here, a module without a public name.
    from tensorflow.python.training import server_lib  # pylint: disable=g-direct-tensorflow-import
    server_lib.Server = Server
    for module in (tf.compat.v1.train, tf.distribute, tf.compat.v1.distribute):
        module.Server = Server
