# SPDX-License-Identifier: Apache-2.0
"""Functions of tf and tf.math that send ops of their own, with their gradients."""

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
