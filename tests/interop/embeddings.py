# SPDX-License-Identifier: Apache-2.0
"""Tests models with large tables: word2vec, and wide and deep."""

import numpy as np
import tensorflow as tf
from harness import program, v1
from models import train

VOCABULARY, SIZE = 50, 8


def _word2vec(cluster, loss_function, optimizer, partitions=None):
    v1.set_random_seed(21)
    random = np.random.RandomState(21)
    with cluster.between_graphs():
        words = v1.placeholder(tf.int32, [None])
        contexts = v1.placeholder(tf.int64, [None, 1])
        partitioner = partitions and v1.fixed_size_partitioner(partitions)
        with v1.variable_scope("tables", partitioner=partitioner):
            table = v1.get_variable("table", [VOCABULARY, SIZE],
                                    initializer=v1.random_uniform_initializer(-1, 1))
            w = v1.get_variable("w", [VOCABULARY, SIZE],
                                initializer=v1.truncated_normal_initializer(stddev=0.3))
        b = v1.get_variable("b", [VOCABULARY], initializer=v1.zeros_initializer())
        embedded = tf.nn.embedding_lookup(table, words)
        loss = tf.reduce_mean(loss_function(weights=w, biases=b, labels=contexts, inputs=embedded,
                                            num_sampled=6, num_classes=VOCABULARY))
        feed = {words: random.randint(0, VOCABULARY, 12),
                contexts: random.randint(0, VOCABULARY, [12, 1])}
        return train(cluster, loss, optimizer, feed)


@program("ref", "resource", "v2")
def word2vec_nce(cluster):
    return _word2vec(cluster, v1.nn.nce_loss, v1.train.GradientDescentOptimizer(0.5))


@program("ref", "resource", "v2")
def word2vec_sampled_softmax(cluster):
    return _word2vec(cluster, v1.nn.sampled_softmax_loss, v1.train.AdagradOptimizer(0.5))


@program("ref", "resource")
def word2vec_partitioned(cluster):
    return _word2vec(cluster, v1.nn.nce_loss, v1.train.FtrlOptimizer(0.5), partitions=3)


@program("ref", "resource")
def candidate_samplers(cluster):
    """Checks that every sampler with seeds gives the same candidates and expected counts."""
    true = tf.constant([[1, 4], [9, 2], [7, 7]], tf.int64)
    c = tf.random
    counts = [4.0, 1.0, 0.5, 3.0, 2.0, 1.0, 1.0, 9.0, 0.25, 2.0, 1.0, 3.0]
    samples = {
        "uniform": c.uniform_candidate_sampler(true, 2, 5, True, 12, seed=3),
        "uniform_repeated": c.uniform_candidate_sampler(true, 2, 20, False, 12, seed=4),
        "log_uniform": c.log_uniform_candidate_sampler(true, 2, 6, True, 12, seed=5),
        "log_uniform_repeated": c.log_uniform_candidate_sampler(true, 2, 30, False, 12, seed=6),
        "learned": c.learned_unigram_candidate_sampler(true, 2, 5, True, 12, seed=7),
        "fixed": c.fixed_unigram_candidate_sampler(true, 2, 5, True, 12, unigrams=counts,
                                                   distortion=0.75, seed=8),
        "fixed_repeated": c.fixed_unigram_candidate_sampler(
            true, 2, 25, False, 12, num_reserved_ids=0, unigrams=counts, seed=9),
        "all": tf.nn.all_candidate_sampler(true, 2, 12, True, seed=10),
    }
    hits = tf.nn.compute_accidental_hits(true, samples["uniform"].sampled_candidates, 2)
    with cluster.session() as session:
        return [session.run([samples, hits]) for _ in range(3)]


@program("ref", "resource")
def wide_and_deep(cluster):
    v1.set_random_seed(23)
    random = np.random.RandomState(23)
    with cluster.between_graphs():
        ids = v1.sparse_placeholder(tf.int64)
        numbers = v1.placeholder(tf.float32, [None, 4])
        y = v1.placeholder(tf.float32, [None, 1])
        with v1.variable_scope("wide"):
            w = v1.get_variable("w", [30, 1], initializer=v1.zeros_initializer())
            wide = v1.nn.embedding_lookup_sparse(w, ids, None, combiner="sum")
        with v1.variable_scope("deep", partitioner=v1.fixed_size_partitioner(2)):
            table = v1.get_variable("table", [30, 6], initializer=v1.glorot_uniform_initializer())
            deep = v1.nn.embedding_lookup_sparse(table, ids, None, combiner="mean")
        deep = tf.concat([deep, numbers], 1)
        for i, units in enumerate((8, 1)):
            kernel = v1.get_variable("k%d" % i, [deep.shape[1], units],
                                     initializer=v1.glorot_normal_initializer())
            deep = tf.matmul(tf.nn.relu(deep), kernel)
        loss = tf.reduce_mean(
            tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=wide + deep))
        scopes = {s: v1.get_collection(v1.GraphKeys.TRAINABLE_VARIABLES, scope=s)
                  for s in ("wide", "deep", "k")}
        step = v1.train.get_or_create_global_step()
        run = tf.group(
            v1.train.FtrlOptimizer(0.2, l1_regularization_strength=0.01).minimize(
                loss, var_list=scopes["wide"], global_step=step),
            v1.train.AdagradOptimizer(0.1).minimize(loss, var_list=scopes["deep"] + scopes["k"]))
    rows = np.repeat(np.arange(6), 3)
    indices = np.stack([rows, np.tile(np.arange(3), 6)], 1)
    feed = {ids: v1.SparseTensorValue(indices, random.randint(0, 30, 18), [6, 3]),
            numbers: random.rand(6, 4), y: random.randint(0, 2, [6, 1])}
    with cluster.session() as session:
        session.run(v1.global_variables_initializer())
        losses = [session.run([loss, run], feed)[0] for _ in range(4)]
        return losses, session.run(sum(scopes.values(), []))
