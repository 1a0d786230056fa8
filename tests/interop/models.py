# SPDX-License-Identifier: Apache-2.0
"""Tests models trained with full batches, by workers with their own graphs."""

import numpy as np
import tensorflow as tf
from harness import program, v1

CLASSES = 5


def digits(rows, shape, seed=1):
    """Returns random pictures and their classes."""
    random = np.random.RandomState(seed)
    return (random.rand(rows, *shape).astype(np.float32),
            random.randint(0, CLASSES, rows).astype(np.int64))


def weights(name, shape, stddev=0.1):
    return v1.get_variable(name, shape, initializer=v1.truncated_normal_initializer(stddev=stddev))


def biases(name, size, value=0.0):
    return v1.get_variable(name, [size], initializer=v1.constant_initializer(value))


def train(cluster, loss, optimizer, feed, steps=4):
    """Trains; returns the loss of each step, and the final variables."""
    step = v1.train.get_or_create_global_step()
    minimize = optimizer.minimize(loss, global_step=step)
    values = v1.trainable_variables()
    with cluster.session() as session:
        session.run(v1.global_variables_initializer())
        losses = [session.run([loss, minimize], feed)[0] for _ in range(steps)]
        return {"losses": losses, "step": session.run(step),
                "variables": {v.op.name: session.run(v) for v in values}}


@program("ref", "resource", "v2")
def softmax_regression(cluster):
    v1.set_random_seed(1)
    with cluster.between_graphs():
        x = v1.placeholder(tf.float32, [None, 12])
        y = v1.placeholder(tf.float32, [None, CLASSES])
        w, b = weights("w", [12, CLASSES]), biases("b", CLASSES)
        probabilities = tf.nn.softmax(tf.matmul(x, w) + b)
        loss = tf.reduce_mean(-tf.reduce_sum(y * tf.math.log(probabilities), axis=[1]))
        right = tf.equal(tf.argmax(probabilities, 1), tf.argmax(y, 1))
        accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
        xs, labels = digits(32, [12])
        feed = {x: xs, y: np.eye(CLASSES, dtype=np.float32)[labels]}
        trained = train(cluster, loss, v1.train.GradientDescentOptimizer(0.5), feed, 10)
        with cluster.session() as session:
            return trained, session.run(accuracy, feed)


@program("ref", "resource", "v2")
def mlp(cluster):
    v1.set_random_seed(2)
    with cluster.between_graphs():
        x = v1.placeholder(tf.float32, [None, 12])
        y = v1.placeholder(tf.int64, [None])
        hidden = tf.nn.relu(tf.matmul(x, weights("w1", [12, 16])) + biases("b1", 16))
        hidden = tf.nn.dropout(hidden, rate=0.3)
        logits = tf.matmul(hidden, weights("w2", [16, CLASSES])) + biases("b2", CLASSES)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        xs, labels = digits(16, [12])
        return train(cluster, loss, v1.train.MomentumOptimizer(0.1, 0.9), {x: xs, y: labels})


@program("ref", "resource", "v2")
def convnet(cluster):
    v1.set_random_seed(3)
    with cluster.between_graphs():
        x = v1.placeholder(tf.float32, [None, 12, 12, 1])
        y = v1.placeholder(tf.int64, [None])
        h = tf.nn.conv2d(x, weights("c1", [3, 3, 1, 4]), strides=[1, 1, 1, 1], padding="SAME")
        h = tf.nn.relu(tf.nn.bias_add(h, biases("b1", 4)))
        h = tf.nn.max_pool2d(h, ksize=2, strides=2, padding="SAME")
        h = tf.nn.conv2d(h, weights("c2", [3, 3, 4, 6]), strides=[1, 2, 2, 1], padding="VALID")
        h = tf.nn.elu(tf.nn.bias_add(h, biases("b2", 6)))
        h = tf.nn.avg_pool2d(h, ksize=2, strides=1, padding="VALID")
        flat = tf.reshape(h, [tf.shape(h)[0], 6])
        w = weights("w", [6, CLASSES])
        logits = tf.matmul(flat, w) + biases("b", CLASSES)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        loss += 1e-2 * tf.nn.l2_loss(w)
        rate = v1.train.exponential_decay(0.05, v1.train.get_or_create_global_step(), 2, 0.9)
        xs, labels = digits(8, [12, 12, 1])
        optimizer = v1.train.AdamOptimizer(rate)
        return train(cluster, loss, optimizer, {x: xs, y: labels})


@program("ref", "resource", "v2")
def local_response_normalisation(cluster):
    v1.set_random_seed(4)
    with cluster.between_graphs():
        x = v1.placeholder(tf.float32, [None, 6, 6, 1])
        h = tf.nn.conv2d(x, weights("c", [3, 3, 1, 8]), strides=1, padding="SAME")
        h = tf.nn.lrn(h, depth_radius=2, bias=1.0, alpha=0.01, beta=0.75)
        xs, _ = digits(4, [6, 6, 1])
        optimizer = v1.train.AdagradOptimizer(0.1)
        return train(cluster, tf.reduce_sum(tf.square(h)), optimizer, {x: xs})


def batch_norm(x, name, channels):
    """Normalises the batch, with running averages kept by update ops."""
    with v1.variable_scope(name):
        scale, offset = biases("scale", channels, 1.0), biases("offset", channels)
        running = [v1.get_variable(n, [channels], trainable=False,
                                   initializer=v1.constant_initializer(v))
                   for n, v in (("mean", 0.0), ("variance", 1.0))]
        y, mean, variance = v1.nn.fused_batch_norm(x, scale, offset, epsilon=1e-3)
        for variable, value in zip(running, (mean, variance)):
            update = v1.assign_sub(variable, 0.1 * (variable - value))
            v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, update)
        return y


@program("ref", "resource", "v2", rtol=2e-4, atol=2e-5)
def resnet_block(cluster):
    v1.set_random_seed(5)
    with cluster.between_graphs():
        x = v1.placeholder(tf.float32, [None, 8, 8, 3])
        y = v1.placeholder(tf.int64, [None])
        stem = tf.nn.conv2d(x, weights("stem", [3, 3, 3, 8]), strides=1, padding="SAME")
        h = tf.nn.relu(batch_norm(stem, "bn1", 8))
        h = tf.nn.conv2d(h, weights("c1", [3, 3, 8, 16]), strides=2, padding="SAME")
        h = tf.nn.relu(batch_norm(h, "bn2", 16))
        h = tf.nn.conv2d(h, weights("c2", [3, 3, 16, 16]), strides=1, padding="SAME")
        short = tf.nn.avg_pool2d(stem, 2, 2, "SAME")
        short = tf.pad(short, [[0, 0], [0, 0], [0, 0], [4, 4]])
        h = tf.reduce_mean(tf.nn.relu(h + short), axis=[1, 2])
        logits = tf.matmul(h, weights("w", [16, CLASSES])) + biases("b", CLASSES)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        xs, labels = digits(8, [8, 8, 3])
        with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
            loss = tf.identity(loss)
        optimizer = v1.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True)
        trained = train(cluster, loss, optimizer, {x: xs, y: labels})
        running = [v for v in v1.global_variables() if v.op.name.endswith(("/mean", "/variance"))]
        with cluster.session() as session:
            return trained, session.run(running)


@program("ref", "v2", rtol=2e-4, atol=2e-5)
def unfused_batch_norm(cluster):
    v1.set_random_seed(6)
    with cluster.between_graphs():
        x = v1.placeholder(tf.float32, [None, 10])
        h = tf.matmul(x, weights("w", [10, 7]))
        mean, variance = tf.nn.moments(h, axes=[0])
        h = tf.nn.batch_normalization(h, mean, variance, biases("offset", 7),
                                      biases("scale", 7, 1.0), 1e-3)
        xs, _ = digits(9, [10])
        optimizer = v1.train.RMSPropOptimizer(0.01, momentum=0.9)
        return train(cluster, tf.reduce_mean(tf.pow(h, 3)), optimizer, {x: xs})
