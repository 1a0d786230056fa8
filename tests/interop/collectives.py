# SPDX-License-Identifier: Apache-2.0
"""Tests collectives in graphs: ranks on the ps and both workers, in one session."""

import numpy as np
import tensorflow as tf
from harness import program, v1
from tensorflow.python.ops import collective_ops

DEVICES = ["/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"]


def _values(rank, *shape):
    return np.random.RandomState(rank).rand(*shape).astype(np.float32) + 0.5


def _run(cluster, fetches, steps=3):
    # TensorFlow's master asks the group leader for step ids that are common to all tasks.
    options = v1.RunOptions()
    options.experimental.collective_graph_key = 1
    config = v1.ConfigProto()
    config.experimental.collective_group_leader = "/job:worker/replica:0/task:0"
    with cluster.session(config=config) as session:
        return [session.run(fetches, options=options) for _ in range(steps)]


@program("resource")
def collective_all_reduce(cluster):
    fetches = []
    cases = [("Add", "Id", (3,)), ("Add", "Div", (100, 700)), ("Max", "Id", (5, 2)),
             ("Min", "Id", (1,)), ("Mul", "Id", (40,))]
    for instance, (merge, final, shape) in enumerate(cases):
        for rank, device in enumerate(DEVICES):
            with tf.device(device):
                own = tf.constant(_values(rank, *shape))
                fetches.append(collective_ops.all_reduce(
                    own, len(DEVICES), 1, 10 + instance, merge, final))
    return _run(cluster, fetches)


@program("resource")
def collective_gather_and_broadcast(cluster):
    fetches = []
    for rank, device in enumerate(DEVICES):
        with tf.device(device):
            own = tf.constant(_values(rank, 2, 3))
            fetches.append(collective_ops.all_gather(own, len(DEVICES), 1, 20))
            if rank == 1:
                fetches.append(collective_ops.broadcast_send(
                    own, own.shape, own.dtype, len(DEVICES), 1, 21))
            else:
                fetches.append(collective_ops.broadcast_recv(
                    own.shape, own.dtype, len(DEVICES), 1, 21))
    return _run(cluster, fetches)


@program("resource")
def collective_training(cluster):
    """Trains with variables on each worker and averaged gradients, like the strategies that mirror
    variables."""
    steps, updates = [], []
    for rank, device in enumerate(DEVICES[1:]):
        with tf.device(device):
            xs = tf.constant(_values(rank, 20, 1))
            w = v1.get_variable("w%d" % rank, [1, 1], initializer=v1.zeros_initializer())
            loss = tf.reduce_mean(tf.square(tf.matmul(xs, w) - (3 * xs)))
            gradient, = tf.gradients(loss, [w])
            mean = collective_ops.all_reduce(gradient, 2, 2, 30, "Add", "Div")
            updates.append(w.assign_sub(0.1 * mean))
            steps.append(w)
    config = v1.ConfigProto()
    config.experimental.collective_group_leader = "/job:worker/replica:0/task:0"
    options = v1.RunOptions()
    options.experimental.collective_graph_key = 2
    with cluster.session(config=config) as session:
        session.run(v1.global_variables_initializer())
        for _ in range(10):
            session.run([u.op for u in updates], options=options)
        return session.run(steps)
