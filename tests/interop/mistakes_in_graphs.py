# SPDX-License-Identifier: Apache-2.0
"""Mistakes with variables, shapes and values; see mistakes.py."""

import numpy as np
import tensorflow as tf
from harness import v1
from mistakes import given, mistake, unknown, unknown_image, unknown_index

# Variables and placeholders

@mistake("Attempting to use uninitialized value w")
def ref_variable():
    return [v1.Variable(1.0, name="w", use_resource=False)]


@mistake("Attempting to use uninitialized value w")
def update_of_ref_variable():
    return [v1.assign_add(v1.Variable(1.0, name="w", use_resource=False), 1.0)]


@mistake("Attempting to use uninitialized value w")
def training_of_ref_variable():
    w = v1.Variable(1.0, name="w", use_resource=False)
    return [v1.train.GradientDescentOptimizer(0.1).minimize(w * 2.0)]


@mistake(r"This could mean that the variable .*uninitialized")
def resource_variable():
    return [v1.get_variable("w", initializer=1.0, use_resource=True).read_value()]


# Penstock returns FailedPrecondition, after which programs wait for their chief.
@mistake("does not exist|Attempting to use uninitialized value w", same_class=False)
def update_of_resource_variable():
    w = v1.get_variable("w", initializer=1.0, use_resource=True)
    return [w.assign_add(1.0, read_value=False)]


# Penstock returns FailedPrecondition, after which programs wait for their chief.
@mistake("does not exist|Attempting to use uninitialized value w", same_class=False)
def gather_of_resource_variable():
    w = v1.get_variable("w", initializer=[1.0, 2.0], use_resource=True)
    return [w.sparse_read([0])]


@mistake("You must feed a value for placeholder tensor 'x' with dtype float$|"
         "You must feed a value for placeholder tensor 'x' with dtype float\n")
def placeholder():
    return [unknown() + 1.0]


@mistake(r"You must feed a value for placeholder tensor 'x' with dtype int32 and shape \[\?,2\]")
def placeholder_of_a_shape():
    return [unknown(tf.int32, [None, 2]) + 1]


@mistake(r"Assign requires shapes of both tensors to match. lhs shape= \[2\] rhs shape= \[3\]")
def assign_of_another_shape():
    w = v1.Variable([1.0, 2.0], use_resource=False)
    x = unknown()
    return [w.initializer, (v1.assign(w, x), {x: [1., 2., 3.]})]


@mistake(r"Cannot update variable with shape \[2\] using a Tensor with shape \[3\], shapes must be "
         r"equal")
def assign_add_of_another_shape():
    w = v1.get_variable("w", initializer=[1.0, 2.0], use_resource=True)
    return [w.initializer, w.assign_add(given([1., 2., 3.]), read_value=False)]


# Elementwise operations

@mistake(r"Incompatible shapes: \[2\] vs. \[3\]")
def add_of_other_shapes():
    return [given([1., 2.]) + given([1., 2., 3.])]


@mistake(r"Incompatible shapes: \[2,2\] vs. \[3,1,3\]")
def product_of_other_shapes():
    return [given(np.ones([2, 2])) * given(np.ones([3, 1, 3]))]


@mistake(r"Incompatible shapes: \[2\] vs. \[3\]")
def comparison_of_other_shapes():
    return [tf.equal(given([1., 2.]), given([1., 2., 3.]))]


@mistake(r"Incompatible shapes: \[2\] vs. \[3\]")
def gradient_of_other_shapes():
    return [v1.squared_difference(given([1., 2.]), given([1., 2., 3.]))]


@mistake(r"Incompatible shapes: \[2\] vs. \[3\]")
def broadcast_of_other_shapes():
    return [list(tf.raw_ops.BroadcastGradientArgs(s0=given([2], np.int32),
                                                  s1=given([3], np.int32)))]


@mistake("Integer division by zero")
def division_by_zero():
    return [given([1, 2], np.int32) // given([1, 0], np.int32)]


@mistake("Integers to negative integer powers are not allowed")
def negative_power():
    return [tf.pow(given([2], np.int32), given([-1], np.int32))]


@mistake(r"Inputs to operation AddN.* of type AddN must have the same size and shape. "
         r" ?Input 0: \[2\] != input 1: \[3\]")
def add_n_of_other_shapes():
    return [tf.add_n([given([1., 2.]), given([1., 2., 3.])])]


@mistake(r"all must be positive")
def failed_assert():
    x = given([-1.0])
    with tf.control_dependencies([v1.assert_positive(x, message="all must be positive")]):
        return [tf.identity(x)]


@mistake(r"assertion failed: \[that\] \[1 2 3\.\.\.\]")
def failed_assert_with_data():
    return [tf.debugging.Assert(given(False), ["that", given([1, 2, 3, 4, 5])])]


@mistake("here : Tensor had NaN values")
def check_of_nan():
    return [tf.debugging.check_numerics(given([1.0, np.nan]), "here")]


@mistake("here : Tensor had Inf values")
def check_of_infinity():
    return [tf.debugging.check_numerics(given([1.0, np.inf]), "here")]


@mistake(r"must be a scalar, but it has shape \[2\]")
def condition_that_is_no_scalar():
    return [tf.cond(given([True, False]), lambda: 1, lambda: 2)]


# Matrices

# The second words are those of TensorFlow 2.12.
@mistake(r"Matrix size-incompatible: In\[0\]: \[2,3\], In\[1\]: \[2,3\]|"
         r"lhs mismatch rhs shape: 3 vs. 2: \[2,3\] \[2,3\]")
def matrix_product():
    return [tf.matmul(given(np.ones([2, 3])), given(np.ones([2, 3])))]


@mistake(r"Matrix size-incompatible: In\[0\]: \[4,2,3\], In\[1\]: \[4,2,3\]|"
         r"lhs mismatch rhs shape: 3 vs. 2: \[4,2,3\] \[4,2,3\]")
def batch_matrix_product():
    return [tf.matmul(given(np.ones([4, 2, 3])), given(np.ones([4, 2, 3])))]


@mistake(r"In\[0\] ndims must be >= 2: 1")
def matrix_product_of_a_vector():
    return [tf.matmul(given(np.ones([3])), given(np.ones([3, 2])))]


@mistake(r"Must provide as many biases as the last dimension of the input tensor: "
         r"\[2\] vs. \[4,3\]")
def bias_of_another_size():
    return [tf.nn.bias_add(given(np.ones([4, 3])), given(np.ones([2])))]


@mistake("Input( matrix)? is not invertible.")
def singular_matrix():
    return [tf.linalg.inv(given([[1., 2.], [2., 4.]]))]


@mistake(r"logits and labels must be broadcastable: logits_size=\[2,3\] labels_size=\[2,4\]")
def cross_entropy_of_other_shapes():
    return [tf.nn.softmax_cross_entropy_with_logits(labels=given(np.ones([2, 4])),
                                                    logits=given(np.ones([2, 3])))]


@mistake(r"Received a label value of 7 which is outside the valid range of \[0, 3\)")
def label_out_of_range():
    return [v1.nn.sparse_softmax_cross_entropy_with_logits(
        labels=given([1, 7], np.int32), logits=given(np.ones([2, 3])))]


@mistake("input depth must be evenly divisible by filter depth: 3 vs 2")
def convolution_of_another_depth():
    return [tf.nn.conv2d(unknown_image(3), given(np.ones([2, 2, 2, 4], np.float32)), 1, "SAME")]


# Shapes

@mistake(r"Input to reshape is a tensor with 6 values, but the requested shape has 8")
def reshape_to_more():
    return [tf.reshape(given(np.ones(6)), given([2, 4], np.int32))]


@mistake(r"Input to reshape is a tensor with 6 values, but the requested shape requires a multiple "
         r"of 4")
def reshape_with_unknown_size():
    return [tf.reshape(given(np.ones(6)), given([-1, 4], np.int32))]


@mistake(r"ConcatOp : Dimension 0 in both shapes must be equal: shape\[0\] = \[2,3\] vs. "
         r"shape\[1\] = \[3,3\]")
def concat_of_other_sizes():
    return [tf.concat([given(np.ones([2, 3])), given(np.ones([3, 3]))], 1)]


@mistake(r"ConcatOp : Ranks of all input tensors should match: shape\[0\] = \[2,3\] vs. "
         r"shape\[1\] = \[3\]")
def concat_of_other_ranks():
    return [tf.concat([given(np.ones([2, 3])), given(np.ones([3]))], 0)]


@mistake(r"ConcatOp : Expected concatenating dimensions in the range \[-2, 2\), but got 5")
def concat_axis():
    return [tf.concat([given(np.ones([2, 3]))] * 2, given(5, np.int32))]


@mistake(r"Shapes of all inputs must match: values\[0\].shape = \[2\] != values\[1\].shape = \[3\]")
def stack_of_other_shapes():
    return [tf.stack([given([1., 2.]), given([1., 2., 3.])])]


@mistake(r"Number of ways to split should evenly divide the split dimension, but got split_dim 0 "
         r"\(size = 5\) and num_split 2")
def uneven_split():
    return [tf.split(given(np.ones([5])), 2)]


@mistake(r"Expected size\[0\] in \[0, 1\], but got 3|Expected begin\[0\] in \[0, 3\]")
def slice_beyond_the_end():
    return [tf.slice(given(np.ones([3])), given([2], np.int32), given([3], np.int32))]


@mistake(r"slice index 5 of dimension 0 out of bounds")
def index_beyond_the_end():
    return [given(np.ones([3]))[5]]


@mistake(r"indices\[1\] = 5 is not in \[0, 3\)")
def gather_beyond_the_end():
    return [tf.gather(given([1., 2., 3.]), given([0, 5], np.int32))]


@mistake(r"indices\[0,1\] = 9 is not in \[0, 3\)")
def embedding_beyond_the_end():
    w = v1.Variable([[1.0], [2.0], [3.0]], use_resource=False)
    return [w.initializer, tf.nn.embedding_lookup(w, unknown_index([[0, 9]]))]


@mistake(r"indices\[0\] = \[7\] does not index into (param )?shape \[3\]")
def gather_nd_beyond_the_end():
    return [tf.gather_nd(given([1., 2., 3.]), given([[7]], np.int32))]


@mistake(r"indices\[0\] = 4 is not in \[0, 2\)")
def scatter_beyond_the_end():
    w = v1.Variable([1.0, 2.0], use_resource=False)
    return [w.initializer, v1.scatter_update(w, given([4], np.int32), [1.0])]


@mistake(r"indices\[0\] = \[5\] does not index into shape \[3\]|"
         r"indices\[0\] = \[5\] does not index into")
def scatter_nd_beyond_the_end():
    return [tf.scatter_nd(given([[5]], np.int32), given([1.]), given([3], np.int32))]


@mistake(r"transpose expects a vector of size 2. But input\(1\) is a vector of size 1")
def transpose_by_another_rank():
    return [tf.transpose(given(np.ones([2, 3])), given([0], np.int32))]


@mistake(r"Can not squeeze dim\[0\], expected a dimension of 1, got 2")
def squeeze_of_a_size():
    return [tf.squeeze(given(np.ones([2, 1])), [0])]


@mistake(r"Tried to expand dim index 5 for tensor with 1 dimensions")
def expand_beyond_the_rank():
    return [tf.expand_dims(given([1.]), given(5, np.int32))]


@mistake(r"Invalid reduction dimension \(4 for input with 2 dimension\(?s?\)?")
def reduction_beyond_the_rank():
    return [tf.reduce_sum(given(np.ones([2, 2])), given(4, np.int32))]


@mistake(r"Expected dimension in the range \[-1, 1\), but got 3")
def argmax_beyond_the_rank():
    return [tf.argmax(given([1., 2.]), given(3, np.int32))]


@mistake(r"input must have at least k columns|input must have at least k")
def top_k_of_too_few():
    return [tf.nn.top_k(given([1., 2.]), given(5, np.int32))[0]]


@mistake("Requires start <= limit when delta > 0: 5/1")
def range_that_goes_backwards():
    return [tf.range(given(5, np.int32), given(1, np.int32), given(1, np.int32))]


@mistake(r"segment ids are not increasing")
def segments_out_of_order():
    return [tf.math.segment_sum(given([1., 2.]), given([1, 0], np.int32))]


@mistake(r"segment ids must be >= 0|segment_ids?.*(out of range|is out of range)|"
         r"segment_ids\[1\] = 7 is out of range \[0, 2\)")
def segments_beyond_the_end():
    return [tf.math.unsorted_segment_sum(given([1., 2.]), given([1, 7], np.int32), 2)]


@mistake("The first dimension of paddings must be the rank of inputs")
def paddings_of_another_rank():
    return [tf.pad(given(np.ones([2, 2])), given([[1, 1]], np.int32))]


@mistake(r"Expected multiples argument to be a vector of length 2 but got length 1")
def tile_of_another_rank():
    return [tf.tile(given(np.ones([2, 2])), given([1], np.int32))]


@mistake(r"Incompatible shapes: \[3\] vs. \[2\]")
def broadcast_to_another_shape():
    return [tf.broadcast_to(given(np.ones([3])), given([2], np.int32))]
