#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the model of language_model with Keras, on the same texts, for comparison.

    $(tools/install_tensorflow) client/examples/language_model_peer.py [flags]

Flags, their defaults and the last line are language_model's; there is one layer of LSTM cells.
"""

import argparse
import math
import os
import pathlib
import random

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

CHARACTERS = 256
TEST_EVERY = 20
BUCKETS = 16


def read_texts(folder, length_max):
    """Returns the texts for training and for testing, as ReadTexts does."""
    texts = []
    for path in sorted(pathlib.Path(folder).iterdir()):
        data = path.read_bytes() if path.is_file() else b"\0"
        if path.suffix in (".dat", ".u8") or b"\0" in data:
            continue
        for text in data.split(b"\n%\n"):
            text = text.removesuffix(b"\n%").removesuffix(b"\n")
            texts += [text[i:i + length_max] for i in range(0, len(text), length_max)]
    train = [text for i, text in enumerate(texts) if i % TEST_EVERY]
    return train, texts[::TEST_EVERY]


def make_batch(texts):
    """Returns inputs, targets and weights, [batch, time] each."""
    shape = len(texts), max(map(len, texts)) + 1
    inputs, targets = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    weights = np.zeros(shape, np.float32)
    for row, text in enumerate(texts):
        inputs[row, 1:len(text) + 1] = targets[row, :len(text)] = list(text)
        weights[row, :len(text) + 1] = 1
    return inputs, targets, weights


def batches(texts, batch_size, seed):
    """Yields batches of texts of similar length without end, each as soon as a length group fills
    it."""
    lengths = sorted(map(len, texts))
    bounds = sorted({lengths[i * len(lengths) // BUCKETS] for i in range(1, BUCKETS)})
    buckets = [[] for _ in range(len(bounds) + 1)]
    order = random.Random(seed)
    while True:
        for text in order.sample(texts, len(texts)):
            bucket = buckets[sum(len(text) >= bound for bound in bounds)]
            bucket.append(text)
            if len(bucket) == batch_size:
                yield make_batch(bucket)
                bucket.clear()


def make_model(embedding, units):
    glorot = tf.keras.initializers.GlorotUniform
    return tf.keras.Sequential([
        tf.keras.layers.Embedding(
            CHARACTERS, embedding,
            embeddings_initializer=tf.keras.initializers.RandomUniform(-0.1, 0.1)),
        tf.keras.layers.LSTM(units, return_sequences=True, kernel_initializer=glorot(),
                             recurrent_initializer=glorot()),
        tf.keras.layers.Dense(CHARACTERS)])


def bits(model, inputs, targets, weights):
    nats = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, model(inputs))
    return tf.reduce_sum(nats * weights) / (tf.reduce_sum(weights) * math.log(2))


def train(model, texts, flags):
    optimizer = tf.keras.optimizers.Adam(flags.learning_rate, epsilon=1e-8,
                                         global_clipnorm=flags.clip)
    characters = tf.TensorSpec([None, None], tf.int32)

    @tf.function(input_signature=[characters, characters, tf.TensorSpec([None, None])])
    def step(inputs, targets, weights):
        with tf.GradientTape() as tape:
            loss = bits(model, inputs, targets, weights)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    for number, batch in zip(range(flags.steps), batches(texts, flags.batch_size, flags.seed)):
        loss = step(*batch)
        if number % 100 == 99:
            print("step %d of %d: bits %.3f" % (number + 1, flags.steps, loss), flush=True)


def test_bits(model, texts, batch_size):
    texts = sorted(texts, key=len)
    total = characters = 0
    for begin in range(0, len(texts), batch_size):
        batch = make_batch(texts[begin:begin + batch_size])
        count = batch[2].sum()
        total += float(bits(model, *batch)) * count
        characters += count
    return total / characters


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    for name, default in (("units", 256), ("embedding", 64), ("seed", 1), ("steps", 2000),
                          ("batch_size", 32), ("length_max", 200), ("learning_rate", 0.002),
                          ("clip", 5.0), ("data_dir", "/usr/share/games/fortunes")):
        parser.add_argument("--" + name, type=type(default), default=default)
    flags = parser.parse_args()
    tf.keras.utils.set_random_seed(flags.seed)
    for_training, for_testing = read_texts(flags.data_dir, flags.length_max)
    model = make_model(flags.embedding, flags.units)
    train(model, for_training, flags)
    mean = test_bits(model, for_testing, flags.batch_size)
    print("test perplexity per character: %.3f\ntest bits per character: %.3f" % (2**mean, mean))


if __name__ == "__main__":
    main()
