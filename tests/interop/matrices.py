# SPDX-License-Identifier: Apache-2.0
"""Tests diagonals, sums of products, updates of slices, functions of matrices; and their
gradients."""

import numpy as np
import tensorflow as tf
from harness import program, v1


def values_and_gradients(cluster, build, *shapes, sizes_known=False):
    """Returns the value of `build`, its gradients, and its second derivatives."""
    rng = np.random.RandomState(7)
    xs = [v1.placeholder(tf.float32, shape if sizes_known else [None] * len(shape))
          for shape in shapes]
    with v1.device("/job:worker/task:0"):
        ys = build(*xs)
        total = tf.add_n([tf.reduce_sum(tf.sin(y)) for y in ys])
        first = tf.gradients(total, xs)
        second = tf.gradients(tf.add_n([tf.reduce_sum(d * d) for d in first]), xs)
    feed = {x: rng.uniform(-1, 1, shape) for x, shape in zip(xs, shapes)}
    with cluster.session() as session:
        return session.run([ys, first, second], feed)


@program("v2")
def diagonals(cluster):
    def build(x, band, matrix):
        aligns = ["LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"]
        return [
            tf.linalg.diag(x), tf.linalg.diag(x, k=-1, num_rows=4, num_cols=5, padding_value=2.0),
            *(tf.linalg.diag(band, k=(-1, 1), align=align) for align in aligns),
            tf.linalg.diag_part(matrix),
            *(tf.linalg.diag_part(matrix, k=(-1, 2), align=align) for align in aligns),
            tf.linalg.set_diag(matrix, x), tf.linalg.set_diag(matrix, band, k=(-1, 1)),
            tf.linalg.trace(matrix) * x[:, 0], tf.eye(3, batch_shape=[2]) * matrix[:, :, :3],
            tf.eye(tf.shape(matrix)[1], tf.shape(matrix)[2]) * matrix,
        ]
    return values_and_gradients(cluster, build, (2, 3), (2, 3, 3), (2, 3, 4),
                                sizes_known=True)


@program("v2")
def attention(cluster):
    def build(query, key, value):
        scores = tf.einsum("bqhd,bkhd->bhqk", query, key)
        return [scores, tf.einsum("bhqk,bkhd->bqhd", tf.nn.softmax(scores), value)]
    shape = (2, 3, 2, 4)
    return values_and_gradients(cluster, build, shape, shape, shape)


@program("v2")
def sums_of_products(cluster):
    def build(a, b, c):
        return [
            tf.einsum("ij,jk->ki", a, b), tf.einsum("ij,kj->", a, a), tf.einsum("ij->j", a),
            tf.einsum("...ij,jk->...ik", c, b), tf.einsum("...ij,...jk->i...k", c, b),
            tf.einsum("bii->bi", c[:, :, :2]), tf.einsum("bii->b", c[:, :, :2]),
            tf.einsum("i...,i...->...", c, c), tf.einsum("ij,jk,km->im", a, b, a),
            tf.tensordot(c, b, [[2], [0]]), tf.linalg.matvec(c, b[:, 0]),
        ]
    return values_and_gradients(cluster, build, (2, 3), (3, 2), (4, 2, 3))


@program("v2")
def updates_of_tensors(cluster):
    def build(x, updates, row):
        indices = tf.constant([[2], [0]])
        places = tf.constant([[0, 1], [2, 0], [1, 1]])
        return [
            tf.tensor_scatter_nd_update(x, indices, updates),
            tf.tensor_scatter_nd_update(x, places, row),
            tf.tensor_scatter_nd_add(x, indices, updates),
            tf.tensor_scatter_nd_sub(x, indices, updates),
            tf.tensor_scatter_nd_min(x, indices, updates),
            tf.tensor_scatter_nd_max(x, places, row),
            tf.raw_ops.TensorStridedSliceUpdate(
                input=x, begin=[0, 1], end=[3, 3], strides=[2, 1], value=updates[:, :2]),
            tf.raw_ops.ScatterNdNonAliasingAdd(input=x, indices=indices, updates=updates),
        ]
    return values_and_gradients(cluster, build, (3, 3), (2, 3), (3,))


@program("v2", rtol=1e-3, atol=1e-3)
def functions_of_matrices(cluster):
    def build(x, rhs):
        wide = tf.matmul(x, x, transpose_b=True) + 2.0 * tf.eye(3)
        rows = tf.linalg.matrix_transpose(x) + tf.constant([[0.0], [4.0], [0.0]])
        bands = x[:, :2, :] + tf.constant([[3.0], [0.0]])
        e, v = tf.linalg.eig(tf.linalg.set_diag(x, tf.constant([[9.0, 1.0, 5.0]] * 2)))
        turned = tf.matmul(v, tf.linalg.matmul(tf.linalg.diag(e), tf.linalg.inv(v)))
        return [
            tf.linalg.sqrtm(wide), tf.linalg.expm(x), tf.math.real(turned),
            tf.linalg.tridiagonal_solve(rows, rhs, diagonals_format="compact"),
            tf.linalg.tridiagonal_matmul((rows[:, 0], rows[:, 1], rows[:, 2]), rhs,
                                         diagonals_format="sequence"),
            tf.linalg.banded_triangular_solve(bands, rhs),
            tf.linalg.lu_reconstruct(*map(tf.stop_gradient, tf.linalg.lu(wide))) * rhs[:, :, :1],
        ]
    return values_and_gradients(cluster, build, (2, 3, 3), (2, 3, 2), sizes_known=True)
