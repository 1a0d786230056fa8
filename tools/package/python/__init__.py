# SPDX-License-Identifier: Apache-2.0
"""Penstock: dataflow graphs on a parameter-server cluster that speaks TensorFlow's protocol.

    penstock.run("train.py", ps=1, workers=2)      a program of TensorFlow's as a cluster, here
    penstock.server({"ps": ["a:2222"], "worker": ["b:2222"]}, "worker", 0)      one task
    penstock.tf_server.Server                      in place of tf.compat.v1.train.Server
    penstock.tf_ops.load_op_library                in place of tf.load_op_library

The command `penstock` (also `python -m penstock`) does everything else: see `penstock --help`.
run(), server() and the command do not need TensorFlow.
"""

import importlib.metadata
import os
import subprocess
import sys

__version__ = importlib.metadata.version("penstock")


def _flags(named):
    """Converts {"status_port": 8000, "stop": True} to ["--status_port=8000", "--stop"]."""
    return ["--" + name if value is True else "--%s=%s" % (name, value)
            for name, value in named.items() if value is not None and value is not False]


def server(cluster=None, job_name=None, task_index=0, **flags):
    """Starts a task in a new process, which ends with this process or when stop() is called.

    `cluster` is {"job": ["host:port", ...], ...}; without it the task is a cluster of one task, on
    a free port. Other arguments are flags of `penstock server`, such as status_port=8000. Returns a
    tf_server.Task: .target is its address for sessions; .join() waits until the task is asked to
    end; used as a context manager it stops the task at the end. RuntimeError if the task does not
    start.
    """
    from .tf_server import Task
    if cluster is None:
        cluster, job_name = {"local": ["localhost:0"]}, job_name or "local"
    if job_name not in cluster or not 0 <= task_index < len(cluster[job_name]):
        raise ValueError("job_name=%r, task_index=%r: expected a task of the cluster %r" %
                         (job_name, task_index, cluster))
    return Task(cluster, job_name, task_index, _flags(flags))


def run(program, ps=1, workers=1, **flags):
    """Runs a program as a cluster of processes on this machine, and waits until it has ended.

    `program` is a command as a list, or a path. Each task gets --ps_hosts, --worker_hosts,
    --job_name and --task_index as further arguments. A Python file (*.py) runs in this Python, with
    tf.compat.v1.train.Server replaced by Penstock's. Other arguments are flags of `penstock run`,
    such as restarts=9, log_dir="logs". subprocess.CalledProcessError if a task fails.
    """
    from .tf_server import find_program
    alone = isinstance(program, (str, os.PathLike))
    command = [str(part) for part in ([program] if alone else program)]
    if command and command[0].endswith(".py"):
        command = [sys.executable, "-m", "penstock.tf_server"] + command
    subprocess.run([find_program(), "run", "--ps=%d" % ps, "--workers=%d" % workers,
                    *_flags(flags), "--", *command], check=True)
