# SPDX-License-Identifier: Apache-2.0
"""Tests functions of tf and tf.math that have their own ops, with their gradients."""

import numpy as np
import tensorflow as tf
from harness import program, v1


def _values(cluster, fetches):
    with cluster.session() as session:
        session.run(v1.global_variables_initializer())
        return session.run(fetches)


@program("resource")
def special_functions_and_their_gradients(cluster):
    with tf.device("/job:worker/task:1"):
        x = tf.constant(np.linspace(0.05, 0.95, 7))
        functions = [tf.math.erfinv, tf.math.ndtri, tf.math.special.expint, tf.math.special.dawsn,
                     tf.math.special.fresnel_sin, tf.math.special.fresnel_cos,
                     tf.math.special.spence]
        functions += [getattr(tf.math.special, "bessel_" + order) for order in
                      ("i0", "i1", "i0e", "i1e", "k0", "k1", "k0e", "k1e", "j0", "j1", "y0", "y1")]
        values = [f(x) for f in functions]
        gradients = [tf.gradients(y, x)[0] for y in values]
    return _values(cluster, [values, gradients])


@program("resource")
def scans_and_order_statistics(cluster):
    with tf.device("/job:worker/task:1"):
        x = tf.constant(np.random.RandomState(1).randn(3, 5).astype(np.float32))
        sums = [tf.math.cumulative_logsumexp(x, axis=1, exclusive=e, reverse=r)
                for e in (False, True) for r in (False, True)]
        inside = tf.math.cumulative_logsumexp(x, axis=0)
        smallest = tf.math.accumulate_n([x, x * 2.0, tf.ensure_shape(x, [None, 5])])
        nth = v1.nn.nth_element(x, 2, reverse=True) if hasattr(v1.nn, "nth_element") else x
        gradients = tf.gradients([inside, smallest, nth], x)
    return _values(cluster, [sums, inside, smallest, nth, gradients])


@program("resource")
def searches(cluster):
    with tf.device("/job:worker/task:1"):
        rows = tf.constant([[1., 2., 2., 5.], [0., 0., 3., 9.]])
        wanted = tf.constant([[2., 6., 0.], [0., 1., 9.]])
        places = [tf.searchsorted(rows, wanted, side=side) for side in ("left", "right")]
        table = tf.constant([[1, 2], [3, 4], [1, 2], [1, 2]])
        distinct, index = tf.raw_ops.UniqueV2(x=table, axis=[0])
        counted = tf.raw_ops.UniqueWithCountsV2(x=table, axis=[1])
        coordinates = tf.unravel_index([5, 7, 0], [2, 4])
        bits = tf.raw_ops.PopulationCount(x=tf.constant([0, 5, -1]))
        near = tf.math.nextafter(tf.constant([1., 2.]), [2., 1.])
    return _values(cluster, [places, distinct, index, list(counted), coordinates, bits, near])


@program("resource")
def quantized_training_and_its_gradients(cluster):
    with tf.device("/job:worker/task:1"):
        x = tf.constant(np.random.RandomState(2).randn(4, 3).astype(np.float32) * 3)
        low, high = tf.constant([-1.0, -2.0, 0.0]), tf.constant([1.0, 3.0, 6.0])
        whole = tf.quantization.fake_quant_with_min_max_args(x, -2, 3, num_bits=4)
        shared = tf.quantization.fake_quant_with_min_max_vars(x, low[1], high[1])
        each = tf.quantization.fake_quant_with_min_max_vars_per_channel(x, low, high, num_bits=3)
        loss = tf.reduce_sum(whole ** 2) + tf.reduce_sum(shared ** 2) + tf.reduce_sum(each ** 2)
        gradients = tf.gradients(loss, [x, low, high])
        gradients = [tf.convert_to_tensor(g) for g in gradients]
    return _values(cluster, [whole, shared, each, gradients])


@program("resource")
def counts_in_rows(cluster):
    with tf.device("/job:worker/task:1"):
        dense = tf.constant([[1, 1, 5], [0, 2, 0]])
        sparse = tf.SparseTensor([[0, 0], [0, 2], [2, 1]], [1, 1, 5], [3, 3])
        ragged = tf.RaggedTensor.from_row_splits([1, 1, 5], [0, 2, 2, 3])
        weights = [1.0, 2.0, 3.0]
        values = [tf.math.bincount(x, axis=-1, minlength=7) for x in (dense, sparse, ragged)]
        values += [tf.math.bincount(sparse, weights=sparse.with_values(weights), axis=-1),
                   tf.math.bincount(ragged, weights=ragged.with_values(tf.constant(weights)),
                                    axis=-1, maxlength=4),
                   tf.math.bincount(sparse, axis=-1, binary_output=True)]
        counted = [tf.sparse.bincount(x, **options) for x in (dense, sparse, ragged) for options in
                   ({}, {"maxlength": 4}, {"minlength": 9, "binary_output": True})]
        values += [[c.indices, c.values, c.dense_shape] for c in counted]
    return _values(cluster, values)


@program("resource")
def random_generators(cluster):
    with tf.device("/job:ps/task:0"):
        generator = tf.random.Generator.from_seed(7, alg="philox")
        draws = [generator.normal([3]), generator.uniform([2, 2], maxval=100, dtype=tf.int32)]
        seeds = generator.make_seeds(2)
        seed = tf.constant([1, 2])
        fixed = [tf.random.stateless_uniform([4], seed, None, None, tf.int64),
                 tf.raw_ops.StatelessRandomUniformInt(shape=[4], seed=seed, minval=-3, maxval=9),
                 tf.raw_ops.StatelessRandomUniformFullInt(shape=[3], seed=seed, dtype=tf.uint32)]
    with cluster.session() as session:
        session.run(v1.global_variables_initializer())
        return [session.run(d) for d in (draws[0], draws[1], seeds, draws[0], generator.state)] \
            + session.run(fixed)


@program("resource")
def early_random_generators(cluster):
    """The ops that tf.random.Generator used in its first versions draw from its state."""
    with tf.device("/job:ps/task:0"):
        generator = tf.random.Generator.from_seed(7, alg="philox")
        given = {"resource": generator.state.handle, "algorithm": 1, "shape": [2, 3]}
        ops = tf.raw_ops
        draws = [
            ops.StatefulUniform(**given, dtype=tf.float32),
            ops.StatefulUniform(**given, dtype=tf.float64),
            ops.StatefulStandardNormalV2(**given, dtype=tf.float32),
            ops.StatefulTruncatedNormal(**given, dtype=tf.float64),
            ops.StatefulUniformFullInt(**given, dtype=tf.uint64),
            ops.StatefulUniformFullInt(**given, dtype=tf.int32),
            ops.StatefulUniformInt(**given, minval=tf.constant(-3, tf.int64),
                                   maxval=tf.constant(90, tf.int64)),
            ops.StatefulRandomBinomial(resource=generator.state.handle, algorithm=1,
                                       shape=[4, 2], counts=[10., 1000.], probs=[.3, .6])]
        states = []
        for draw in draws:
            with tf.control_dependencies([draw]):
                states.append(generator.state.read_value())
        steps = list(zip(draws, states))
    with cluster.session() as session:
        session.run(v1.global_variables_initializer())
        return [session.run(step) for step in steps + steps[:1]]


@program("resource")
def serialized_tensors(cluster):
    with tf.device("/job:worker/task:1"):
        tensors = [tf.constant([[1., 2.], [3., 4.]]), tf.constant([["a", ""], ["bc", "d"]]),
                   tf.constant(3, tf.int64)]
        bytes_ = [tf.io.serialize_tensor(t) for t in tensors]
        back = [tf.io.parse_tensor(b, t.dtype) for b, t in zip(bytes_, tensors)]
    return _values(cluster, back)
