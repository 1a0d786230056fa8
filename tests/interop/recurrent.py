# SPDX-License-Identifier: Apache-2.0
"""Tests language models with recurrent nets, unrolled and in loops."""

import numpy as np
import tensorflow as tf
from harness import program, v1
from models import train

VOCABULARY, SIZE, STEPS, BATCH = 20, 8, 5, 4


def _lstm_cell(x, state, scope):
    """Returns one step of an LSTM, as TensorFlow 1's basic cell builds it."""
    with v1.variable_scope(scope, reuse=v1.AUTO_REUSE):
        c, h = state
        kernel = v1.get_variable("kernel", [x.shape[1] + SIZE, 4 * SIZE],
                                 initializer=v1.random_uniform_initializer(-0.2, 0.2))
        bias = v1.get_variable("bias", [4 * SIZE], initializer=v1.zeros_initializer())
        gates = tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), kernel), bias)
        i, j, f, o = tf.split(gates, 4, axis=1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        return c, tf.tanh(c) * tf.sigmoid(o)


def _text():
    random = np.random.RandomState(31)
    return random.randint(0, VOCABULARY, [BATCH, STEPS + 1])


def _loss(outputs, labels):
    w = v1.get_variable("w", [SIZE, VOCABULARY],
                        initializer=v1.random_uniform_initializer(-0.2, 0.2))
    logits = tf.matmul(tf.reshape(outputs, [-1, SIZE]), w)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.reshape(labels, [-1]), logits=logits))


def _table():
    return v1.get_variable("table", [VOCABULARY, SIZE],
                           initializer=v1.random_uniform_initializer(-0.2, 0.2))


@program("ref", "resource", "v2")
def static_lstm(cluster):
    v1.set_random_seed(31)
    with cluster.between_graphs():
        words = v1.placeholder(tf.int32, [BATCH, STEPS + 1])
        x = tf.nn.dropout(tf.nn.embedding_lookup(_table(), words[:, :-1]), rate=0.2)
        states = [(tf.zeros([BATCH, SIZE]),) * 2 for _ in range(2)]
        outputs = []
        for t in range(STEPS):
            h = x[:, t]
            for layer in range(2):
                states[layer] = _lstm_cell(h, states[layer], "layer%d" % layer)
                h = states[layer][1]
            outputs.append(h)
        loss = _loss(tf.stack(outputs, 1), words[:, 1:])
        optimizer = v1.train.GradientDescentOptimizer(0.5)
        step = v1.train.get_or_create_global_step()
        gradients, variables = zip(*optimizer.compute_gradients(loss))
        gradients, _ = tf.clip_by_global_norm(gradients, 100.0, use_norm=tf.norm(gradients[-1]))
        run = optimizer.apply_gradients(zip(gradients, variables), global_step=step)
    with cluster.session() as session:
        session.run(v1.global_variables_initializer())
        losses = [session.run([loss, run], {words: _text()})[0] for _ in range(4)]
        return losses, session.run(list(variables))


# TensorFlow itself cannot place this program if resources are on another task.
@program("ref", "v2")
def while_loop_lstm(cluster):
    """Trains through a loop over tensor arrays."""
    v1.set_random_seed(32)
    with cluster.between_graphs():
        words = v1.placeholder(tf.int32, [BATCH, STEPS + 1])
        x = tf.transpose(tf.nn.embedding_lookup(_table(), words[:, :-1]), [1, 0, 2])
        inputs = tf.TensorArray(tf.float32, STEPS).unstack(x)
        outputs = tf.TensorArray(tf.float32, STEPS)

        def body(t, c, h, outputs):
            c, h = _lstm_cell(inputs.read(t), (c, h), "cell")
            return t + 1, c, h, outputs.write(t, h)

        zeros = tf.zeros([BATCH, SIZE])
        *_, outputs = tf.while_loop(lambda t, *_: t < STEPS, body, [0, zeros, zeros, outputs])
        loss = _loss(tf.transpose(outputs.stack(), [1, 0, 2]), words[:, 1:])
        return train(cluster, loss, v1.train.GradientDescentOptimizer(0.5), {words: _text()})


@program("ref", "resource", "v2")
def block_lstm(cluster):
    """Trains an LSTM whose op processes the whole sequence, through the op's gradient."""
    v1.set_random_seed(34)
    with cluster.between_graphs():
        words = v1.placeholder(tf.int32, [BATCH, STEPS + 1])
        x = tf.transpose(tf.nn.embedding_lookup(_table(), words[:, :-1]), [1, 0, 2])
        uniform = v1.random_uniform_initializer(-0.2, 0.2)
        w = v1.get_variable("kernel", [2 * SIZE, 4 * SIZE], initializer=uniform)
        peepholes = {n: v1.get_variable(n, [SIZE], initializer=uniform)
                     for n in ("wci", "wcf", "wco")}
        zeros = tf.zeros([BATCH, SIZE])
        states = tf.raw_ops.BlockLSTM(
            seq_len_max=tf.constant(STEPS, tf.int64), x=x, cs_prev=zeros, h_prev=zeros, w=w,
            b=v1.get_variable("bias", [4 * SIZE], initializer=v1.zeros_initializer()),
            use_peephole=True, **peepholes)
        loss = _loss(tf.transpose(states.h, [1, 0, 2]), words[:, 1:])
        return train(cluster, loss, v1.train.GradientDescentOptimizer(0.5), {words: _text()})


class _BasicCell:
    """A cell for dynamic_rnn, for which TensorFlow no longer has a cell."""

    state_size = SIZE
    output_size = SIZE

    def __call__(self, x, state, scope=None):
        with v1.variable_scope(scope or "cell"):
            kernel = v1.get_variable("kernel", [2 * SIZE, SIZE],
                                     initializer=v1.random_uniform_initializer(-0.2, 0.2))
            y = tf.tanh(tf.matmul(tf.concat([x, state], 1), kernel))
        return y, y

    def zero_state(self, batch_size, dtype):
        return tf.zeros([batch_size, SIZE], dtype)


@program("ref", "resource", "v2")
def dynamic_rnn(cluster):
    v1.set_random_seed(33)
    with cluster.between_graphs():
        words = v1.placeholder(tf.int32, [BATCH, STEPS + 1])
        x = tf.nn.embedding_lookup(_table(), words[:, :-1])
        outputs, state = v1.nn.dynamic_rnn(_BasicCell(), x, dtype=tf.float32,
                                           sequence_length=[5, 3, 4, 1])
        loss = _loss(outputs, words[:, 1:]) + tf.reduce_sum(state)
        return train(cluster, loss, v1.train.AdamOptimizer(0.01), {words: _text()})
