# SPDX-License-Identifier: Apache-2.0
"""Builds the graphs of workloads.cc with TensorFlow."""

import tensorflow.compat.v1 as tf

from workloads import CHAIN_NODES, RANDOM_GRAPH, WIDE_NODES, random_edges


def executor_graph(shape, kind):
    """Builds a graph of scalar additions or of no-ops; returns (feeds, target, number of nodes)."""
    feeds = [tf.placeholder(tf.float32, [])] if kind == "add" else []

    def node(inputs):
        if kind == "add":
            return tf.math.add(inputs[0], inputs[-1])
        with tf.control_dependencies(inputs):
            return tf.no_op()

    first = node([tf.identity(x) for x in feeds])
    count, last = 1, [first]
    if shape == "chain":
        for _ in range(CHAIN_NODES - 1):
            last = [node(last)]
        count = CHAIN_NODES
    elif shape == "wide":
        last = [node([first]) for _ in range(WIDE_NODES - 1)]
        count = WIDE_NODES
    else:
        last = [first] * RANDOM_GRAPH[0]
        for layer in random_edges():
            last = [node([last[i] for i in inputs]) for inputs in layer]
            count += len(layer)
    with tf.control_dependencies(last):
        return feeds, tf.no_op(), count


def dense(x, suffix, n_in, n_out):
    w = tf.get_variable("w" + suffix, initializer=tf.random_normal([n_in, n_out], stddev=0.05))
    b = tf.get_variable("b" + suffix, initializer=tf.zeros([n_out]))
    return tf.nn.bias_add(tf.matmul(x, w), b)


def mlp(x, labels):
    x = tf.nn.relu(dense(x, "0", 784, 512))
    x = tf.nn.relu(dense(x, "1", 512, 512))
    return loss_of(dense(x, "2", 512, 10), labels)


def conv_layer(x, suffix, n_in, n_out):
    w = tf.get_variable("c" + suffix,
                        initializer=tf.random_normal([5, 5, n_in, n_out], stddev=0.05))
    b = tf.get_variable("d" + suffix, initializer=tf.zeros([n_out]))
    x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), b))
    return tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")


def convnet(x, labels):
    x = tf.reshape(x, [-1, 28, 28, 1])
    x = conv_layer(x, "0", 1, 32)
    x = conv_layer(x, "1", 32, 64)
    x = tf.reshape(x, [-1, 7 * 7 * 64])
    x = tf.nn.relu(dense(x, "0", 7 * 7 * 64, 1024))
    return loss_of(dense(x, "1", 1024, 10), labels)


def loss_of(logits, labels):
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


MODELS = {"mlp": mlp, "convnet": convnet}
