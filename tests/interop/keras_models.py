# SPDX-License-Identifier: Apache-2.0
"""Tests Keras models in sessions, with Keras 2, which supports graph mode."""

import numpy as np
import tensorflow as tf
from harness import program, v1


def _data():
    random = np.random.RandomState(71)
    return random.rand(32, 8, 8, 1).astype(np.float32), random.randint(0, 4, 32)


def _fit(cluster, model, optimizer):
    xs, ys = _data()
    session = cluster.session()
    v1.keras.backend.set_session(session)
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
    history = model.fit(xs, ys, batch_size=8, epochs=2, shuffle=False, verbose=0)
    scores = model.evaluate(xs, ys, batch_size=8, verbose=0)
    return history.history["loss"], scores, model.predict(xs[:4], verbose=0)


@program("ref", "resource", "v2", rtol=1e-3, atol=1e-4)
def keras_dense(cluster):
    initializer = tf.keras.initializers.RandomUniform(-0.3, 0.3, seed=3)
    layers = tf.keras.layers
    model = tf.keras.Sequential([
        layers.Flatten(input_shape=[8, 8, 1]),
        layers.Dense(16, activation="relu", kernel_initializer=initializer),
        layers.Dense(4, activation="softmax", kernel_initializer=initializer)])
    return _fit(cluster, model, tf.keras.optimizers.legacy.SGD(0.1, momentum=0.9))


@program("ref", "resource", "v2", rtol=1e-3, atol=1e-4)
def keras_convnet(cluster):
    initializer = tf.keras.initializers.RandomUniform(-0.3, 0.3, seed=4)
    layers = tf.keras.layers
    model = tf.keras.Sequential([
        layers.Conv2D(4, 3, activation="relu", kernel_initializer=initializer,
                      input_shape=[8, 8, 1]),
        layers.BatchNormalization(), layers.MaxPooling2D(), layers.Flatten(),
        layers.Dense(4, activation="softmax", kernel_initializer=initializer)])
    return _fit(cluster, model, tf.keras.optimizers.legacy.Adam(0.01))
