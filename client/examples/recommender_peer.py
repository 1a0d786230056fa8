#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the model of recommender with TensorFlow, on the same ratings, for comparison.

    $(tools/install_tensorflow) client/examples/recommender_peer.py --data_dir=DIR [flags]

Flags, their defaults and the last line are recommender's.
"""

import argparse
import collections
import csv
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1
HIDDEN = 32


def read_ratings(folder):
    """Returns what ReadRatings does: arrays of user, film and liked, for training and for testing,
    and the genres of each film."""
    numbers = [{}, {}]
    histories = collections.defaultdict(list)
    with open(folder / "ratings.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            user, film = (known.setdefault(row[name], len(known))
                          for known, name in zip(numbers, ("user", "movie")))
            liked = float(row["rating"]) >= 4
            histories[user].append((int(row["time"]), user, film, liked))
    train, test = [], []
    for history in histories.values():
        history.sort(key=lambda each: each[0])
        tests = len(history) // 10
        train += history[:len(history) - tests]
        test += history[len(history) - tests:]
    genres, genre_numbers = [[] for _ in numbers[1]], {}
    with open(folder / "movies.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["movie"] in numbers[1]:
                genres[numbers[1][row["movie"]]] = [
                    genre_numbers.setdefault(genre, len(genre_numbers))
                    for genre in row["genres"].split("|") if genre]
    sizes = [len(numbers[0]), len(numbers[1]), len(genre_numbers)]
    return np.array(train)[:, 1:], np.array(test)[:, 1:], genres, sizes


class Model:
    def __init__(self, sizes, units):
        self.users, self.films, self.liked = (v1.placeholder(kind, [None])
                                              for kind in (tf.int64, tf.int64, tf.float32))
        self.genres = v1.sparse_placeholder(tf.int64, [None, None])
        self.wide, self.deep = [], []
        vectors = self._rows(sizes, units, self.deep, v1.random_normal_initializer(0, 0.1))
        products = [tf.reduce_sum(a * b, 1, keepdims=True)
                    for i, a in enumerate(vectors) for b in vectors[:i]]
        x = self._dense(tf.concat(vectors + products, 1), 3 * units + 3, HIDDEN)
        deep = self._dense(tf.nn.relu(x), HIDDEN, 1)
        wide = self._rows(sizes, 1, self.wide, v1.zeros_initializer())
        self.logits = tf.reshape(deep + tf.add_n(wide), [-1])
        self.loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(self.liked, self.logits))

    def _rows(self, sizes, units, variables, initializer):
        for i, rows in enumerate(sizes):
            variables.append(v1.get_variable("table%d_%d" % (units, i), [rows, units],
                                             initializer=initializer))
        return [tf.nn.embedding_lookup(variables[0], self.users),
                tf.nn.embedding_lookup(variables[1], self.films),
                v1.nn.safe_embedding_lookup_sparse(variables[2], self.genres)]

    def _dense(self, x, inputs, units):
        kernel = v1.get_variable("kernel%d" % units, [inputs, units],
                                 initializer=v1.glorot_uniform_initializer())
        bias = v1.get_variable("bias%d" % units, [units], initializer=v1.zeros_initializer())
        self.deep += [kernel, bias]
        return x @ kernel + bias

    def train(self, rate):
        return tf.group(
            v1.train.FtrlOptimizer(10 * rate, l2_regularization_strength=1e-3).minimize(
                self.loss, var_list=self.wide),
            v1.train.AdamOptimizer(rate).minimize(self.loss, var_list=self.deep))

    def feeds(self, ratings, genres):
        places = [[i, k] for i, film in enumerate(ratings[:, 1])
                  for k, _ in enumerate(genres[film])]
        values = [genre for film in ratings[:, 1] for genre in genres[film]]
        shape = [len(ratings), 1 + max(k for _, k in places)]
        return {self.users: ratings[:, 0], self.films: ratings[:, 1], self.liked: ratings[:, 2],
                self.genres: v1.SparseTensorValue(places, values, shape)}


def auc_of(liked, scores):
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores)] = np.arange(1, len(scores) + 1)
    ones = liked.sum()
    return (ranks[liked == 1].sum() - ones * (ones + 1) / 2) / (ones * (len(liked) - ones))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data_dir", type=pathlib.Path, required=True)
    parser.add_argument("--learning_rate", type=float, default=0.002)
    for name, default in (("units", 16), ("steps", 1000), ("batch_size", 256)):
        parser.add_argument("--" + name, type=int, default=default)
    flags = parser.parse_args()
    train, test, genres, sizes = read_ratings(flags.data_dir)
    v1.disable_eager_execution()
    model = Model(sizes, flags.units)
    step = model.train(flags.learning_rate)
    random = np.random.default_rng(1)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        for _ in range(flags.steps):
            batch = train[random.integers(len(train), size=flags.batch_size)]
            session.run(step, model.feeds(batch, genres))
        scores = session.run(model.logits, model.feeds(test, genres))
    print("test AUC: %.3f" % auc_of(test[:, 2], scores))


if __name__ == "__main__":
    main()
