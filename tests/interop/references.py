# SPDX-License-Identifier: Apache-2.0
"""Tests reads and updates of one variable in one step, ordered by the graph."""

import tensorflow as tf
from harness import program, v1


@program("ref", "resource")
def reads_around_updates(cluster):
    """Reads a variable before, between and after two updates; uses the first value after them."""
    with tf.device("/job:ps/task:0"):
        v = v1.get_variable("v", initializer=[1.0, 2.0])
        early = tf.identity(v)
        with tf.control_dependencies([early]):
            first = v1.assign_add(v, [10.0, 10.0])
        with tf.control_dependencies([first]):
            filled = tf.stack([v, early])
            middle = early + 0.0
        with tf.control_dependencies([middle, filled]):
            second = v1.assign(v, [5.0, 6.0])
        with tf.control_dependencies([second]):
            late = tf.reduce_sum(early) + tf.reduce_sum(tf.stop_gradient(early))
            fresh = tf.identity(v) * 1.0
    with cluster.session() as session:
        session.run(v.initializer)
        return [session.run([filled, middle, late, fresh]) for _ in range(2)]


@program("ref", "resource")
def reads_in_branches_after_updates(cluster):
    up = v1.placeholder(tf.bool, [])
    with tf.device("/job:ps/task:0"):
        v = v1.get_variable("v", initializer=3)
        count = v1.assign_add(v, 1)
        with tf.control_dependencies([count]):
            outside = tf.cond(up, lambda: tf.stack([v, v]), lambda: tf.stack([v, -v]))
    with cluster.session() as session:
        session.run(v.initializer)
        return [session.run(outside, {up: side}) for side in (True, False, True)]


@program("ref", "resource")
def a_loop_counts_in_a_variable(cluster):
    with tf.device("/job:ps/task:0"):
        v = v1.get_variable("v", initializer=0.0)

        def body(i, total):
            with tf.control_dependencies([v1.assign_add(v, 1.0)]):
                return i + 1, total + tf.multiply(v, 1.0)

        _, total = tf.while_loop(lambda i, total: i < 4, body, [0, 0.0], parallel_iterations=1)
    with cluster.session() as session:
        session.run(v.initializer)
        return [session.run(total) for _ in range(2)]


@program("ref", "resource")
def a_loop_ends_by_its_variable(cluster):
    with tf.device("/job:ps/task:0"):
        v = v1.get_variable("v", initializer=0.0)

        def body(i, first):
            with tf.control_dependencies([v1.assign_add(v, 2.0)]):
                return i + 1, tf.identity(first)

        rounds, first = tf.while_loop(lambda i, first: v < 9.0, body, [0, tf.identity(v)],
                                      parallel_iterations=1)
    with cluster.session() as session:
        session.run(v.initializer)
        return session.run(rounds), session.run(v)
