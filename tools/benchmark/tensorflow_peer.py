# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's side of tools/bench, in graph mode. workloads.serve describes the protocol.

With --task it runs one task of a cluster that another process of this script measures.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
    os.environ.pop(name, None)

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

import tensorflow_models  # noqa: E402
from workloads import (BATCH, EXAMPLES, MAP_BATCH, SHUFFLED, THREADS,  # noqa: E402
                       TRANSFER_BYTES, mean_seconds, median_seconds, serve)  # noqa: E402

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)


def config():
    return tf.ConfigProto(intra_op_parallelism_threads=THREADS,
                          inter_op_parallelism_threads=THREADS)


def executor_config():
    # On graphs of tiny ops, TensorFlow is fastest with one thread.
    c = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    # Measure the executor: the optimizer would remove most of the graph, so turn it off.
    c.graph_options.optimizer_options.opt_level = -1
    c.graph_options.rewrite_options.disable_meta_optimizer = True
    return c


def prepare_executor(shape, kind):
    with tf.Graph().as_default() as graph:
        feeds, target, nodes = tensorflow_models.executor_graph(shape, kind)
        session = tf.Session(graph=graph, config=executor_config())
        run = session.make_callable(target, feeds)
    values = [np.float32(1)] * len(feeds)
    return lambda: nodes / median_seconds(lambda: run(*values)), session.close


def prepare_local_step(how):
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [], name="x")
        y = x + 1.0
        session = tf.Session(graph=graph, config=config())
        one = np.float32(1)
        if how == "callable":
            run = session.make_callable(y, [x])
            return lambda: median_seconds(lambda: run(one)) * 1e6, session.close
    return lambda: median_seconds(lambda: session.run(y, {x: one})) * 1e6, session.close


def prepare_training(model):
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [BATCH, 784])
        labels = tf.placeholder(tf.int32, [BATCH])
        loss = tensorflow_models.MODELS[model](x, labels)
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
        session = tf.Session(graph=graph, config=config())
        session.run(tf.global_variables_initializer())
        run = session.make_callable(train, [x, labels])
    images = np.random.RandomState(1).rand(BATCH, 784).astype(np.float32)
    classes = (np.arange(BATCH) % 10).astype(np.int32)
    return lambda: median_seconds(lambda: run(images, classes)) * 1e3, session.close


def write_examples(path):
    with tf.io.TFRecordWriter(path) as writer:
        for i in range(EXAMPLES):
            writer.write(tf.train.Example(features=tf.train.Features(feature={
                "image_raw": tf.train.Feature(
                    bytes_list=tf.train.BytesList(value=[bytes([i % 256]) * 784])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[i % 10])),
            })).SerializeToString())


def examples_dataset(path, what):
    features = {"image_raw": tf.io.FixedLenFeature([], tf.string),
                "label": tf.io.FixedLenFeature([], tf.int64)}
    records = tf.data.TFRecordDataset([path])
    if what == "batched_examples":
        batches = records.shuffle(SHUFFLED, seed=1).repeat().batch(BATCH, drop_remainder=True)
        return batches.map(lambda batch: tf.io.parse_example(batch, features))
    parallel = tf.data.AUTOTUNE if what == "parallel_examples" else None
    parsed = records.map(lambda record: tf.io.parse_single_example(record, features), parallel)
    batches = parsed.shuffle(SHUFFLED, seed=1).repeat().batch(BATCH)
    return batches.prefetch(tf.data.AUTOTUNE) if parallel else batches


def prepare_data(what):
    folder = tempfile.TemporaryDirectory()
    with tf.Graph().as_default() as graph:
        if what == "map":
            count = MAP_BATCH
            dataset = tf.data.Dataset.range(1 << 40).map(lambda x: x + 1).batch(count)
        else:
            count = BATCH
            path = os.path.join(folder.name, "examples")
            write_examples(path)
            dataset = examples_dataset(path, what)
        iterator = tf.data.make_initializable_iterator(dataset)
        batch = tf.nest.flatten(iterator.get_next())
        session = tf.Session(graph=graph, config=config())
        session.run(iterator.initializer)
        run = session.make_callable(batch[0].op)

    def close():
        session.close()
        folder.cleanup()

    return lambda: count / mean_seconds(run), close


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Cluster:
    """A cluster of one ps and some workers, each a process of this script."""

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

    def seconds(self, step):
        """Sends `step` to all workers at once; returns the mean of their answers."""
        for task in self.tasks[1:]:
            task.stdin.write(step + "\n")
            task.stdin.flush()
        answers = [json.loads(task.stdout.readline())["value"] for task in self.tasks[1:]]
        return sum(answers) / len(answers)

    def close(self):
        for task in self.tasks:
            task.kill()
            task.wait()


def prepare_null_step(_protocol, workers):
    cluster = Cluster(int(workers))
    return lambda: cluster.seconds("null_step") * 1e6, cluster.close


def prepare_transfer(_protocol, size):
    size = TRANSFER_BYTES[size]
    cluster = Cluster(1)
    return lambda: size / cluster.seconds("transfer %d" % size) / 1e9, cluster.close


def remote_step(what, server, here):
    """Returns the step that a worker repeats; measured_task.cc has the same steps."""
    ps = "/job:ps/task:0"
    with tf.Graph().as_default() as graph:
        with tf.device(ps):
            elements = int(what.split()[1]) // 4 if what.startswith("transfer") else 1
            v = tf.get_variable("v", initializer=tf.ones([elements]), use_resource=False)
        with tf.device(here):
            target = (tf.identity(v) if what.startswith("transfer") else v + 1.0).op
        session = tf.Session(server.target, graph=graph, config=tf.ConfigProto(
            device_filters=["/job:ps", here]))
        session.run(tf.global_variables_initializer())
        return session.make_callable(target)


def task_main(spec, job, index):
    server = tf.train.Server(tf.train.ClusterSpec(spec), job_name=job, task_index=index,
                             config=config())
    print("ready", flush=True)
    prepared, run = None, None
    for line in sys.stdin:  # a ps reads no requests; it serves until the end of its input
        what = line.strip()
        if what != prepared:
            prepared, run = what, remote_step(what, server, "/job:worker/task:%d" % index)
        print(json.dumps({"value": median_seconds(run)}), flush=True)
    os._exit(0)  # the server's threads never end, so exit without joining them


PREPARE = {"data": prepare_data, "executor": prepare_executor, "local_step": prepare_local_step,
           "null_step": prepare_null_step, "transfer": prepare_transfer,
           "training": prepare_training}


def prepare(name):
    kind, *what = name.split("/")
    return PREPARE[kind](*what)


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "--task":
        task_main(*json.loads(sys.argv[2]))
    else:
        serve("TensorFlow " + tf.__version__, prepare)
