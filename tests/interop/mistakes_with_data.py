# SPDX-License-Identifier: Apache-2.0
"""Mistakes with strings, files, queues, datasets, tables and sessions; see mistakes.py."""

import uuid

import numpy as np
import tensorflow as tf
from harness import v1
from mistakes import given, mistake, unknown_image, unknown_index

# Strings, images, parsing

@mistake("StringToNumberOp could not correctly convert string: abc")
def string_that_is_no_number():
    return [tf.strings.to_number(given("abc"))]


@mistake(r"Expect 2 fields but have 3 in record 0")
def csv_of_other_columns():
    return [v1.decode_csv(given("1,2,3"), [[0], [0]])]


@mistake(r"Field 1 in record 0 is not a valid int32: x")
def csv_of_another_type():
    return [v1.decode_csv(given("1,x"), [[0], [0]])]


@mistake(r"Unknown image file format. One of JPEG, .*PNG, GIF, BMP.* required")
def jpeg_that_is_none():
    return [tf.image.decode_jpeg(given("abc"))]


@mistake(r"Unknown image file format. One of JPEG, .*PNG, GIF, BMP.* required")
def png_that_is_none():
    return [tf.image.decode_png(given("abc"))]


@mistake(r"Unknown image file format. One of JPEG, .*PNG, GIF, BMP.* required")
def image_that_is_none():
    return [tf.image.decode_image(given("abcdefghijkl"))]


@mistake("Could not parse example input")
def example_that_is_none():
    return [v1.parse_single_example(given("\x07abc"), {"a": v1.FixedLenFeature([], tf.int64)})]


@mistake(r"Feature: a \(data type: int64\) is required but could not be found")
def example_without_a_feature():
    return [v1.parse_example(given([b""]), {"a": v1.FixedLenFeature([], tf.int64)})]


@mistake("Key: a, Index: 0.  Data types don't match. Data type: float but expected type: int64")
def example_of_another_type():
    feature = tf.train.Feature(float_list=tf.train.FloatList(value=[1.0]))
    example = tf.train.Example(features=tf.train.Features(feature={"a": feature}))
    return [v1.parse_example(given([example.SerializeToString()]),
                             {"a": v1.FixedLenFeature([], tf.int64)})]


@mistake(r"Input to DecodeRaw has length 3 that is not a multiple of 4, the size of float")
def raw_of_another_length():
    return [tf.io.decode_raw(given("abc"), tf.float32)]


# Files

@mistake(r"/no/such/file.* No such file or directory")
def file_that_is_missing():
    return [tf.io.read_file(given("/no/such/file"))]


@mistake(r"Unsuccessful TensorSliceReader constructor: Failed to find any matching files for "
         r"/no/such/checkpoint")
def checkpoint_that_is_missing():
    return [tf.raw_ops.RestoreV2(prefix="/no/such/checkpoint", tensor_names=["w"],
                                 shape_and_slices=[""], dtypes=[tf.float32])]


@mistake(r"Key v not found in checkpoint")
def checkpoint_without_a_tensor():
    prefix = "/tmp/%s/checkpoint" % uuid.uuid4()
    saved = tf.raw_ops.SaveV2(prefix=prefix, tensor_names=["w"], shape_and_slices=[""],
                              tensors=[given(1.0)])
    return [saved, tf.raw_ops.RestoreV2(prefix=prefix, tensor_names=["v"], shape_and_slices=[""],
                                        dtypes=[tf.float32])]


@mistake("tensor_name = w; expected dtype int32 does not equal original dtype float")
def checkpoint_with_another_type():
    prefix = "/tmp/%s/checkpoint" % uuid.uuid4()
    saved = tf.raw_ops.SaveV2(prefix=prefix, tensor_names=["w"], shape_and_slices=[""],
                              tensors=[given(1.0)])
    return [saved, tf.raw_ops.RestoreV2(prefix=prefix, tensor_names=["w"], shape_and_slices=[""],
                                        dtypes=[tf.int32])]


# Queues

def _queue():
    queue = v1.FIFOQueue(3, tf.float32, [[]], name="q")
    return queue


@mistake(r"FIFOQueue '(_\d+_)?q' is closed and has insufficient elements "
         r"\(requested 1, current size 0\)")
def dequeue_of_a_closed_queue():
    queue = _queue()
    return [queue.close(), queue.dequeue()]


@mistake(r"FIFOQueue '(_\d+_)?q' is closed and has insufficient elements "
         r"\(requested 2, current size 1\)")
def dequeue_many_of_a_closed_queue():
    queue = _queue()
    return [queue.enqueue(1.0), queue.close(), queue.dequeue_many(2)]


@mistake(r"FIFOQueue '(_\d+_)?q' is closed\.")
def enqueue_to_a_closed_queue():
    queue = _queue()
    return [queue.close(), queue.enqueue(1.0)]


@mistake(r"Shape mismatch in tuple component 0. Expected \[\], got \[2\]")
def enqueue_of_another_shape():
    return [_queue().enqueue(given([1., 2.], np.float32))]


@mistake(r"RandomShuffleQueue '\w+' is closed and has insufficient elements "
         r"\(requested 2, current size 0\)")
def dequeue_of_a_closed_shuffle_queue():
    queue = v1.RandomShuffleQueue(9, 2, tf.float32, [[]])
    return [queue.close(), queue.dequeue_many(2)]


@mistake(r"closed and has insufficient elements \(requested 2, current size 0\)")
def batch_after_the_last_epoch():
    queue = v1.PaddingFIFOQueue(9, [tf.float32], [[None]])
    return [queue.close(), queue.dequeue_many(2)]


# Datasets

@mistake("End of sequence")
def end_of_a_dataset():
    element = v1.data.make_one_shot_iterator(v1.data.Dataset.range(1)).get_next()
    return [element, element]


@mistake("GetNext() failed because the iterator has not been initialized. Ensure that you have run "
         "the initializer operation for this iterator before getting the next element.".replace(
             "()", r"\(\)"))
def iterator_without_initializer():
    return [v1.data.make_initializable_iterator(v1.data.Dataset.range(1)).get_next()]


@mistake("Cannot (batch tensors with different shapes|add tensor to the batch: number of elements "
         "does not match)")
def batch_of_other_shapes():
    data = v1.data.Dataset.range(2).map(lambda x: tf.fill([x], 0)).batch(2)
    return [v1.data.make_one_shot_iterator(data).get_next()]


@mistake(r"here : Tensor had NaN values")
def mistake_in_a_dataset():
    data = v1.data.Dataset.range(2).map(
        lambda x: tf.debugging.check_numerics(tf.cast(x, tf.float32) * np.nan, "here"))
    return [v1.data.make_one_shot_iterator(data).get_next()]


# Tables and arrays

@mistake("Table not initialized.")
def table_without_initializer():
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1]), -1)
    return [table.lookup(given(["a"]))]


@mistake("HashTable has different value for same key. Key a has 1 and trying to add value 2")
def table_with_a_key_twice():
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a", "a"], [1, 2]), -1)
    return [v1.tables_initializer()]


@mistake(r"TensorArray .*: Tried to read from index 5 but array size is: 2|"
         r"Tried to read from index 5 but array size is: 2")
def tensor_array_beyond_the_end():
    return [tf.TensorArray(tf.float32, 2).read(given(5, np.int32))]


@mistake(r"Could not write to TensorArray index 0 because it has already been written to")
def tensor_array_written_twice():
    return [tf.TensorArray(tf.float32, 2).write(0, 1.0).write(0, 2.0).stack()]


@mistake(r"Could not read index 0 twice because it was cleared after a previous read")
def tensor_array_read_twice():
    array = tf.TensorArray(tf.float32, 2).write(0, 1.0)
    first = array.read(0)
    with tf.control_dependencies([first]):
        return [tf.raw_ops.TensorArrayReadV3(handle=array.handle, index=0,
                                             flow_in=array.flow + 0.0 * first, dtype=tf.float32)]


# Other operations

@mistake(r"partitions\[1\] = 5 is not in \[0, 2\)")
def partition_out_of_range():
    return [tf.dynamic_partition(given([1., 2.]), unknown_index([0, 5]), 2)]


@mistake(r"Requires num > 0: 0")
def linspace_of_nothing():
    return [tf.raw_ops.LinSpace(start=given(0.0), stop=given(1.0), num=unknown_index(0))]


@mistake(r"Need minval < maxval, got 5 >= 1")
def random_range():
    return [v1.random_uniform([2], unknown_index(5), unknown_index(1), tf.int32)]


@mistake(r"Dimension -3 must be >= 0|dims\[0\] = -3 must be nonnegative")
def fill_of_a_negative_size():
    return [tf.fill(unknown_index([-3]), 1.0)]


@mistake(r"logits and labels must have the same first dimension, got logits shape \[2,3\] and "
         r"labels shape \[3\]")
def labels_of_another_batch():
    return [tf.raw_ops.SparseSoftmaxCrossEntropyWithLogits(
        features=given(np.ones([2, 3])), labels=unknown_index([0, 1, 2])).loss]


@mistake(r"First dimension of predictions 2 must match length of targets 3")
def in_top_k_of_another_batch():
    return [tf.math.in_top_k(unknown_index([0, 1, 2]), given(np.ones([2, 3])), 1)]


@mistake(r"strides\[0\] must be non-zero")
def stride_of_zero():
    return [given(np.ones([3]))[0:2:unknown_index(0)]]


@mistake("Determined shape must either match input shape along split_dim exactly if fully "
         "specified")
def split_sizes():
    return [tf.split(given(np.ones([5])), unknown_index([2, 2]), num=2)]


@mistake("pos 10 out of range for string")
def substring_beyond_the_end():
    return [tf.strings.substr(given("abc"), unknown_index(10), unknown_index(1))]


@mistake(r"Invalid pattern: \[a, error: missing \]: \[a")
def regular_expression():
    return [tf.strings.regex_replace(given("abc"), given("[a"), "x")]


@mistake(r"Invalid character found in base64")
def base64():
    return [tf.io.decode_base64(given("a$b"))]


@mistake(r"Input arr must be non-negative!")
def bincount_of_a_negative_number():
    return [tf.raw_ops.Bincount(arr=unknown_index([-1]), size=unknown_index(3),
                                weights=given([1.]))]


@mistake(r"Shape of tensor \w+ \[2\] is not compatible with expected shape \[3\]")
def ensured_shape():
    return [tf.ensure_shape(given([1., 2.]), [3])]


@mistake(r"Reached limit of 1")
def count_beyond_the_limit():
    count = v1.Variable(0, use_resource=False)
    step = v1.count_up_to(count, 1)
    return [count.initializer, step, step]


@mistake(r"indices\[1\] = \[0,5\] is out of bounds: need 0 <= index < \[1,3\]")
def sparse_index_out_of_bounds():
    sparse = tf.SparseTensor(tf.cast(given([[0, 0], [0, 5]]), tf.int64), given([1., 2.]), [1, 3])
    return [tf.sparse.to_dense(sparse)]


@mistake(r"indices\[1\] = \[0,0\] is out of order")
def sparse_indices_out_of_order():
    sparse = tf.SparseTensor(tf.cast(given([[0, 2], [0, 0]]), tf.int64), given([1., 2.]), [1, 3])
    return [tf.sparse.to_dense(sparse)]


@mistake(r"output dimensions must be positive")
def image_resized_to_nothing():
    return [v1.image.resize_bilinear(unknown_image(3), unknown_index([0, 4]))]


@mistake(r"Computed output size would be negative")
def window_larger_than_the_image():
    return [tf.nn.conv2d(unknown_image(3), given(np.ones([9, 9, 3, 1])), 1, "VALID")]


@mistake("Could not parse `serialized` as TensorProto")
def tensor_that_is_none():
    return [tf.io.parse_tensor(given("abc"), tf.float32)]


@mistake(r"seq_lens\(1\) > input.dims\(1\)")
def reverse_beyond_the_end():
    return [tf.reverse_sequence(given(np.ones([2, 2])), unknown_index([1, 9]), 1, 0)]


@mistake(r"ConcatOp : Dimension 2 in both shapes must be equal: shape\[0\] = \[1,4,4,3\] vs. "
         r"shape\[1\] = \[1,4,5,3\]")
def concat_of_images():
    return [tf.concat([unknown_image(3), given(np.ones([1, 4, 5, 3]))], 3)]


@mistake(r"padded_shape\[0\]=4 is not divisible by block_shape\[0\]=3")
def blocks_that_do_not_divide():
    return [tf.raw_ops.SpaceToBatchND(input=unknown_image(3), block_shape=[3, 3],
                                      paddings=unknown_index([[0, 0], [0, 0]]))]


# Penstock returns FailedPrecondition, after which programs wait for their chief.
@mistake("does not exist|Attempting to use uninitialized value w", same_class=False)
def scatter_of_resource_variable():
    w = v1.get_variable("w", initializer=[1.0, 2.0], use_resource=True)
    return [v1.scatter_add(w, unknown_index([0]), [1.0])]


# Sessions

@mistake(r"Cannot assign a device for operation \w+: .*was explicitly assigned to "
         r"/job:worker/(replica:0/)?task:7.* but available devices are \[")
def device_that_is_missing():
    with v1.device("/job:worker/task:7"):
        return [tf.identity(given(1.0), name="nowhere")]


@mistake(r"Cannot assign a device for operation \w+: .*was explicitly assigned to .*device:GPU:3.* "
         r"but available devices are \[")
def gpu_that_is_missing():
    with v1.device("/device:GPU:3"):
        return [tf.identity(given(1.0), name="nowhere")]


@mistake("timed out|[Dd]eadline")
def step_that_takes_too_long():
    return [(_queue().dequeue(), None, v1.RunOptions(timeout_in_ms=200))]
