# SPDX-License-Identifier: Apache-2.0
"""Both sides of cluster/...: TensorFlow's client runs the same programs on 2 ps and 1 worker.

  cluster_peer.py tensorflow         on servers of TensorFlow
  cluster_peer.py PENSTOCK [FLAG...] on servers of this program `penstock`, with these flags

workloads.serve describes the protocol.
"""

import json
import subprocess
import sys

import tensorflow_peer  # (sets the environment before TensorFlow is imported)
import tensorflow.compat.v1 as tf

from cluster_models import PROGRAMS
from workloads import median_seconds, serve

PS_TASKS = 2


class Servers:
    """2 ps and 1 worker, each a process, until close()."""

    def __init__(self, program, flags):
        ports = tensorflow_peer.free_ports(PS_TASKS + 1)
        ps = ["127.0.0.1:%d" % port for port in ports[:PS_TASKS]]
        self.worker = "127.0.0.1:%d" % ports[PS_TASKS]
        self.tasks = []
        try:
            self.start(program, flags, ps)
        except Exception:
            self.close()
            raise

    def start(self, program, flags, ps):
        for job, index in [("ps", i) for i in range(PS_TASKS)] + [("worker", 0)]:
            if program == "tensorflow":
                task = json.dumps([{"ps": ps, "worker": [self.worker]}, job, index])
                command = [sys.executable, tensorflow_peer.__file__, "--task", task]
            else:
                command = [program, "server", "--until_stdin_ends", "--job_name=" + job,
                           "--task_index=%d" % index, "--ps_hosts=" + ",".join(ps),
                           "--worker_hosts=" + self.worker, *flags]
            self.tasks.append(subprocess.Popen(command, stdin=subprocess.PIPE,
                                               stdout=subprocess.PIPE, text=True))
        for task in self.tasks:
            if not task.stdout.readline():
                raise RuntimeError("a server ended: " + " ".join(task.args))

    def close(self):
        for task in self.tasks:
            task.kill()
            task.wait()


def prepare(program, flags, name):
    servers = Servers(program, flags)
    try:
        return prepare_on(servers, name)
    except Exception:
        servers.close()
        raise


def prepare_on(servers, name):
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(1)
        with tf.device(tf.train.replica_device_setter(ps_tasks=PS_TASKS,
                                                      worker_device="/job:worker/task:0")):
            target, feeds, values = PROGRAMS[name.split("/")[1]]()
            initialize = tf.global_variables_initializer()
        session = tf.Session("grpc://" + servers.worker, graph=graph)
        session.run(initialize)
        run = session.make_callable(target, feeds)

    def close():
        del run_of[:]  # delete callables now: later they would call ended servers forever
        session.close()
        servers.close()

    run_of = [run]
    return lambda: median_seconds(lambda: run_of[0](*values)) * 1e3, close


def main():
    program, flags = sys.argv[1], sys.argv[2:]
    kind = "TensorFlow's servers" if program == "tensorflow" else "Penstock's servers"
    serve("%s, TensorFlow's client %s" % (kind, tf.__version__),
          lambda name: prepare(program, flags, name))


if __name__ == "__main__":
    main()
