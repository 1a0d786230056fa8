# SPDX-License-Identifier: Apache-2.0
"""Tests lists of tensors, and functional loops and conditionals that use them."""

import numpy as np
import tensorflow as tf
from harness import program, v1
from models import train

ops = tf.raw_ops


@program("resource", "v2")
def list_ops(cluster):
    """Every list op, across two tasks, so that lists are sent."""
    x = v1.placeholder(tf.float32, [3, 2])
    with v1.device("/job:ps/task:0"):
        rows = ops.TensorListFromTensor(tensor=x, element_shape=[2])
        stack = ops.EmptyTensorList(element_shape=[2], max_num_elements=2,
                                    element_dtype=tf.float32)
        stack = ops.TensorListPushBack(input_handle=stack, tensor=x[0])
        places = ops.TensorListReserve(element_shape=-1, num_elements=4, element_dtype=tf.float32)
        pieces = ops.TensorListSplit(tensor=x, element_shape=[-1, 2], lengths=[1, 0, 2])
        nested = ops.EmptyTensorList(element_shape=np.int32([]), max_num_elements=-1,
                                     element_dtype=tf.variant)
        nested = ops.TensorListPushBack(input_handle=nested, tensor=rows)
    with v1.device("/job:worker/task:1"):
        full = ops.TensorListPushBack(input_handle=stack, tensor=x[1] * 2.0)
        shorter, last = ops.TensorListPopBack(input_handle=full, element_shape=[2],
                                              element_dtype=tf.float32)
        places = ops.TensorListSetItem(input_handle=places, index=2, item=x[2])
        resized = ops.TensorListResize(input_handle=places, size=6)
        scattered = ops.TensorListScatterIntoExistingList(
            input_handle=places, tensor=x[:2], indices=[3, 0])
        joined = ops.TensorListConcatLists(input_a=rows, input_b=rows, element_dtype=tf.float32)
        batch = ops.TensorListPushBackBatch(input_handles=tf.stack([stack, stack]), tensor=x[:2])
    with v1.device("/job:worker/task:0"):
        def stacked(handle, shape=(-1,)):
            return ops.TensorListStack(input_handle=handle, element_shape=shape,
                                       element_dtype=tf.float32)

        def item(handle, index, shape):
            return ops.TensorListGetItem(input_handle=handle, index=index, element_shape=shape,
                                         element_dtype=tf.float32)

        inner = ops.TensorListGetItem(input_handle=nested, index=0, element_shape=np.int32([]),
                                      element_dtype=tf.variant)
        values = [
            stacked(full), stacked(shorter), last, stacked(rows), stacked(inner),
            item(places, 2, [2]), item(places, 1, [2]), item(resized, 5, -1), stacked(resized),
            stacked(scattered), stacked(joined), stacked(batch[1]),
            ops.TensorListLength(input_handle=resized),
            ops.TensorListElementShape(input_handle=pieces, shape_type=tf.int64),
            ops.TensorListElementShape(input_handle=places, shape_type=tf.int32),
            ops.TensorListGather(input_handle=rows, indices=[2, 0, 2], element_shape=-1,
                                 element_dtype=tf.float32),
            stacked(ops.TensorListScatter(tensor=x, indices=[2, 4, 0], element_shape=[2])),
            stacked(ops.TensorListScatterV2(tensor=x, indices=[2, 4, 0], element_shape=[2],
                                            num_elements=7)),
            *ops.TensorListConcatV2(input_handle=pieces, element_shape=[-1, 2], leading_dims=[],
                                    element_dtype=tf.float32),
            *ops.TensorListConcat(input_handle=pieces, element_dtype=tf.float32),
            stacked(tf.raw_ops.AddN(inputs=[rows, rows])), stacked(tf.zeros_like(rows)),
        ]
        wrong = [
            # fails, because the list is full
            stacked(ops.TensorListPushBack(input_handle=full, tensor=x[0])),
            item(rows, 3, [2]), item(rows, -1, [2]), stacked(pieces, (-1, 2)),
            stacked(ops.TensorListReserve(element_shape=[-1], num_elements=2,
                                          element_dtype=tf.float32)),
            ops.TensorListGather(input_handle=rows, indices=[3], element_shape=-1,
                                 element_dtype=tf.float32),
        ]
    with cluster.session() as session:
        feed = {x: [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]}
        results = session.run(values, feed)
        failed = []
        for fetch in wrong:
            try:
                session.run(fetch, feed)
                failed.append(False)
            except tf.errors.InvalidArgumentError:
                failed.append(True)
        return results, failed


@program("resource", "v2")
def list_gradients(cluster):
    x = v1.placeholder(tf.float32, [3, 2])
    with v1.device("/job:worker/task:0"):
        rows = ops.TensorListFromTensor(tensor=x * x, element_shape=[2])
        rows = ops.TensorListSetItem(input_handle=rows, index=1, item=x[2] * 3.0)
        gathered = ops.TensorListGather(input_handle=rows, indices=[0, 1], element_shape=[2],
                                        element_dtype=tf.float32)
        scattered = ops.TensorListScatterV2(tensor=tf.sin(x), indices=[2, 0, 1], element_shape=[2],
                                            num_elements=4)
        scattered = ops.TensorListScatterIntoExistingList(
            input_handle=scattered, tensor=x[:1] * 2.0, indices=[3])
        pieces = ops.TensorListSplit(tensor=x, element_shape=[-1, 2], lengths=[1, 2])
        joined = ops.TensorListConcatV2(input_handle=pieces, element_shape=[-1, 2],
                                        leading_dims=[], element_dtype=tf.float32)[0]
        stacked = ops.TensorListStack(
            input_handle=ops.TensorListResize(input_handle=scattered, size=3), element_shape=[2],
            element_dtype=tf.float32)
        values = [gathered * 2.0, joined * joined, stacked * x]
        gradients = [tf.gradients(v, x)[0] for v in values]
    with cluster.session() as session:
        return session.run([values, gradients], {x: [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]})


@program("v2")
def loops_in_branches(cluster):
    """A loop in a conditional in a loop, with gradients, for several numbers of iterations."""
    x = v1.placeholder(tf.float32, [2])
    times = v1.placeholder(tf.int32, [])
    with v1.device("/job:worker/task:0"):  # TensorFlow needs all of it on one device
        w = v1.get_variable("w", initializer=[0.5, 1.5])

        def inner(v):
            return tf.while_loop(lambda j, u: j < times, lambda j, u: (j + 1, tf.sin(u * w)),
                                 [0, v])[1]

        def body(i, v):
            return i + 1, tf.cond(tf.reduce_sum(v) > 0.5, lambda: inner(v), lambda: v * x + w)

        y = tf.while_loop(lambda i, v: i < 3, body, [0, x])[1]
        gradients = tf.gradients(y, [x, w])
    with cluster.session() as session:
        session.run(w.initializer)
        return [session.run([y, gradients], {x: value, times: n})
                for value in ([1.0, 2.0], [-1.0, 0.25]) for n in (0, 1, 4)]


@program("v2")
def second_derivatives_of_loops(cluster):
    x = v1.placeholder(tf.float32, [2])
    with v1.device("/job:worker/task:0"):
        y = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, tf.sin(v * x)), [0, x])[1]
        first = tf.gradients(y, x)[0]
        second = tf.gradients(first, x)[0]
    with cluster.session() as session:
        return session.run([y, first, second], {x: [0.5, -1.0]})


@program("v2")
def function_with_tensor_array(cluster):
    """A loop that AutoGraph makes from a Python loop, over batches of any size."""
    with v1.device("/job:worker/task:0"):  # TensorFlow needs all of it on one device
        w = v1.get_variable("w", initializer=[[0.5, 0.25], [1.0, -0.5]])

        @tf.function(input_signature=[tf.TensorSpec([None, None, 2]), tf.TensorSpec([], tf.int32)])
        def steps(x, limit):
            state = tf.zeros([tf.shape(x)[0], 2])
            states = tf.TensorArray(tf.float32, 0, dynamic_size=True)
            for t in tf.range(tf.shape(x)[1]):
                state = tf.tanh(tf.matmul(state, w) + x[:, t])
                states = states.write(t, state)
                if t >= limit:
                    break
            return tf.transpose(states.stack(), [1, 0, 2])

        x = v1.placeholder(tf.float32, [None, None, 2])
        limit = v1.placeholder(tf.int32, [])
        y = steps(x, limit)
        gradients = tf.gradients(y * y, [x, w])
    with cluster.session() as session:
        session.run(w.initializer)
        random = np.random.RandomState(5)
        return [session.run([y, gradients], {x: random.rand(batch, length, 2), limit: 3})
                for batch, length in ((1, 2), (3, 5), (2, 7))]


@program("v2")
def maps_and_scans(cluster):
    """Maps and scans with several tensors, with results of other types, and backwards."""
    x = v1.placeholder(tf.float32, [None, 3])
    n = v1.placeholder(tf.int32, [None])
    with v1.device("/job:worker/task:0"):
        sums, counts = tf.map_fn(lambda e: (tf.reduce_sum(e[0]) * 2.0, e[1] + 1), (x, n),
                                 fn_output_signature=(tf.float32, tf.int32))
        running = tf.scan(lambda a, e: (a[0] + e[0], a[1] * e[1]), (x, n),
                          initializer=(tf.zeros([3]), tf.constant(1)))
        backwards = tf.scan(lambda a, e: a * 0.5 + e, x, reverse=True)
        strings = tf.map_fn(tf.strings.as_string, n, fn_output_signature=tf.string)
        right = tf.foldr(lambda a, e: a * e, x)
        gradients = [tf.gradients(y, x)[0] for y in (sums, running[0], backwards, right)]
    with cluster.session() as session:
        return [session.run([sums, counts, running, backwards, strings, right, gradients],
                            {x: np.arange(3 * m).reshape(m, 3) + 1.0, n: np.arange(m) + 1})
                for m in (1, 4)]


@program("v2", rtol=1e-3, atol=1e-4)
def keras_lstm(cluster):
    """Tests layers that loop over time, one of them over masked input."""
    random = np.random.RandomState(72)
    words, labels = random.randint(0, 12, [32, 7]), random.randint(0, 3, 32)
    words[::3, 5:] = 0  # zeros as padding
    uniform = tf.keras.initializers.RandomUniform(-0.3, 0.3, seed=5)
    layers = tf.keras.layers
    with cluster.between_graphs():
        model = tf.keras.Sequential([
            layers.Embedding(12, 6, mask_zero=True, embeddings_initializer=uniform,
                             input_length=7),
            layers.LSTM(5, return_sequences=True, kernel_initializer=uniform,
                        recurrent_initializer=uniform),
            layers.GRU(4, kernel_initializer=uniform, recurrent_initializer=uniform),
            layers.Dense(3, activation="softmax", kernel_initializer=uniform)])
        model.compile(tf.keras.optimizers.legacy.Adam(0.01), "sparse_categorical_crossentropy")
    v1.keras.backend.set_session(cluster.session())
    history = model.fit(words, labels, batch_size=8, epochs=2, shuffle=False, verbose=0)
    return history.history["loss"], model.predict(words[:5], verbose=0)


@program("v2")
def lists_as_state(cluster):
    """Lists in queues, in variables, and through placeholders with defaults."""
    with v1.device("/job:ps/task:0"):
        queue = v1.FIFOQueue(4, [tf.variant, tf.int32], shapes=[[], []])
        rows = ops.TensorListFromTensor(tensor=[[1.0, 2.0], [3.0, 4.0]], element_shape=[2])
        put = queue.enqueue([rows, 7])
        taken, number = queue.dequeue()
    with v1.device("/job:worker/task:0"):
        taken = tf.identity_n([taken, number])[0]
        chosen = tf.where(tf.constant([True, False]), tf.stack([taken, rows]),
                          tf.stack([rows, taken]))
        joined = ops.TensorListConcatLists(input_a=chosen[0], input_b=tf.gather(chosen, 1),
                                           element_dtype=tf.float32)
        stacked = ops.TensorListStack(input_handle=joined, element_shape=[2],
                                      element_dtype=tf.float32)
    with cluster.session() as session:
        session.run(put)
        return session.run([stacked, number])


@program("v2")
def trained_through_a_loop(cluster):
    """Trains a program with functions, branches and loops."""
    v1.set_random_seed(73)
    random = np.random.RandomState(73)
    xs = random.rand(16, 6, 3).astype(np.float32)
    with v1.device("/job:worker/task:0"):  # TensorFlow needs all of it on one device
        x = v1.placeholder(tf.float32, [None, None, 3])
        uniform = v1.random_uniform_initializer(-0.3, 0.3)
        w = v1.get_variable("w", [3, 4], initializer=uniform)
        u = v1.get_variable("u", [4, 4], initializer=uniform)

        @tf.function
        def cell(state, e):
            return tf.tanh(tf.matmul(e, w) + tf.matmul(state, u))

        def body(t, state, total):
            state = tf.cond(tf.equal(t % 2, 0), lambda: cell(state, x[:, t]), lambda: state * 0.9)
            return t + 1, state, total + tf.reduce_sum(state * state)

        _, state, total = tf.while_loop(lambda t, *_: t < tf.shape(x)[1], body,
                                        [0, tf.zeros([tf.shape(x)[0], 4]), 0.0])
        loss = tf.reduce_mean(tf.square(state - 0.5)) + 0.001 * total
        return train(cluster, loss, v1.train.MomentumOptimizer(0.1, 0.9), {x: xs})
