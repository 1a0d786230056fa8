# SPDX-License-Identifier: Apache-2.0
"""Both sides of cluster/...: TensorFlow's client runs the same programs on 2 ps and 1 or 2 workers.

  cluster_peer.py tensorflow         on servers of TensorFlow
  cluster_peer.py PENSTOCK [FLAG...] on servers of this program `penstock`, with these flags

workloads.serve describes the protocol.
"""

import json
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import tensorflow_peer  # (sets the environment before TensorFlow is imported)
import tensorflow.compat.v1 as tf

from cluster_models import PROGRAMS
from workloads import median_seconds, serve

PS_TASKS = 2


class Servers:
    """2 ps and some workers, each a process, until close()."""

    def __init__(self, program, flags, workers):
        addresses = ["127.0.0.1:%d" % port
                     for port in tensorflow_peer.free_ports(PS_TASKS + workers)]
        ps, self.workers = addresses[:PS_TASKS], addresses[PS_TASKS:]
        self.tasks = []
        try:
            self.start(program, flags, ps)
        except Exception:
            self.close()
            raise

    def start(self, program, flags, ps):
        for job, index in ([("ps", i) for i in range(PS_TASKS)] +
                           [("worker", i) for i in range(len(self.workers))]):
            if program == "tensorflow":
                task = json.dumps([{"ps": ps, "worker": self.workers}, job, index])
                command = [sys.executable, tensorflow_peer.__file__, "--task", task]
            else:
                command = [program, "server", "--until_stdin_ends", "--job_name=" + job,
                           "--task_index=%d" % index, "--ps_hosts=" + ",".join(ps),
                           "--worker_hosts=" + ",".join(self.workers), *flags]
            self.tasks.append(subprocess.Popen(command, stdin=subprocess.PIPE,
                                               stdout=subprocess.PIPE, text=True))
        for task in self.tasks:
            if not task.stdout.readline():
                raise RuntimeError("a server ended: " + " ".join(task.args))

    def close(self):
        for task in self.tasks:
            task.kill()
            task.wait()


class Client:
    """Runs a program from one worker, as its user would: with a session of its own."""

    def __init__(self, servers, index, program):
        with tf.Graph().as_default() as graph:
            tf.set_random_seed(1)
            device = "/job:worker/task:%d" % index
            with tf.device(tf.train.replica_device_setter(ps_tasks=PS_TASKS,
                                                          worker_device=device)):
                target, feeds, self.values = PROGRAMS[program]()
                self.initialize = tf.global_variables_initializer()
            self.session = tf.Session("grpc://" + servers.workers[index], graph=graph)
            self.run = self.session.make_callable(target, feeds)

    def seconds(self):
        return median_seconds(lambda: self.run(*self.values))

    def close(self):
        # Deletes the callable now: later its destructor would call the ended servers for ever.
        self.run = None
        self.session.close()


def prepare(program, flags, name):
    _, _, what, workers = name.split("/")
    servers = Servers(program, flags, int(workers))
    try:
        return prepare_on(servers, what)
    except Exception:
        servers.close()
        raise


def prepare_on(servers, program):
    clients = [Client(servers, i, program) for i in range(len(servers.workers))]
    clients[0].session.run(clients[0].initialize)
    threads = ThreadPoolExecutor(len(clients))

    def measure():
        return statistics.mean(threads.map(Client.seconds, clients)) * 1e3

    def close():
        for client in clients:
            client.close()
        threads.shutdown()
        servers.close()

    return measure, close


def main():
    program, flags = sys.argv[1], sys.argv[2:]
    kind = "TensorFlow's servers" if program == "tensorflow" else "Penstock's servers"
    serve("%s, TensorFlow's client %s" % (kind, tf.__version__),
          lambda name: prepare(program, flags, name))


if __name__ == "__main__":
    main()
