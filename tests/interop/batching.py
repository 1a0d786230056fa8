# SPDX-License-Identifier: Apache-2.0
"""Tests ops that join the inputs of concurrent steps. The steps of a program together fill the
batches, so that the results do not depend on their order."""

import threading

import numpy as np
import tensorflow as tf
from harness import program, v1
from tensorflow.python.ops import gen_batch_ops

LONG = 20_000_000  # microseconds, but the batches are full before that


def _at_once(session, fetches, x, feeds):
    """Runs one step for each feed, at the same time; returns their results or errors."""
    results = [None] * len(feeds)

    def run(i):
        try:
            results[i] = session.run(fetches, {x: feeds[i]})
        except tf.errors.OpError as error:
            results[i] = type(error).__name__

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(feeds))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def _rows(first, count):
    return np.arange(2 * count, dtype=np.float32).reshape(count, 2) + first


@program("resource", "v2")
def batches_and_their_gradients(cluster):
    results = []
    with tf.device("/job:worker/task:0/cpu:0"):
        x = v1.placeholder(tf.float32, [None, 2])
        batched, index, step = gen_batch_ops.batch(
            [x, x[:, 0]], num_batch_threads=1, max_batch_size=4, batch_timeout_micros=LONG,
            grad_timeout_micros=LONG)
        total = tf.reduce_sum(batched[0], 0, keepdims=True)
        mine = gen_batch_ops.unbatch(batched[0] * 2. + total, index, step, timeout_micros=LONG)
        gradient = gen_batch_ops.unbatch_grad(batched[0], index, mine * 3., step)
        shares = tf.reduce_sum(index[:, 2] - index[:, 1])
        # One of the steps gets the gradients of all steps.
        fetches = [mine, tf.shape(index)[0], shares, tf.reduce_sum(gradient)]
    with cluster.session() as session:
        for sizes in ([4], [1, 3], [2, 1, 1]):
            feeds = [_rows(10 * i, size) for i, size in enumerate(sizes)]
            steps = _at_once(session, fetches, x, feeds)
            results.append([step[0] for step in steps])
            results.append(np.sum([step[1:] for step in steps], 0))
    return results


@program("resource", "v2")
def padded_batches(cluster):
    with tf.device("/job:worker/task:0/cpu:0"):
        x = v1.placeholder(tf.float32, [None, 2])
        batched, index, step = gen_batch_ops.batch(
            [x], num_batch_threads=1, max_batch_size=8, batch_timeout_micros=1000,
            allowed_batch_sizes=[2, 6, 8], grad_timeout_micros=LONG,
            shared_name="padded")  # Session.reset does not remove TensorFlow's batchers
        mine = gen_batch_ops.unbatch(batched[0] + 1., index, step, timeout_micros=LONG)
        none = gen_batch_ops.unbatch(x[:0], tf.zeros([0, 3], tf.int64), np.int64(5),
                                     timeout_micros=1000)
    with cluster.session() as session:
        results = [session.run([batched, index[:, 1:], mine], {x: _rows(0, n)}) for n in (1, 3, 6)]
        return results + _at_once(session, none, x, [_rows(0, 1)]) + _at_once(
            session, batched, x, [_rows(0, 9)])


@program("resource", "v2")
def functions_of_batches(cluster):
    results = []
    with tf.device("/job:worker/task:0/cpu:0"):
        x = v1.placeholder(tf.float32, [None, 2])
        weights = v1.get_variable("weights", initializer=[[1., 2.], [3., 4.]], use_resource=True)

        @tf.nondifferentiable_batch_function(2, 4, LONG)
        def layer(rows):
            return tf.matmul(rows, weights) + tf.reduce_sum(rows), tf.strings.as_string(rows[:, 0])

        @tf.nondifferentiable_batch_function(2, 8, 1000, allowed_batch_sizes=[2, 4])
        def split(rows):
            return rows * 2.

        @tf.nondifferentiable_batch_function(2, 4, 1000)
        def scalar(rows):
            return tf.reduce_sum(rows)

        fetches = [layer(x), split(x), scalar(x)]
    with cluster.session() as session:
        session.run(v1.global_variables_initializer())
        for sizes in ([4], [1, 3], [1, 1, 2]):
            feeds = [_rows(10 * i, size) for i, size in enumerate(sizes)]
            results.append(_at_once(session, fetches[0], x, feeds))
        results += _at_once(session, fetches[1], x, [_rows(0, 7), _rows(20, 2)])
        results += _at_once(session, fetches[1], x, [_rows(0, 9)])
        results += _at_once(session, fetches[2], x, [_rows(0, 2)])
    return results
