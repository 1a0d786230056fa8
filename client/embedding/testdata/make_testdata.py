# SPDX-License-Identifier: Apache-2.0
"""Writes TensorFlow's results for lookup_test.cc and partitioned_variable_test.cc into this folder.

    $(tools/install_tensorflow) client/embedding/testdata/make_testdata.py

tensorflow_lookups.txt: max_norm, combiner, whether there are weights; the rows looked up; the
gradient of the sum of their squares with respect to the table. tensorflow.*: a checkpoint of a
table in three parts, after a step of Adagrad.
"""

import pathlib

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
HERE = pathlib.Path(__file__).parent
TABLE = np.array([[np.sin(1.7 * i + 0.9 * j) * 2 for j in range(2)] for i in range(7)])
INDICES = [[0, 0], [0, 1], [2, 0], [2, 1], [2, 2], [3, 0]]
IDS = np.array([6, 1, 3, 3, 0, 1])
WEIGHTS = [0.5, 2.0, 1.5, -0.25, 1.0, 3.0]


def lookups():
    parts = [tf.constant(TABLE[:3]), tf.constant(TABLE[3:5]), tf.constant(TABLE[5:])]
    ids = tf.SparseTensor(INDICES, IDS, [4, 3])
    weights = tf.SparseTensor(INDICES, tf.constant(WEIGHTS, tf.float64), [4, 3])
    for max_norm in (0, 1.5):
        for combiner in ("sum", "mean", "sqrtn"):
            for given in (None, weights):
                rows = v1.nn.embedding_lookup_sparse(
                    parts, ids, given, "div", combiner=combiner, max_norm=max_norm or None)
                gradients = v1.gradients(v1.reduce_sum(v1.square(rows)), parts)
                yield (max_norm, combiner, int(given is not None), rows,
                       tf.concat([tf.convert_to_tensor(g) for g in gradients], 0))


def write_lookups(session):
    with open(HERE / "tensorflow_lookups.txt", "w") as file:
        for max_norm, combiner, weighted, *tensors in lookups():
            numbers = np.concatenate([x.ravel() for x in session.run(tensors)])
            print(max_norm, combiner, weighted, *("%.12g" % x for x in numbers), file=file)


def write_checkpoint(session):
    with v1.variable_scope("", partitioner=v1.fixed_size_partitioner(3)):
        table = v1.get_variable("table", TABLE.shape, tf.float64,
                                initializer=v1.zeros_initializer(), use_resource=True)
    session.run([part.initializer for part in table])
    session.run([part.assign(value) for part, value in zip(table, np.split(TABLE, [3, 5]))])
    train = v1.train.AdagradOptimizer(0.5).minimize(
        tf.reduce_sum(tf.square(v1.nn.embedding_lookup(table, IDS, "div"))))
    slots = [v for v in v1.global_variables() if v not in list(table)]
    session.run([v.initializer for v in slots])
    session.run(train)
    v1.train.Saver().save(session, str(HERE / "tensorflow"), write_meta_graph=False,
                          write_state=False)


v1.disable_eager_execution()
with v1.Session() as open_session:
    write_lookups(open_session)
    write_checkpoint(open_session)
