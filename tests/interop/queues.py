# SPDX-License-Identifier: Apache-2.0
"""Tests queues, readers, accumulators and barriers; and input pipelines with queue runners."""

import os
import threading

import numpy as np
import tensorflow as tf
from harness import program, v1
from tensorflow.python.ops import data_flow_ops


def _outcome(session, fetches, feeds=None):
    """Returns the result of a step, or the type of its error."""
    try:
        return session.run(fetches, feeds)
    except tf.errors.OpError as error:
        return type(error).__name__


def _until_the_end(cluster, fetches):
    """Returns every value of `fetches` up to the end of the input, and checks that the threads end
    without an error."""
    values = []
    with cluster.session() as session:
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = v1.train.start_queue_runners(session, coordinator)
        try:
            while not coordinator.should_stop():
                values.append(session.run(fetches))
        except tf.errors.OutOfRangeError:
            coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=20)
    return values


def _record_files(cluster, count=3, records=5):
    names = [os.path.join(cluster.folder, "records%d" % i) for i in range(count)]
    for i, name in enumerate(names):
        with tf.io.TFRecordWriter(name) as writer:
            for k in range(records):
                writer.write(b"%d-%d" % (i, k))
    return names


@program("ref", "resource")
def records_in_batches(cluster):
    files = _record_files(cluster)
    with tf.device("/job:worker/task:0"):
        queue = v1.train.string_input_producer(files, num_epochs=2, shuffle=False)
        key, record = v1.TFRecordReader().read(queue)
        same = tf.equal(key, record)
        batch = v1.train.batch([record, same], 4, allow_smaller_final_batch=True)
    return _until_the_end(cluster, batch)


@program("ref", "resource")
def shuffled_records(cluster):
    files = _record_files(cluster)
    with tf.device("/job:worker/task:1"):
        queue = v1.train.string_input_producer(files, num_epochs=2, seed=3)
        _, record = v1.TFRecordReader().read(queue)
        batch = v1.train.shuffle_batch([record], 4, capacity=20, min_after_dequeue=8,
                                       num_threads=2, allow_smaller_final_batch=True)
    return sorted(np.concatenate(_until_the_end(cluster, batch)).tolist())


@program("ref", "resource")
def slices_with_padding(cluster):
    with tf.device("/job:worker/task:0"):
        n, = v1.train.slice_input_producer([tf.constant([3, 1, 2, 5])], num_epochs=1,
                                           shuffle=False)
        batch = v1.train.batch([tf.range(n), n], 2, dynamic_pad=True)
    return _until_the_end(cluster, batch)


@program("ref", "resource")
def batches_of_sparse_tensors(cluster):
    with tf.device("/job:worker/task:0"):
        n, = v1.train.slice_input_producer([tf.constant([3, 1, 2, 5])], num_epochs=1,
                                           shuffle=False)
        one = v1.train.batch([tf.sparse.from_dense(tf.range(n))], 2)
        m, = v1.train.slice_input_producer([tf.constant([3, 1, 2, 5])], num_epochs=1,
                                           shuffle=False)
        many = v1.train.batch([tf.sparse.from_dense(tf.reshape(tf.range(2 * m), [2, m]))], 3,
                              enqueue_many=True)
        fetches = [part for sparse in (one, many)
                   for part in (sparse.indices, sparse.values, sparse.dense_shape)]
    return _until_the_end(cluster, fetches)


@program("ref", "resource")
def an_error_of_a_runner_stops_all(cluster):
    with tf.device("/job:worker/task:0"):
        queue = v1.train.string_input_producer(["/nowhere/to/be/found"])
        _, line = v1.TextLineReader().read(queue)
        batch = v1.train.batch([line], 2)
    with cluster.session() as session:
        session.run(v1.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = v1.train.start_queue_runners(session, coordinator)
        step = _outcome(session, batch)
        try:
            coordinator.join(threads, stop_grace_period_secs=20)
        except tf.errors.OpError as error:
            return step, type(error).__name__
    return step, None


@program("ref", "resource")
def fifo_queue_to_its_end(cluster):
    with tf.device("/job:ps/task:0"):
        queue = v1.FIFOQueue(3, [tf.int32, tf.float32], shapes=[(), (2,)])
        many = queue.dequeue_many(5)
        some = queue.dequeue_up_to(5)
        put = queue.enqueue_many([[1, 2, 3, 4], [[1., 1.], [2., 2.], [3., 3.], [4., 4.]]])
        one, close, size, closed = queue.dequeue(), queue.close(), queue.size(), queue.is_closed()
    with cluster.session() as session:
        # the queue's capacity is three elements
        waiting = threading.Thread(target=lambda: session.run(put))
        waiting.start()
        result = [session.run(one)]
        waiting.join()
        result += [session.run([size, closed]), session.run(close), session.run([size, closed])]
        return result + [_outcome(session, f) for f in (many, some, many, some, one, put, close)]


@program("ref", "resource")
def shuffled_and_prioritised(cluster):
    with tf.device("/job:ps/task:0"):
        shuffled = v1.RandomShuffleQueue(20, 5, [tf.int32], shapes=[()], seed=7)
        urgent = v1.PriorityQueue(20, [tf.string], [()])
        fill = [shuffled.enqueue_many([tf.range(16)]),
                urgent.enqueue_many([tf.constant([5, -1, 3], tf.int64), ["five", "less", "three"]])]
        few, all_urgent = shuffled.dequeue_many(7), urgent.dequeue_many(3)
        close, rest = shuffled.close(), shuffled.dequeue_up_to(20)
    with cluster.session() as session:
        session.run(fill)
        return [session.run([few, all_urgent]), session.run(close), session.run(rest)]


@program("ref", "resource")
def sessions_meet_in_shared_queues_only(cluster):
    def build(name):
        queue = v1.FIFOQueue(9, [tf.int32], shapes=[()], shared_name=name)
        return queue.enqueue(1), queue.size()

    with tf.device("/job:ps/task:0"):
        (put, size), (put_shared, shared_size) = build(None), build("shared")
    with cluster.session() as one, cluster.session(task=1) as two:
        one.run([put, put_shared])
        one.run([put, put_shared])
        return one.run([size, shared_size]), two.run([size, shared_size])


@program("ref", "resource")
def readers_of_all_kinds(cluster):
    paths = {}
    for name, contents in {"text": b"head\none\r\ntwo\n\nlast", "fixed": b"HHabcdefgFF"}.items():
        paths[name] = os.path.join(cluster.folder, name)
        with open(paths[name], "wb") as f:
            f.write(contents)
    kinds = {
        "text": (lambda: v1.TextLineReader(skip_header_lines=1), paths["text"]),
        "fixed": (lambda: v1.FixedLengthRecordReader(3, 2, 2), paths["fixed"]),
        "whole": (v1.WholeFileReader, paths["text"]),
        "identity": (v1.IdentityReader, "work"),
    }
    results = {}
    for kind, (make, work) in kinds.items():
        with tf.device("/job:worker/task:0"):
            reader = make()
            queue = v1.FIFOQueue(9, [tf.string], shapes=[()])
            start = queue.enqueue_many([[work, work]])
            record, several = reader.read(queue), reader.read_up_to(queue, 2)
            counts = [reader.num_records_produced(), reader.num_work_units_completed()]
            close, reset = queue.close(), reader.reset()
        with cluster.session() as session:
            session.run(start)
            session.run(close)
            steps = [session.run(record), session.run(counts)]
            for _ in range(5):
                steps += [_outcome(session, several), session.run(counts)]
            session.run(reset)
            # Keys contain the folder's name, which differs between the clusters.
            text = repr(steps + [session.run(counts)])
            results[kind] = text.replace(cluster.folder, "")
    return results


@program("ref", "resource")
def accumulators(cluster):
    with tf.device("/job:ps/task:0"):
        dense = v1.ConditionalAccumulator(tf.float32, shape=[2])
        rows = v1.SparseConditionalAccumulator(tf.float32, shape=[4, 2], reduction_type="SUM")
        g = v1.placeholder(tf.float32, [None])
        step = v1.placeholder(tf.int64, [])
        add, take, count = dense.apply_grad(g, step), dense.take_grad(2), dense.num_accumulated()
        add_rows = rows.apply_grad([1, 3], [[1., 2.], [3., 4.]], local_step=step)
        take_rows, set_step = rows.take_grad(2), dense.set_global_step(5)
    with cluster.session() as session:
        result = []
        for k in (0, 0, -1):
            session.run([add, add_rows], {g: [k + 1., 2.], step: k})
            result.append(session.run(count))
        result += [session.run([take, take_rows]), session.run(count)]
        result.append(_outcome(session, add, {g: [1., 2., 3.], step: 9}))
        session.run(set_step)
        session.run(add, {g: [1., 1.], step: 4})
        session.run(add, {g: [1., 1.], step: 5})
        return result + [session.run(count)]


@program("ref", "resource")
def barriers(cluster):
    with tf.device("/job:ps/task:0"):
        barrier = data_flow_ops.Barrier((tf.float32, tf.int32), shapes=((), ()))
        first = barrier.insert_many(0, ["a", "b", "c"], [1., 2., 3.])
        second = barrier.insert_many(1, ["c"], [3])
        third = barrier.insert_many(1, ["a"], [1])
        sizes = [barrier.ready_size(), barrier.incomplete_size()]
        take, rest = barrier.take_many(1), barrier.take_many(5, allow_small_batch=True)
        new, close = barrier.insert_many(0, ["d"], [4.]), barrier.close()
    with cluster.session() as session:
        for op in (first, second, third):
            session.run(op)
        return [session.run(sizes), session.run(take), _outcome(session, first),
                session.run(close), _outcome(session, new), session.run(rest),
                _outcome(session, close), session.run(sizes)]


@program("ref", "resource")
def staging_areas(cluster):
    with tf.device("/job:worker/task:1"):
        area = data_flow_ops.StagingArea([tf.float32, tf.string], shapes=[[2], []],
                                         names=["x", "name"], capacity=2, shared_name="area")
        x, name = v1.placeholder(tf.float32, [2]), v1.placeholder(tf.string, [])
        put = area.put({"x": x, "name": name})
        get, peek, size, clear = area.get(), area.peek(1), area.size(), area.clear()
    with cluster.session() as session:
        for k in range(2):
            session.run(put, {x: [k, k + 1.], name: "n%d" % k})
        waiting = threading.Thread(target=session.run,
                                   args=(put, {x: [7., 8.], name: "late"}))
        waiting.start()
        result = [session.run(peek), session.run(get)]
        waiting.join()
        result += [session.run(size), session.run(get), session.run(get), session.run(size)]
        session.run(put, {x: [1., 1.], name: "gone"})
        session.run(clear)
        return result + [session.run(size)]


@program("ref", "resource")
def staging_maps(cluster):
    with tf.device("/job:worker/task:1"):
        staged = data_flow_ops.MapStagingArea([tf.float32, tf.string], shapes=[[2], []],
                                              names=["x", "name"], ordered=True, capacity=2,
                                              shared_name="staged")
        key = v1.placeholder(tf.int64, [])
        x, name = v1.placeholder(tf.float32, [2]), v1.placeholder(tf.string, [])
        put, put_x = staged.put(key, {"x": x, "name": name}), staged.put(key, {"x": x}, ["x"])
        put_name = staged.put(key, {"name": name}, ["name"])
        get, get_name, peek = staged.get(key), staged.get(key, ["name"]), staged.peek(key)
        sizes, clear = [staged.size(), staged.incomplete_size()], staged.clear()
        first = staged.get()
    with cluster.session() as session:
        session.run(put_x, {key: 9, x: [1., 2.]})
        result = [session.run(sizes)]
        session.run(put_name, {key: 9, name: "pieces"})
        session.run(put, {key: 4, x: [3., 4.], name: "whole"})
        waiting = threading.Thread(target=session.run,
                                   args=(put, {key: 5, x: [7., 8.], name: "late"}))
        waiting.start()
        result += [session.run(peek, {key: 9}), session.run(get, {key: 9})]
        waiting.join()
        result += [session.run(sizes), session.run(first), session.run(get_name, {key: 5}),
                   session.run(sizes)]
        session.run(clear)
        return result + [session.run(sizes)]


@program("resource")
def critical_sections(cluster):
    with tf.device("/job:ps/task:0"):
        total = v1.get_variable("total", initializer=0)
        section = tf.CriticalSection(shared_name="section")

        def double_and_add():
            value = total.read_value()
            with tf.control_dependencies([value]):
                return total.assign(value + 1, read_value=True)

        adds = [section.execute(double_and_add) for _ in range(3)]
    with cluster.session() as session, cluster.session() as other:
        session.run(total.initializer)
        threads = [threading.Thread(target=lambda s=s: [s.run(adds) for _ in range(10)])
                   for s in (session, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return session.run(total)
