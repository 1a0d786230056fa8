#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the first files of the corpora, with contents made by TensorFlow.

    seeds.py FOLDER        FOLDER/graph_def/... and so on; needs a Python that has TensorFlow
"""

import glob
import gzip
import os
import struct
import sys
import tempfile
import zlib

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2


v1 = tf.compat.v1
v1.disable_eager_execution()


def graph_of(build, functional=False):
    if functional:
        v1.enable_control_flow_v2()
    else:
        v1.disable_control_flow_v2()
    with tf.Graph().as_default() as graph:
        build()
    return graph.as_graph_def(add_shapes=False)


def multiply():
    x = v1.placeholder(tf.float32, [None, 3], name="x")
    w = v1.get_variable("w", [3, 2], use_resource=False,
                        initializer=v1.constant_initializer(0.5))
    loss = tf.reduce_mean(tf.square(tf.nn.relu(tf.matmul(x, w) + [1.0, 2.0])))
    v1.train.AdagradOptimizer(0.1).minimize(loss)


def resource():
    with tf.device("/job:ps/task:0"):
        w = v1.get_variable("w", [4], use_resource=True)
    y = tf.gather(w, [0, 2, 3]) * tf.cast(tf.range(3), tf.float32)
    tf.identity(tf.concat([y, tf.zeros([2])], 0)[1:4:2], name="out")


def loop():
    _, y = tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, tf.concat([y, y], 0)),
                         [tf.constant(0), tf.ones([1])],
                         shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])])
    tf.cond(tf.size(y) > 3, lambda: y * 2.0, lambda: tf.zeros([1]))


def strings_and_queues():
    queue = tf.queue.FIFOQueue(10, [tf.string, tf.int64], shapes=[[], [2]])
    queue.enqueue(["a", [1, 2]])
    text, _ = queue.dequeue()
    tf.strings.to_number(tf.strings.substr(text, 0, 1))
    tf.nn.conv2d(tf.ones([1, 4, 4, 2]), tf.ones([3, 3, 2, 5]), [1, 2, 2, 1], "SAME")
    tf.io.parse_example([b""], {"a": tf.io.FixedLenFeature([2], tf.float32, [0.0, 1.0]),
                                "b": tf.io.VarLenFeature(tf.int64)})


def function():
    @tf.function
    def twice(x):
        return x + x

    tf.identity(twice(tf.constant([1.0, 2.0])), name="out")


def graphs():
    yield "multiply", graph_of(multiply)
    yield "resource", graph_of(resource)
    yield "loop", graph_of(loop)
    yield "functional_loop", graph_of(loop, functional=True)
    yield "strings_and_queues", graph_of(strings_and_queues)
    yield "function", graph_of(function)


def tensors():
    for dtype in (np.float32, np.float64, np.float16, np.int8, np.int16, np.int32, np.int64,
                  np.uint8, np.uint16, np.uint32, np.uint64, np.bool_, np.complex64, np.complex128):
        value = np.arange(6).reshape(2, 3).astype(dtype)
        yield np.dtype(dtype).name, tf.make_tensor_proto(value)
        yield np.dtype(dtype).name + "_one_value", tf.make_tensor_proto(dtype(1), dtype, [4, 5])
    yield "string", tf.make_tensor_proto([["a", ""], ["bc", "\0"]])
    yield "bfloat16", tf.make_tensor_proto(1.5, tf.bfloat16, [3])


def records(folder):
    path = os.path.join(folder, "r")
    for kind, name in enumerate(["", "ZLIB", "GZIP"]):
        with tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(name)) as writer:
            for record in (b"one", b"", bytes(range(200)), b"four" * 100):
                writer.write(record)
        with open(path, "rb") as file:
            yield name.lower() or "plain", bytes([kind]) + file.read()
    yield "no_record", b"\0"
    yield "zeros", bytes([1]) + zlib.compress(bytes(100_000))
    yield "two_members", bytes([2]) + gzip.compress(b"", mtime=0) + gzip.compress(b"x", mtime=0)


def field(number, value):
    """Returns one field of a message in protobuf's encoding; `value` is a str, bytes, a message or
    a small int."""
    if isinstance(value, int):
        return bytes([number << 3]) + (bytes([value]) if value < 128 else
                                       bytes([value & 127 | 128, value >> 7]))
    if not isinstance(value, (str, bytes)):
        value = value.SerializeToString()
    value = value.encode() if isinstance(value, str) else value
    length = bytes([len(value) & 127 | 128, len(value) >> 7 & 127 | 128, len(value) >> 14])
    return bytes([number << 3 | 2]) + length + value


def checkpoints(folder):
    values = {"step": np.int64(7), "w": np.ones([3, 2], np.float32),
              "names": np.array([b"a", b"bc"])}
    with tf.Graph().as_default():
        variables = [v1.Variable(value, name=name, use_resource=False)
                     for name, value in values.items()]
        with v1.variable_scope("cut", partitioner=v1.fixed_size_partitioner(2)):
            variables.append(v1.get_variable("t", [4, 3], use_resource=False))
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            for version, kind in ((v1.train.SaverDef.V2, b"i"), (v1.train.SaverDef.V1, b"v")):
                prefix = os.path.join(folder, kind.decode())
                v1.train.Saver(write_version=version).save(session, prefix, write_meta_graph=False,
                                                           write_state=False)
                path = prefix + (".index" if kind == b"i" else "")
                with open(glob.glob(path + "*")[0], "rb") as file:
                    yield "v2_index" if kind == b"i" else "v1_file", kind + file.read()


def masked_crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82f63b78 * (crc & 1)
    crc ^= 0xffffffff
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


# Yields entries of a table in the format of the target. The data file consists of 'd's.
def table_entries():
    def entry(key, value):
        return bytes([len(key), len(value)]) + key + value

    def shape(*sizes):
        return field(2, b"".join(field(2, field(1, size)) for size in sizes))

    def data(offset, count):
        crc = masked_crc32c(b"d" * count)
        return field(4, offset) + field(5, count) + bytes([6 << 3 | 5]) + struct.pack("<I", crc)

    header = entry(b"", field(1, 1) + field(3, field(1, 1)))
    yield "v2_entries", b"I" + header + entry(b"step", field(1, 9) + data(24, 8)) + entry(
        b"w", field(1, 1) + shape(3, 2) + data(0, 24))
    halves = [field(7, field(1, field(1, start) + field(2, 2)) + field(1, b"")) for start in (0, 2)]
    keys = [b"\0cut\0\1\1\2" + start + b"\x82\x80\x7f" for start in (b"\x80", b"\x82")]
    yield "v2_slices", b"I" + header + entry(b"cut", field(1, 1) + shape(4, 3) + b"".join(
        halves)) + b"".join(entry(key, field(1, 1) + shape(2, 3) + data(0, 24)) for key in keys)
    tensor = field(1, "w") + shape(2) + field(3, 1) + field(4, field(1, b""))
    yield "v1_entries", b"V" + entry(b"", field(1, field(1, tensor) + field(2, field(1, 1))))


def tensor_frames():
    def part(step, key, text, body, *rest):
        return field(1, bytes([1 << 3 | 1]) + struct.pack("<Q", step) + field(2, key) +
                     (field(3, text) if text else b"") + b"".join(rest) + field(12, len(body)))

    def frame(parts, body):
        message = field(1, b"".join(parts)) + field(2, body)
        return struct.pack("<H", len(message)) + message

    device = "/job:%s/replica:0/task:0/device:CPU:0"
    key = ";".join([device % "ps", "1", device % "worker", "w:0", "0:0"])
    floats = [field(7, 1), field(8, 3), field(8, 2), field(10, 24)]
    yield "whole", frame([part(1, 1, key, b"d" * 24, *floats)], b"d" * 24)
    yield "in_parts", frame([part(1, 1, key, b"d" * 10, *floats)], b"d" * 10) + frame(
        [part(1, 1, "", b"d" * 14, field(11, 10))], b"d" * 14)
    yield "dead", frame([part(1, 1, key, b"", field(6, 1))], b"")
    words = tf.make_tensor_proto(["a", "bc"]).SerializeToString()
    yield "strings", frame([part(1, 0, key, words, field(7, 7), field(8, 2), field(9, 1), field(
        10, len(words)))], words)
    message = field(1, field(2, bytes([1 << 3 | 1]) + struct.pack("<Q", 1) + field(2, field(1, 5))))
    yield "refused", struct.pack("<H", len(message)) + message


# The requests of proto/tensorflow/master.proto, which TensorFlow's package lacks. Field 1 of many
# requests is the session's handle, which the fuzz target adds.
def calls():
    def call(method, *fields):
        request = b"".join(fields)
        return struct.pack("<BH", method, len(request)) + request

    feed = tf.make_tensor_proto(np.ones([2, 3], np.float32))
    named = field(2, field(1, "Placeholder:0") + field(2, feed))
    trace = field(5, config_pb2.RunOptions(trace_level=3, timeout_in_ms=100))
    step = call(3, named, field(3, "Add:0"), field(4, "Add"), trace)
    yield "create_session", call(0, field(1, graph_of(multiply)), field(
        2, config_pb2.ConfigProto(allow_soft_placement=True)))
    for name, graph in graphs():
        yield "extend_" + name, call(1, field(2, graph)) + step
    yield "partial_run", call(2, field(2, "Placeholder:0"), field(3, "Add:0"),
                             field(4, "Add")) + step
    yield "run_step", step + step
    yield "close_session", call(4) + step
    yield "list_and_reset", call(5) + call(6, field(1, "c")) + step
    callable_ = call(7, field(2, config_pb2.CallableOptions(feed=["Placeholder:0"],
                                                            fetch=["Add:0"])))
    yield "callable", callable_ + b"".join(
        call(8, field(2, handle), field(3, feed)) for handle in (0, 1)) + call(9, field(2, 1))
    fixed = bytes([3 << 3 | 1]) + struct.pack("<Q", 5)  # graph_handle
    device = "/job:worker/replica:0/task:0/device:CPU:0"
    constant = graph_of(lambda: tf.constant([1.0, 2.0]) + 1.0)
    yield "worker_graph", call(10, field(3, 1)) + call(11) + call(13, fixed, field(4, field(
        1, device) + field(2, constant))) + call(14, fixed) + call(12)
    yield "worker_abort", call(15, bytes([2 << 3 | 1]) + struct.pack("<Q", 7), field(
        3, field(1, 1) + field(2, "why"))) + call(16, field(2, "c"))


def datasets():
    endless = tf.data.Dataset.range(1 << 40)
    pairs = tf.data.Dataset.from_tensor_slices({"a": [[1, 2], [3, 4]], "b": ["x", "yz"]})
    yield "map_batch", endless.map(lambda x: (x + 1, tf.cast(x, tf.float32))).batch(2).skip(1)
    yield "parallel_map", endless.map(lambda x: x * x, num_parallel_calls=2).prefetch(2)
    yield "shuffle_repeat", pairs.shuffle(3, seed=1).repeat(2).take(3)
    yield "interleave", endless.interleave(lambda x: tf.data.Dataset.range(x), 2, 2)
    yield "parallel_interleave", endless.interleave(
        lambda x: tf.data.Dataset.range(x % 3), 2, 2, num_parallel_calls=2)
    yield "flat_map_window", endless.window(3, 2, 2).flat_map(lambda d: d.batch(3))
    yield "padded_batch", endless.map(lambda x: tf.fill([x % 4], x)).padded_batch(2)
    yield "filter_cache", endless.filter(lambda x: x % 3 == 0).take(4).cache().repeat()
    yield "scan_unbatch", endless.batch(2).unbatch().scan(
        tf.constant(0, tf.int64), lambda s, x: (s + x, s))
    yield "zip_concatenate", tf.data.Dataset.zip((endless, pairs)).concatenate(
        tf.data.Dataset.zip((endless, pairs)))
    yield "group_by_window", endless.group_by_window(
        lambda x: x % 2, lambda _, d: d.batch(2), window_size=3)
    yield "choose", tf.data.Dataset.choose_from_datasets([endless, endless.skip(5)],
                                                         endless.map(lambda x: x % 2))
    yield "take_while", endless.take_while(lambda x: x < 9).enumerate().shard(2, 1)
    yield "unique", endless.map(lambda x: x % 3).take(9).unique()
    yield "rebatch", endless.batch(3).rebatch([2, 1])
    yield "ragged", endless.map(lambda x: tf.ones([x % 3])).ragged_batch(2)
    yield "sparse", tf.data.Dataset.from_tensor_slices(
        tf.sparse.from_dense([[1, 0, 2], [0, 0, 3]])).batch(2)
    yield "bucket", endless.map(lambda x: tf.fill([x % 4], x)).bucket_by_sequence_length(
        tf.size, [2, 3], [2, 2, 2])
    yield "errors", endless.map(lambda x: tf.debugging.check_numerics(
        1.0 / tf.cast(x, tf.float32), "no")).ignore_errors()


def dataset_graphs():
    """Yields libraries of functions, in which "main" returns a dataset."""
    iterator = datasets()
    while True:
        found = []

        def main():
            found.append(next(iterator, None))
            return found[-1] and found[-1][1]._variant_tensor  # pylint: disable=protected-access

        with tf.Graph().as_default():
            function = tf.function(main).get_concrete_function()
        if found[-1] is None:
            return
        library = function.graph.as_graph_def().library
        library.function.add().CopyFrom(function.function_def)
        library.function[-1].signature.name = "main"
        yield found[-1][0], library


def iterator_states():
    """Yields inputs of all pipelines of iterator_states.cc, unchanged and with changes."""
    for pipeline in range(29):
        yield "unchanged_%d" % pipeline, bytes([pipeline, 5])
        changes = [bytes([0, at, 6 + at, 0]) for at in range(1, 9)]
        for at in range(0, 8, 4):
            yield "changed_%d_%d" % (pipeline, at), bytes([pipeline, at]) + changes[at]


def main():
    folder = sys.argv[1]

    def write(kind, name, data):
        os.makedirs(os.path.join(folder, kind), exist_ok=True)
        with open(os.path.join(folder, kind, name), "wb") as file:
            file.write(data)

    for name, graph in graphs():
        write("graph_def", name, graph.SerializeToString())
    for name, tensor in tensors():
        write("tensor_proto", name, tensor.SerializeToString())
    with tempfile.TemporaryDirectory() as temporary:
        for name, data in records(temporary):
            write("records", name, data)
        for name, data in checkpoints(temporary):
            write("checkpoints", name, data)
    for name, data in table_entries():
        write("checkpoints", name, data)
    for name, data in tensor_frames():
        write("tensor_frames", name, data)
    for name, data in calls():
        write("calls", name, data)
    for name, library in dataset_graphs():
        write("dataset_graphs", name, library.SerializeToString())
    for name, data in iterator_states():
        write("iterator_states", name, data)


if __name__ == "__main__":
    main()
