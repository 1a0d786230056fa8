# SPDX-License-Identifier: Apache-2.0
"""Tests warm starts: variables from a checkpoint that has another vocabulary."""

import os

import numpy as np
import tensorflow as tf
from harness import program, v1

WORDS = {"old": ["the", "cat", "sat", "on", "mat"], "new": ["a", "mat", "the", "dog", "sat", "cat"]}


def _vocabulary(cluster, name):
    path = os.path.join(cluster.folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(WORDS[name]) + "\n")
    return path


def _model(size, partitioner=None):
    v1.get_variable("table", [size, 3], partitioner=partitioner,
                    initializer=v1.random_uniform_initializer(seed=7))
    v1.get_variable("bias", [3], initializer=v1.random_uniform_initializer(seed=8))


@program("ref", "resource", "v2")
def another_vocabulary(cluster):
    old, new = _vocabulary(cluster, "old"), _vocabulary(cluster, "new")
    with tf.Graph().as_default(), cluster.between_graphs():
        _model(len(WORDS["old"]), v1.fixed_size_partitioner(2))
        with cluster.session() as session:
            session.run(v1.global_variables_initializer())
            saved = v1.train.Saver().save(session, os.path.join(cluster.folder, "old_model"))
            before = session.run(v1.global_variables())
    with tf.Graph().as_default(), cluster.between_graphs():
        v1.set_random_seed(71)
        _model(len(WORDS["new"]))
        words = v1.train.VocabInfo(
            new, len(WORDS["new"]), 0, old, -1,
            backup_initializer=v1.random_uniform_initializer(5, 6, seed=9))
        v1.train.warm_start(saved, var_name_to_vocab_info={"table": words})
        with cluster.session() as session:
            session.run(v1.global_variables_initializer())
            table, bias = session.run(v1.global_variables())
    rows = np.concatenate(before[:-1])
    for i, word in enumerate(WORDS["new"]):
        if word in WORDS["old"]:
            np.testing.assert_array_equal(table[i], rows[WORDS["old"].index(word)])
    return before, table, bias
