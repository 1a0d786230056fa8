# SPDX-License-Identifier: Apache-2.0
"""The programs of cluster/...: typical TensorFlow 1 programs, for 2 ps and 1 worker.

Each function returns (the fetches of a step, the placeholders, the values to feed).
replica_device_setter puts variables on the ps and everything else on the worker.
"""

import numpy as np
import tensorflow.compat.v1 as tf

import tensorflow_models
from workloads import BATCH

SMALL_VARIABLES = 200
DENSE_PARTS = (8, 1 << 20)  # 32 MB of floats
TABLE = (2, 100_000, 64)    # tables, rows, numbers per row
IDS = 4096
LSTM = (20, 64)             # steps in time, units


def descend(loss):
    return tf.train.GradientDescentOptimizer(0.01).minimize(loss)


def null():
    """Runs a no-op: only the overhead of a step, from the client to the worker and back."""
    return tf.no_op(), [], []


def many_small():
    """Uses many small variables, as in a model with many biases and scales."""
    parts = [tf.get_variable("v%d" % i, [8]) for i in range(SMALL_VARIABLES)]
    return descend(tf.add_n([tf.reduce_sum(tf.square(part)) for part in parts])), [], []


def pictures(model):
    x = tf.placeholder(tf.float32, [BATCH, 784])
    labels = tf.placeholder(tf.int32, [BATCH])
    loss = tensorflow_models.MODELS[model](x, labels)
    values = [np.random.RandomState(1).rand(BATCH, 784).astype(np.float32),
              (np.arange(BATCH) % 10).astype(np.int32)]
    return descend(loss), [x, labels], values


def mlp():
    return pictures("mlp")


def convnet():
    return pictures("convnet")


def dense():
    """Sends all variables to the worker and all gradients back, and computes almost nothing."""
    count, size = DENSE_PARTS
    parts = [tf.get_variable("v%d" % i, [size]) for i in range(count)]
    return descend(tf.add_n([tf.reduce_sum(tf.square(part)) for part in parts])), [], []


def embedding():
    """Uses a few rows of large tables per step, with sparse gradients."""
    count, rows, units = TABLE
    ids = tf.placeholder(tf.int64, [count, IDS])
    loss = 0.0
    for i in range(count):
        table = tf.get_variable("table%d" % i, [rows, units])
        loss += tf.reduce_mean(tf.square(tf.nn.embedding_lookup(table, ids[i])))
    values = [np.random.RandomState(2).randint(0, rows, [count, IDS])]
    return tf.train.AdagradOptimizer(0.1).minimize(loss), [ids], values


def lstm():
    """Builds a long sequence of small ops, unrolled over time."""
    steps, units = LSTM
    x = tf.placeholder(tf.float32, [steps, BATCH, units])
    w = tf.get_variable("w", [2 * units, 4 * units])
    b = tf.get_variable("b", [4 * units], initializer=tf.zeros_initializer())
    c = h = tf.zeros([BATCH, units])
    for t in range(steps):
        gates = tf.nn.bias_add(tf.matmul(tf.concat([x[t], h], 1), w), b)
        i, j, f, o = tf.split(gates, 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(j)
        h = tf.sigmoid(o) * tf.tanh(c)
    values = [np.random.RandomState(3).rand(steps, BATCH, units).astype(np.float32)]
    return descend(tf.reduce_mean(tf.square(h))), [x], values


PROGRAMS = {program.__name__: program
            for program in (null, many_small, mlp, convnet, dense, embedding, lstm)}
