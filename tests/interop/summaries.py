# SPDX-License-Identifier: Apache-2.0
"""Summary ops: what lands in event files."""

import glob
import os

import numpy as np
import tensorflow as tf
from harness import program, v1


def _plain(summary):
    """Pictures as pixels: two encoders need not make the same bytes."""
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
        # Eighths: sums are exact in any order.
        summary = session.run(merged, {x: random.randint(0, 9, [2, 4, 8, 4]) / 8})
    values = _plain(summary)
    with v1.summary.FileWriter(cluster.folder, graph=None) as writer:
        writer.add_summary(summary, 3)
    path, = glob.glob(os.path.join(cluster.folder, "events*"))
    tags = [v.tag for event in v1.train.summary_iterator(path) for v in event.summary.value]
    return values, tags
