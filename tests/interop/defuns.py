# SPDX-License-Identifier: Apache-2.0
"""Tests branches and loops of TensorFlow 1 (Switch, Merge, Enter, Exit) inside functions."""

import tensorflow as tf
from harness import program, v1
from tensorflow.python.framework import function


@program("ref", "resource")
def branches_in_functions(cluster):
    @function.Defun(tf.float32, tf.float32)
    def choose(a, b):
        return tf.cond(a > b, lambda: a * 2.0 + 1.0,
                       lambda: tf.cond(b > 5.0, lambda: b, lambda: -b))

    @function.Defun(tf.float32)
    def twice(a):
        return choose(a, 1.0) + choose(1.0, a)

    a, b = v1.placeholder(tf.float32, []), v1.placeholder(tf.float32, [])
    with v1.device("/job:worker/task:1"):
        results = [choose(a, b), choose(b, a), twice(a)]
    with cluster.session() as session:
        return [session.run(results, {a: x, b: y})
                for x, y in ((1.0, 2.0), (3.0, 2.0), (1.0, 7.0))]


@program("ref", "resource")
def loops_in_functions(cluster):
    def scalar(x):  # arguments and results of calls have unknown shapes
        return tf.reshape(x, [])

    @function.Defun(tf.float32, tf.int32)
    def power(x, n):
        return tf.while_loop(lambda i, p: i < n, lambda i, p: (i + 1, p * scalar(x)),
                             [0, 1.0])[1]

    @function.Defun(tf.float32)
    def nested(x):
        def row(i, total):
            inner = tf.while_loop(lambda j, t: j < i, lambda j, t: (j + 1, t + scalar(power(x, j))),
                                  [0, total])
            return i + 1, inner[1]
        return tf.while_loop(lambda i, t: i < 4, row, [0, 0.0])[1]

    @function.Defun(tf.float32)
    def mapped(rows):
        rows = tf.reshape(rows, [3, 2])
        return tf.map_fn(lambda row: tf.reduce_sum(row) * row, rows), \
            tf.scan(lambda a, e: a * 0.5 + e, rows)

    x, n = v1.placeholder(tf.float32, []), v1.placeholder(tf.int32, [])
    with v1.device("/job:worker/task:1"):
        rows = tf.constant([[1.0, 2.0], [3.0, 4.0], [-1.0, 0.5]])
        outside = tf.while_loop(lambda i, p: i < 3, lambda i, p: (i + 1, p + scalar(power(x, i))),
                                [0, 0.0])[1]
        results = [power(x, n), power(x + 1.0, n + 1), nested(x), mapped(rows), outside]
    with cluster.session() as session:
        return [session.run(results, {x: a, n: b}) for a, b in ((2.0, 3), (0.5, 0))]


@program("resource")
def effects_in_functions(cluster):
    """A call runs all assignments of the branch that is taken and of all iterations, also if its
    result does not need them."""
    with v1.device("/job:ps/task:0"):
        names = ["taken", "other", "turns", "inner", "last"]
        v = {name: v1.get_variable(name, initializer=0.0) for name in names}

    @function.Defun(tf.float32)
    def branch(x):
        tf.cond(x > 0.0, lambda: v["taken"].assign_add(x, read_value=False),
                lambda: v["other"].assign_add(x, read_value=False))
        return x + 1.0

    @function.Defun(tf.float32)
    def loop(x):
        def turn(i, x):
            added = v["turns"].assign_add(1.0, read_value=False)

            def inner(j):
                tf.cond(tf.equal(j % 2, 0),
                        lambda: v["inner"].assign_add(x, read_value=False), tf.no_op)
                return j + 1
            tf.while_loop(lambda j: j < i, inner, [0])
            del added
            return i + 1, x
        turns = tf.while_loop(lambda i, _: i < 5, turn, [0, x])[0]
        v["last"].assign(tf.cast(turns, tf.float32))
        return x * 2.0

    @function.Defun(tf.float32)
    def both(x):
        return tf.cond(x > 1.0, lambda: branch(x), lambda: loop(x))

    x = v1.placeholder(tf.float32, [])
    with v1.device("/job:worker/task:1"):
        calls = [branch(x), loop(x), both(x)]
        after = []
        for call in calls:
            with tf.control_dependencies([call]):
                after.append([call, [tf.identity(v[name].read_value()) for name in names]])
    results = []
    with cluster.session() as session:
        for fetched in after:
            for value in (2.0, -3.0, 0.5):
                session.run(v1.global_variables_initializer())
                results.append(session.run(fetched, {x: value}))
    return results


@program("ref", "resource")
def checks_in_functions(cluster):
    """A check of TensorFlow 1 is an Assert on a branch."""
    @function.Defun(tf.float32)
    def checked(x):
        v1.assert_positive(x, message="x must be positive")
        tf.debugging.Assert(tf.reduce_all(x < 100.0), [x])
        return tf.sqrt(x)

    x = v1.placeholder(tf.float32, [None])
    with v1.device("/job:worker/task:1"):
        root = checked(x)
    results = []
    with cluster.session() as session:
        for value in ([4.0, 9.0], [4.0, -9.0], [4.0, 400.0]):
            try:
                results.append(session.run(root, {x: value}))
            except tf.errors.InvalidArgumentError as error:
                results.append(["x must be positive" in str(error), "400" in str(error)])
    return results


@program("ref", "resource")
def flow_in_functions_of_datasets(cluster):
    def branch(x):
        return tf.cond(x % 2 < 1, lambda: x * 10, lambda: tf.cond(x > 3, lambda: -x, lambda: x))

    def loop(x):
        return tf.while_loop(lambda i, s: i < x, lambda i, s: (i + 1, s + i),
                             [tf.constant(0, tf.int64), tf.constant(0, tf.int64)])[1]

    def checked(x):
        with tf.control_dependencies([v1.assert_less(x, tf.constant(6, tf.int64))]):
            return tf.identity(x)

    with v1.device("/job:worker/task:1"):
        numbers = v1.data.Dataset.range(8)
        datasets = [numbers.map_with_legacy_function(branch),
                    numbers.map_with_legacy_function(loop, num_parallel_calls=2),
                    numbers.map_with_legacy_function(lambda x: loop(branch(x))),
                    numbers.filter_with_legacy_function(lambda x: tf.equal(loop(x) % 2, 0)),
                    numbers.map(branch), numbers.map(loop),
                    numbers.map_with_legacy_function(checked)]
        elements = [v1.data.make_one_shot_iterator(d).get_next() for d in datasets]
    results = []
    with cluster.session() as session:
        for element in elements:
            values = []
            try:
                while len(values) < 20:
                    values.append(session.run(element))
            except (tf.errors.OutOfRangeError, tf.errors.InvalidArgumentError) as error:
                values.append(type(error).__name__)
            results.append(values)
    return results
