# SPDX-License-Identifier: Apache-2.0
"""Tests the contents of summaries made by summary ops."""

import glob
import os

import numpy as np
import tensorflow as tf
from harness import program, v1


def _plain(summary):
    """Decodes pictures to pixels, because two encoders may produce different bytes."""
    values = []
    for v in v1.Summary.FromString(summary).value:
        pixels = ()
        if v.HasField("image"):
            with tf.Graph().as_default(), v1.Session() as session:
                pixels = session.run(tf.io.decode_image(v.image.encoded_image_string))
            v.image.encoded_image_string = b""
        values.append((v.SerializeToString(deterministic=True), pixels))
    return values


@program("ref", "resource", "v2")
def summaries(cluster):
    random = np.random.RandomState(61)
    x = v1.placeholder(tf.float32, [2, 4, 8, 4])
    with v1.device("/job:worker/task:1"):
        v1.summary.scalar("mean", tf.reduce_mean(x))
        v1.summary.histogram("all", x)
        v1.summary.image("picture", x, max_outputs=2)
        v1.summary.audio("sound", tf.reshape(x, [2, 32, 4]), sample_rate=8000.0)
        v1.summary.text("words", tf.constant(["a", "b"]))
        v1.summary.tensor_summary("tensor", x[0])
        merged = v1.summary.merge_all()
    with cluster.session() as session:
        # Multiples of 1/8, so that sums are exact in any order.
        summary = session.run(merged, {x: random.randint(0, 9, [2, 4, 8, 4]) / 8})
    values = _plain(summary)
    with v1.summary.FileWriter(cluster.folder, graph=None) as writer:
        writer.add_summary(summary, 3)
    path, = glob.glob(os.path.join(cluster.folder, "events*"))
    tags = [v.tag for event in v1.train.summary_iterator(path) for v in event.summary.value]
    return values, tags


@program("ref", "resource", "v2")
def event_file_of_a_task(cluster):
    """TensorFlow 2's writers: a task of the cluster writes the file."""
    x = v1.placeholder(tf.float32, [3, 4])
    step = v1.placeholder(tf.int64, [])
    metadata = v1.SummaryMetadata(plugin_data=v1.SummaryMetadata.PluginData(plugin_name="scalars"))
    with v1.device("/job:worker/task:1"):
        writer = tf.summary.create_file_writer(cluster.folder, max_queue=100, flush_millis=10**8)
        with writer.as_default(), tf.summary.record_if(step < 2):
            tf.summary.write("mean", tf.reduce_mean(x), step=step, metadata=metadata)
            tf.summary.write("words", tf.constant(["a", "b"]), step=step)
        writes = v1.summary.all_v2_summary_ops()
    with cluster.session() as session:
        session.run(writer.init())
        for n in range(3):
            session.run(writes, {x: np.arange(12).reshape(3, 4) + n, step: n})
        path, = glob.glob(os.path.join(cluster.folder, "events*.v2"))
        waiting = len(list(v1.train.summary_iterator(path)))
        session.run(writer.flush())
        events = list(v1.train.summary_iterator(path))
        session.run(writer.close())
    # The order of the writes of one step is left open.
    return waiting, sorted((e.step, v.tag, v.SerializeToString(deterministic=True))
                           for e in events for v in e.summary.value)
