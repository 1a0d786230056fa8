# SPDX-License-Identifier: Apache-2.0
"""Tests branches, loops and functions."""

import numpy as np
import tensorflow as tf
from harness import program, v1
from tensorflow.python.framework import function


@program("ref", "resource", "v2")
def branches(cluster):
    x = v1.placeholder(tf.float32, [2], name="x")
    with cluster.between_graphs():
        w = v1.get_variable("w", initializer=[1.0, 2.0])
        big = tf.reduce_sum(x) > 10.0
        y = tf.cond(big, lambda: x * w, lambda: x - w)
        counted = tf.cond(big, lambda: tf.identity(v1.assign_add(w, [1.0, 1.0])),
                          lambda: tf.identity(w))
        case = tf.case([(x[0] > 5.0, lambda: tf.constant(1)), (x[0] > 1.0, lambda: tf.constant(2))],
                       default=lambda: tf.constant(3))
        gradient = tf.gradients(y, x)[0]
    with cluster.session() as session:
        session.run(w.initializer)
        results = [session.run([y, case, gradient], {x: v})
                   for v in ([0.5, 1.0], [2.0, 1.0], [9.0, 9.0])]
        results += [session.run(counted, {x: v}) for v in ([1.0, 1.0], [9.0, 9.0], [1.0, 1.0])]
        return results


@program("ref", "resource", "v2")
def loops(cluster):
    x = v1.placeholder(tf.float32, [], name="x")
    with v1.device("/job:ps/task:0"):
        two = tf.constant(2.0)
    with v1.device("/job:worker/task:0"):
        power = tf.while_loop(lambda i, p: i < 5, lambda i, p: (i + 1, p * x + two), [0, 1.0])[1]
        nested = tf.while_loop(
            lambda i, t: i < 3,
            lambda i, t: (i + 1, tf.while_loop(lambda j, u: j < i, lambda j, u: (j + 1, u + x),
                                               [0, t])[1]), [0, 0.0])[1]
    with cluster.session() as session:
        return [session.run([power, nested], {x: v}) for v in (0.5, 2.0)]


@program("ref", "resource", "v2")
def loops_with_gradients(cluster):
    x = v1.placeholder(tf.float32, [3], name="x")
    with v1.device("/job:worker/task:0"):
        power = tf.while_loop(lambda i, p: i < 4, lambda i, p: (i + 1, tf.tanh(p * x)),
                              [0, tf.ones([3])])[1]
        mapped = tf.map_fn(lambda e: e * e + 1.0, x)
        scanned = tf.scan(lambda a, e: a * 0.5 + e, x)
        folded = tf.foldl(lambda a, e: a * e, x)
        values = [power, mapped, scanned, folded]
        gradients = [tf.gradients(v, x)[0] for v in values]
    with cluster.session() as session:
        return session.run([values, gradients], {x: [0.5, -1.0, 2.0]})


@program("v2")
def loops_by_functions(cluster):
    x = v1.placeholder(tf.float32, [2], name="x")
    start, limit, delta = (v1.placeholder(tf.int32, []) for _ in range(3))

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32), tf.TensorSpec([2], tf.float32)])
    def body(i, value):
        return value * 2.0 + tf.cast(i, tf.float32)

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
    def double(value):
        return value * 2.0

    with v1.device("/job:worker/task:0"):
        steps = tf.raw_ops.For(start=start, limit=limit, delta=delta, input=[x],
                               body=body.get_concrete_function())[0]
        there = tf.raw_ops.RemoteCall(target="/job:worker/replica:0/task:0/device:CPU:0", args=[x],
                                      Tout=[tf.float32], f=double.get_concrete_function())[0]
        nothing = tf.raw_ops.FakeParam(dtype=tf.float32, shape=[None, 3])
    with cluster.session() as session:
        ranges = ((0, 3, 1), (5, 0, -2), (0, 7, 3), (4, 4, 0), (4, 4, 1))
        results = [session.run(steps, {x: [1.0, 2.0], start: s, limit: l, delta: d})
                   for s, l, d in ranges]
        results += [session.run([there, nothing], {x: [1.0, 2.0]})]
        for s, l, d in ((1, 0, 0), (0, 5, -1), (5, 0, 1)):
            try:
                session.run(steps, {x: [1.0, 2.0], start: s, limit: l, delta: d})
            except tf.errors.InvalidArgumentError as error:
                results.append("Invalid start/limit/delta" in str(error))
        return results


@program("v2")
def functions(cluster):
    """tf.function in a graph: calls, nested calls, gradients through them, variables inside."""
    w = v1.get_variable("w", initializer=[[1.0, 2.0], [3.0, 4.0]])

    @tf.function
    def inner(a):
        return tf.matmul(a, w) + 1.0

    @tf.function
    def outer(a, b):
        u = inner(a)
        w.assign_add(tf.ones([2, 2]))
        return u * b, tf.reduce_sum(inner(u))

    x = v1.placeholder(tf.float32, [2, 2])
    first, second = outer(x, 2.0)
    gradient = tf.gradients([first, second], [x, w])
    with cluster.session() as session:
        session.run(w.initializer)
        feed = {x: [[1.0, 0.5], [0.25, 2.0]]}
        return session.run([first, second], feed), session.run(gradient, feed), session.run(w)


@program("ref", "resource")
def gradients_of_functions(cluster):
    """The functions of TensorFlow 1, whose gradients are SymbolicGradient nodes."""
    @function.Defun(tf.float32, tf.float32)
    def inner(a, b):
        return tf.tanh(a * b) + a

    @function.Defun(tf.float32, tf.float32)
    def outer(a, b):
        return tf.reduce_sum(inner(a, b) * b), a / (1 + b * b)

    @function.Defun(tf.float32, tf.float32)
    def twice(a, dy):
        return dy * 2.0 + 0.0 * a

    @function.Defun(tf.float32, grad_func=twice)
    def registered(a):
        return tf.square(a)

    with tf.device("/job:worker/task:1"):
        a, b = tf.constant([1., -2., 0.5]), tf.constant([.5, .25, 3.])
        total, ratio = outer(a, b)
        both = tf.gradients([total, ratio], [a, b])
        second = tf.gradients(inner(a, b), b)
        own = tf.gradients(registered(a), a)
    with cluster.session() as session:
        return session.run([total, ratio, both, second, own])


@program("ref", "resource", "v2")
def prints_and_asserts(cluster):
    x = v1.placeholder(tf.float32, [None], name="x")
    check = v1.assert_greater(x, 0.0, message="all must be positive")
    with tf.control_dependencies([check]):
        y = tf.sqrt(x)
    with cluster.session() as session:
        results = [session.run(y, {x: [4.0, 9.0]})]
        try:
            session.run(y, {x: [4.0, -9.0]})
        except tf.errors.InvalidArgumentError as error:
            results.append("all must be positive" in str(error))
        return results


@program("ref")
def tensor_arrays(cluster):
    with v1.device("/job:worker/task:1"):
        array = tf.TensorArray(tf.float32, 3, clear_after_read=False)
        array = array.write(2, [5.0, 6.0]).write(0, [1.0, 2.0]).write(1, [3.0, 4.0])
        values = [array.stack(), array.read(1), array.gather([2, 0]), array.concat(), array.size()]
        split = tf.TensorArray(tf.float32, 2, infer_shape=False)
        split = split.split(np.float32([1, 2, 3]), [1, 2])
        values += [split.read(0), split.read(1)]
    with cluster.session() as session:
        return session.run(values)
