# SPDX-License-Identifier: Apache-2.0
"""Tests the errors of common mistakes: their classes, and the words that programs match. The words
are TensorFlow's. The mistakes are in mistakes_in_graphs.py and mistakes_with_data.py."""

import re

import numpy as np
import tensorflow as tf
from harness import program, v1

# TensorFlow 2.12's own server sometimes never answers one of the steps.
_TIMEOUT_MS = 60000
_MISTAKES = []
_FEEDS = {}  # the values of this mistake's placeholders


def mistake(words, same_class=True):
    """Declares a mistake. The function returns what to run in turn, as fetches or as tuples of
    the arguments of run; the last run must fail with an error that contains a match of `words`.
    Unless `same_class`, the class of Penstock's error differs on purpose."""
    def add(function):
        _MISTAKES.append((function, words, same_class))
        return function
    return add


def unknown(dtype=tf.float32, shape=None):
    """Returns a placeholder whose shape the client does not check."""
    return v1.placeholder(dtype, shape, name="x")


def given(value, dtype=None):
    """Returns a tensor whose value and shape are not known before the step."""
    value = np.array(value, dtype)
    if value.dtype == np.float64:
        value = value.astype(np.float32)
    placeholder = v1.placeholder(tf.constant(value).dtype, None, name="given")
    _FEEDS[placeholder] = value
    return placeholder


def unknown_index(value):
    """Returns a tensor of int32 whose value the client does not know."""
    return given(value, np.int32)


def unknown_image(channels):
    """Returns an image of 4 by 4 pixels."""
    return given(np.ones([1, 4, 4, channels], np.float32))


def _run(session, turn):
    fetches, feeds, *options = turn if isinstance(turn, tuple) else (turn, {})
    session.run(fetches, {**_FEEDS, **(feeds or {})}, *options)


def _error_of(cluster, function, words):
    """Returns the class of the error, and `words`, or, if they are not in the text, the text."""
    v1.Session.reset(cluster.target())  # the variables of the mistakes before this one
    _FEEDS.clear()
    with tf.Graph().as_default(), v1.device("/job:worker/task:1"):
        turns = function()
        config = v1.ConfigProto(operation_timeout_in_ms=_TIMEOUT_MS)
        with cluster.session(config) as session:
            for turn in turns[:-1]:
                _run(session, turn)
            try:
                _run(session, turns[-1])
            except tf.errors.OpError as error:
                text = error.message
                return [type(error).__name__, words if re.search(words, text) else text]
    raise AssertionError("%s: no error" % function.__name__)


@program("ref")
def mistakes(cluster):
    errors = {}
    for function, words, same_class in _MISTAKES:
        name, text = _error_of(cluster, function, words)
        errors[function.__name__] = [name if same_class else "any", text]
    return errors
