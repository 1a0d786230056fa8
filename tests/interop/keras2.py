# SPDX-License-Identifier: Apache-2.0
"""Keras 2, which supports graph mode: the package tf_keras; before TensorFlow 2.16, tf.keras."""

import importlib.util

import tensorflow as tf

if importlib.util.find_spec("tf_keras") is not None:
    import tf_keras  # noqa: F401
else:
    tf_keras = tf.keras
