# SPDX-License-Identifier: Apache-2.0
"""Tests pipelines that parse Examples and lines of text from queues."""

import os

import numpy as np
import tensorflow as tf
from harness import program, v1


@program("ref", "resource")
def input_pipeline(cluster):
    """Reads, parses and batches files with queue runners, until they end."""
    paths = []
    for n in range(2):
        path = os.path.join(cluster.folder, "part%d.tfrecord" % n)
        with tf.io.TFRecordWriter(path) as writer:
            for i in range(5):
                features = {
                    "id": tf.train.Feature(int64_list=tf.train.Int64List(value=[10 * n + i])),
                    "x": tf.train.Feature(float_list=tf.train.FloatList(value=[i, 0.5 * i]))}
                writer.write(tf.train.Example(
                    features=tf.train.Features(feature=features)).SerializeToString())
        paths.append(path)
    files = v1.train.string_input_producer(paths, num_epochs=2, shuffle=False)
    _, record = v1.TFRecordReader().read(files)
    parsed = v1.parse_single_example(record, {"id": v1.FixedLenFeature([], tf.int64),
                                              "x": v1.FixedLenFeature([2], tf.float32)})
    ids, xs = v1.train.batch([parsed["id"], parsed["x"]], batch_size=4, num_threads=1,
                             allow_smaller_final_batch=True)
    batches = []
    with cluster.session() as session:
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        coordinator = v1.train.Coordinator()
        threads = v1.train.start_queue_runners(session, coordinator)
        try:
            while not coordinator.should_stop():
                batches.append(session.run([ids, xs]))
        except tf.errors.OutOfRangeError:
            pass
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=30)
    return batches


@program("ref", "resource")
def shuffled_lines(cluster):
    path = os.path.join(cluster.folder, "lines.csv")
    with open(path, "w", encoding="utf-8") as f:
        f.writelines("%d,%f,word%d\n" % (i, i / 2, i) for i in range(30))
    files = v1.train.string_input_producer([path], num_epochs=1)
    _, line = v1.TextLineReader().read(files)
    number, half, word = v1.decode_csv(line, [[0], [0.0], [""]])
    batch = v1.train.shuffle_batch([number, half, word], batch_size=10, capacity=50,
                                   min_after_dequeue=20)
    seen = []
    with v1.train.MonitoredTrainingSession(cluster.target()) as session:
        while not session.should_stop():
            numbers, halves, words = session.run(batch)
            np.testing.assert_array_equal(halves, numbers / 2)
            seen += numbers.tolist()
            assert all(w == b"word%d" % n for n, w in zip(numbers, words))
    return sorted(seen), seen == sorted(seen)


def _sequence(length, name, steps, words):
    record = tf.train.SequenceExample()
    if length is not None:
        record.context.feature["length"].int64_list.value.append(length)
    record.context.feature["name"].bytes_list.value.extend(name)
    for step in steps:
        record.feature_lists.feature_list["x"].feature.add().float_list.value.extend(step)
    for key in ("words", "more"):
        for word in words:
            record.feature_lists.feature_list[key].feature.add().bytes_list.value.extend(word)
    return record.SerializeToString()


@program("resource")
def sequence_examples(cluster):
    records = [_sequence(3, [b"a", b"b"], [[1, 2], [3, 4]], [[b"p"], [b"q", b"r"], []]),
               _sequence(None, [], [[5, 6]], []), _sequence(1, [b"c"], [], [[b"s"]])]
    with tf.device("/job:worker/task:1"):
        serialized = v1.placeholder(tf.string, [None])
        context, lists, lengths = tf.io.parse_sequence_example(
            serialized,
            {"length": tf.io.FixedLenFeature([], tf.int64, 7),
             "name": tf.io.VarLenFeature(tf.string)},
            {"x": tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True),
             "words": tf.io.VarLenFeature(tf.string),
             "more": tf.io.RaggedFeature(tf.string, row_splits_dtype=tf.int64)})
        one = tf.io.parse_single_sequence_example(
            serialized[0], {"name": tf.io.RaggedFeature(tf.string)},
            {"x": tf.io.FixedLenSequenceFeature([2], tf.float32),
             "more": tf.io.RaggedFeature(tf.string)})
        old = tf.raw_ops.ParseSequenceExample(
            serialized=serialized, debug_name=[],
            context_dense_defaults=[tf.constant([9], tf.int64)],
            feature_list_dense_missing_assumed_empty=["x"], context_sparse_keys=["name"],
            context_dense_keys=["length"], feature_list_sparse_keys=["words"],
            feature_list_dense_keys=["x"], Ncontext_sparse=1, Ncontext_dense=1,
            Nfeature_list_sparse=1, Nfeature_list_dense=1, context_sparse_types=[tf.string],
            feature_list_dense_types=[tf.float32], context_dense_shapes=[[1]],
            feature_list_sparse_types=[tf.string], feature_list_dense_shapes=[[2]])
        strict = tf.io.parse_sequence_example(
            serialized, sequence_features={"x": tf.io.FixedLenSequenceFeature([2], tf.float32)})
    with cluster.session() as session:
        feed = {serialized: records}
        fetches = tf.nest.flatten([context, lists, lengths, one, list(old)],
                                  expand_composites=True)
        values = session.run(fetches, feed)
        try:
            session.run(strict, feed)
        except tf.errors.InvalidArgumentError as error:
            values.append("could not be found" in error.message)
        return values


@program("resource", "v2", rtol=1e-4)
def changed_images(cluster):
    """Resizes, turns and convolves images, with gradients."""
    rng = np.random.RandomState(3)
    pixels = v1.placeholder(tf.float32, [2, 6, 7, 4])
    filters = tf.constant(rng.uniform(-1, 1, [3, 3, 2, 6]).astype(np.float32))
    turn = tf.constant([[0.9, -0.3, 1.2, 0.2, 1.1, -0.6, 0.01, 0.02]])
    with tf.device("/job:worker/task:0"):
        changed = [
            *(tf.image.resize(pixels, [4, 9], method, antialias=True)
              for method in ["bilinear", "lanczos3", "lanczos5", "gaussian", "mitchellcubic"]),
            tf.raw_ops.ImageProjectiveTransformV3(
                images=pixels, transforms=turn, output_shape=[6, 7], fill_value=0.,
                interpolation="BILINEAR", fill_mode="REFLECT"),
            tf.raw_ops.ImageProjectiveTransformV2(
                images=pixels, transforms=turn, output_shape=[5, 5], interpolation="NEAREST"),
            tf.nn.conv2d(pixels, filters, 2, "SAME"),
        ]
        total = tf.add_n([tf.reduce_sum(tf.sin(part)) for part in changed])
        gradients = tf.gradients(total, [pixels, filters])
        scaled_bytes = tf.image.resize(tf.cast(pixels * 200, tf.uint8), [3, 3], "lanczos3",
                                       antialias=True)
    with cluster.session() as session:
        return session.run([changed, gradients, scaled_bytes],
                           {pixels: rng.uniform(0, 1, [2, 6, 7, 4])})


@program("resource", "v2")
def texts_and_rows(cluster):
    rows = tf.ragged.constant([[1., 2.], [], [3.]])
    with tf.device("/job:worker/task:0"):
        values = [
            tf.strings.lower(["ÀÉ x", "Σ"], encoding="utf-8"),
            tf.strings.upper(["straße"], encoding="utf-8"),
            tf.fingerprint([["a", "b"], ["c", "d"]]), tf.fingerprint(np.arange(6).reshape(2, 3)),
            tf.strings.unsorted_segment_join([["a", "b"], ["c", "d"]], [1, 1], 2, ":"),
            tf.io.decode_raw(["abcdef", "a"], tf.uint16, fixed_length=4),
            tf.random.stateless_poisson([4, 2], [1, 2], [1., 30.], tf.int32),
            tf.random.stateless_binomial([4, 2], [1, 2], [9., 90.], .3, tf.int32),
            tf.random.stateless_gamma([4, 2], [1, 2], [1., 3.]),
            tf.random.poisson([3], [.5, 40.], seed=5),
            v1.parallel_stack([[1, 2], [3, 4]]),
            tf.map_fn(tf.reduce_sum, rows, fn_output_signature=tf.float32),
            tf.map_fn(lambda row: row * 2, rows).to_tensor(),
            tf.timestamp() > 1e9,
        ]
        gradient = tf.gradients(tf.map_fn(lambda row: tf.reduce_sum(row * row), rows,
                                          fn_output_signature=tf.float32), rows.flat_values)
    with cluster.session() as session:
        return session.run([values, gradient])
