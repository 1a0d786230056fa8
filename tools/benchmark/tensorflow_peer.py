# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's side of tools/bench: the same measurements, in graph mode.

Reads the names of measurements from standard input, a line each, and answers each with a line of
JSON: {"value": number}. The first line it writes says what it is.
Run by tools/bench with the Python of its own virtual environment.
"""

import json
import os
import socket
import subprocess
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
    os.environ.pop(name, None)

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

from workloads import (CHAIN_NODES, RANDOM_GRAPH, TRANSFER_BYTES, WIDE_NODES, median_seconds,  # noqa: E402
                       random_edges)

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)

THREADS = 2


def config(optimized=True):
    c = tf.ConfigProto(intra_op_parallelism_threads=THREADS, inter_op_parallelism_threads=THREADS)
    if not optimized:  # the executor is measured, not the optimiser that would empty the graph
        c.graph_options.optimizer_options.opt_level = -1
        c.graph_options.rewrite_options.disable_meta_optimizer = True
    return c


def executor_graph(shape, kind):
    """A graph of CHAIN/WIDE/RANDOM shape of scalar additions or of no-ops; returns (op, nodes)."""
    x = tf.placeholder(tf.float32, [], name="x")
    y = tf.identity(x)
    if kind == "noop":
        def node(inputs):
            with tf.control_dependencies(inputs):
                return tf.no_op()
        first = node([])
    else:
        def node(inputs):
            return tf.math.add(inputs[0], inputs[-1])
        first = node([y])
    if shape == "chain":
        nodes = [first]
        for _ in range(CHAIN_NODES - 1):
            nodes.append(node([nodes[-1]]))
        last = [nodes[-1]]
    elif shape == "wide":
        nodes = [first] + [node([first]) for _ in range(WIDE_NODES - 1)]
        last = nodes[1:]
    else:
        layers, nodes = [[first] * RANDOM_GRAPH[0]], [first]
        for layer in random_edges():
            layers.append([node([layers[-1][i] for i in inputs]) for inputs in layer])
            nodes += layers[-1]
        last = layers[-1]
    with tf.control_dependencies(last):
        return tf.no_op(), len(nodes)


def measure_executor(name):
    _, shape, kind = name.split("/")
    with tf.Graph().as_default(), tf.Session(config=config(optimized=False)) as session:
        op, nodes = executor_graph(shape, kind)
        feed = {} if kind == "noop" else {"x:0": np.float32(1)}
        run = session.make_callable(op, list(feed))
        return nodes / median_seconds(lambda: run(*feed.values()))


def measure_local_step(name):
    with tf.Graph().as_default(), tf.Session(config=config()) as session:
        x = tf.placeholder(tf.float32, [], name="x")
        if name.endswith("callable"):
            run = session.make_callable(x + 1.0, [x])
            one = np.float32(1)
            return median_seconds(lambda: run(one)) * 1e6
        y = x + 1.0
        return median_seconds(lambda: session.run(y, {x: 1.0})) * 1e6


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Cluster:
    """One ps and some workers, each a process of this script."""

    def __init__(self, workers):
        ports = free_ports(workers + 1)
        spec = {"ps": ["127.0.0.1:%d" % ports[0]],
                "worker": ["127.0.0.1:%d" % p for p in ports[1:]]}
        self.tasks = []
        for job, index in [("ps", 0)] + [("worker", i) for i in range(workers)]:
            self.tasks.append(subprocess.Popen(
                [sys.executable, __file__, "--task", json.dumps([spec, job, index])],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        for task in self.tasks:
            task.stdout.readline()

    def measure(self, what):
        """Asks all workers at once; the mean of their answers."""
        for task in self.tasks[1:]:
            task.stdin.write(what + "\n")
            task.stdin.flush()
        answers = [json.loads(task.stdout.readline())["value"] for task in self.tasks[1:]]
        return sum(answers) / len(answers)

    def close(self):
        for task in self.tasks:
            task.kill()
            task.wait()


def task_main(spec, job, index):
    cluster = tf.train.ClusterSpec(spec)
    server = tf.train.Server(cluster, job_name=job, task_index=index, config=config())
    print("ready", flush=True)
    if job == "ps":
        server.join()
    ps, here = "/job:ps/task:0", "/job:worker/task:%d" % index
    for line in sys.stdin:
        what = line.strip()
        with tf.Graph().as_default():
            if what.startswith("transfer/"):
                size = TRANSFER_BYTES[what.split("/")[1]]
                with tf.device(ps):
                    v = tf.get_variable("v_%d" % size, initializer=tf.ones([size // 4]),
                                        use_resource=False)
                with tf.device(here):
                    target = tf.identity(v).op
            else:
                with tf.device(ps):
                    v = tf.get_variable("step", initializer=tf.zeros([]), use_resource=False)
                with tf.device(here):
                    target = (v + 1.0).op
            with tf.Session(server.target, config=config()) as session:
                session.run(tf.global_variables_initializer())
                run = session.make_callable(target)
                print(json.dumps({"value": median_seconds(run)}), flush=True)


def mlp(x, labels):
    h = x
    sizes = [784, 512, 512, 10]
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        w = tf.get_variable("w%d" % i, initializer=tf.random_normal([a, b], stddev=0.05))
        c = tf.get_variable("b%d" % i, initializer=tf.zeros([b]))
        h = tf.nn.bias_add(tf.matmul(h, w), c)
        if b != 10:
            h = tf.nn.relu(h)
    return loss_of(h, labels)


def convnet(x, labels):
    h = tf.reshape(x, [-1, 28, 28, 1])
    for i, (a, b) in enumerate([(1, 32), (32, 64)]):
        w = tf.get_variable("c%d" % i, initializer=tf.random_normal([5, 5, a, b], stddev=0.05))
        c = tf.get_variable("d%d" % i, initializer=tf.zeros([b]))
        h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(h, w, [1, 1, 1, 1], "SAME"), c))
        h = tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    h = tf.reshape(h, [-1, 7 * 7 * 64])
    for i, (a, b) in enumerate([(7 * 7 * 64, 1024), (1024, 10)]):
        w = tf.get_variable("w%d" % i, initializer=tf.random_normal([a, b], stddev=0.05))
        c = tf.get_variable("b%d" % i, initializer=tf.zeros([b]))
        h = tf.nn.bias_add(tf.matmul(h, w), c)
        if b != 10:
            h = tf.nn.relu(h)
    return loss_of(h, labels)


def loss_of(logits, labels):
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def measure_training(name):
    model = {"mlp": mlp, "convnet": convnet}[name.split("/")[1]]
    with tf.Graph().as_default(), tf.Session(config=config()) as session:
        x = tf.placeholder(tf.float32, [128, 784])
        labels = tf.placeholder(tf.int32, [128])
        train = tf.train.GradientDescentOptimizer(0.01).minimize(model(x, labels))
        session.run(tf.global_variables_initializer())
        run = session.make_callable(train, [x, labels])
        images = np.random.RandomState(1).rand(128, 784).astype(np.float32)
        classes = (np.arange(128) % 10).astype(np.int32)
        return median_seconds(lambda: run(images, classes)) * 1e3


clusters = {}


def measure_cluster(name):
    kind, what = name.split("/")
    workers = 1 if kind == "transfer" else int(what)
    if workers not in clusters:
        for other in clusters.values():
            other.close()
        clusters.clear()
        clusters[workers] = Cluster(workers)
    seconds = clusters[workers].measure(name)
    return TRANSFER_BYTES[what] / seconds / 1e9 if kind == "transfer" else seconds * 1e6


MEASURES = {"executor": measure_executor, "local_step": measure_local_step,
            "null_step": measure_cluster, "transfer": measure_cluster,
            "training": measure_training}


def main():
    if len(sys.argv) > 2 and sys.argv[1] == "--task":
        task_main(*json.loads(sys.argv[2]))
        return
    print(json.dumps({"ready": "TensorFlow " + tf.__version__}), flush=True)
    for line in sys.stdin:
        name = line.strip()
        try:
            answer = {"value": MEASURES[name.split("/")[0]](name)}
        except Exception as error:  # pylint: disable=broad-except
            answer = {"error": "%s: %s" % (type(error).__name__, error)}
        print(json.dumps(answer), flush=True)
    for cluster in clusters.values():
        cluster.close()


if __name__ == "__main__":
    main()
