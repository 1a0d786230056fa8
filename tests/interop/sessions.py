# SPDX-License-Identifier: Apache-2.0
"""Tests the session protocol: the calls of a client, and the errors for mistakes."""

import gc
import threading
import time

import numpy as np
import tensorflow as tf
from harness import program, v1
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import timeline


def _error(session, fetch, feed=None, options=None):
    """Returns the error's class, and the node that it names."""
    try:
        session.run(fetch, feed, options=options)
        return "none"
    except tf.errors.OpError as error:
        return type(error).__name__, error.op and error.op.name


@program("ref", "resource", "v2")
def growing_graph(cluster):
    """A session stays usable as its graph grows, and accepts all names of a tensor."""
    x = v1.placeholder(tf.float32, name="x")
    y = tf.add(x, 1.0, name="y")
    with cluster.session() as session:
        results = [session.run(y, {x: 1.0}), session.run("y:0", {"x:0": 2.0})]
        z = tf.multiply(y, 2.0, name="z")
        results.append(session.run([z, [y, {"z": z}], "z:0"], {x: 3.0}))
        results.append(session.run(z, {y: 7.0}))  # clients may feed any tensor
        results.append(session.run([x, z], {x: [1.0, 2.0]}))
        with v1.device("/job:ps/task:0"):
            w = tf.subtract(z, x, name="w")
        results.append(session.run(w, {x: 5.0}))
        results.append(session.run(tf.no_op(name="nothing")))
    return results


@program("ref", "resource")
def errors(cluster):
    x = v1.placeholder(tf.float32, [2], name="x")
    with v1.device("/job:ps/task:0"):
        checked = v1.check_numerics(x, "not a number", name="checked")
    with v1.device("/job:worker/task:1"):
        gathered = tf.gather(x, v1.placeholder(tf.int32, name="at"), name="gathered")
    with cluster.session() as session:
        found = [
            _error(session, checked, {x: [1.0, np.nan]}),
            _error(session, checked),
            _error(session, gathered, {x: [1.0, 2.0], "at:0": 5}),
            _error(session, tf.linalg.matmul(v1.placeholder_with_default(np.ones([2, 3]), None),
                                             v1.placeholder_with_default(np.ones([2, 3]), None),
                                             name="product")),
        ]
        found.append(session.run(checked, {x: [1.0, 2.0]}))  # the session still works
        with v1.device("/job:worker/task:7"):
            nowhere = tf.constant(1.0, name="nowhere")
        found.append(_error(session, nowhere)[0])
        return found


@program("ref", "resource")
def soft_placement(cluster):
    with v1.device("/job:worker/task:0/device:GPU:0"):
        sum_of_two = tf.add(1.0, 2.0, name="sum_of_two")
    with cluster.session() as session:
        hard = _error(session, sum_of_two)[0]
    with cluster.session(v1.ConfigProto(allow_soft_placement=True)) as session:
        return hard, session.run(sum_of_two)


@program("ref", "resource")
def sessions_share_state(cluster):
    with v1.device("/job:ps/task:0"):
        counter = v1.get_variable("counter", initializer=0)
    add = v1.assign_add(counter, 1)
    isolated = v1.ConfigProto(isolate_session_state=True)
    results = []
    with cluster.session(task=0) as one, cluster.session(task=1) as other:
        one.run(counter.initializer)
        one.run(add.op)
        other.run(add.op)
        results.append(one.run(counter))
        with cluster.session(isolated) as alone:
            results.append(_error(alone, tf.identity(counter))[0])
            alone.run(counter.initializer)
            results.append(alone.run(counter))
        results.append(other.run(counter))
    v1.Session.reset(cluster.target())
    with cluster.session() as session:
        results.append(_error(session, tf.identity(counter))[0])
    return results


@program("ref", "resource")
def reset_ends_sessions(cluster):
    x = tf.constant(1.0)
    session = cluster.session()
    before = session.run(x)
    v1.Session.reset(cluster.target())
    after = _error(session, x)[0]
    return before, after


def _start_and_forget(cluster):
    """Returns the address of a task whose Server object has been dropped."""
    return type(cluster.servers["worker"][0]).create_local_server().target


@program("ref")
def tasks_outlive_their_servers(cluster):
    """tf.estimator.train_and_evaluate makes a server, drops the object and uses its address."""
    target = _start_and_forget(cluster)
    gc.collect()
    with v1.Session(target, config=v1.ConfigProto(operation_timeout_in_ms=20000)) as session:
        return session.run(tf.constant(1) + 1)


@program("ref")
def devices(cluster):
    with cluster.session() as session:
        found = sorted(d.name for d in session.list_devices() if d.device_type == "CPU")
    filters = v1.ConfigProto(device_filters=["/job:ps", "/job:worker/task:0"])
    with cluster.session(filters) as session:
        return found, sorted(d.name for d in session.list_devices() if d.device_type == "CPU")


@program("ref", "resource", "v2")
def callables(cluster):
    x = v1.placeholder(tf.float32, name="x")
    with v1.device("/job:ps/task:0"):
        y = x * 2.0
    with cluster.session() as session:
        double = session.make_callable(y, [x])
        results = [double(1.0), double([3.0, 4.0])]
        options = config_pb2.CallableOptions(feed=[x.name], fetch=[y.name])
        call = session._make_callable_from_options(options)
        results.append(call(np.float32(5.0)))
        results.append(call(np.float32([6.0])))
        return results


@program("ref")
def traces(cluster):
    """Traces a step; compares RunMetadata and the timeline that TensorFlow makes of it."""
    with v1.device("/job:ps/task:0"):
        w = v1.get_variable("w", initializer=np.ones([4, 4], np.float32))
    with v1.device("/job:worker/task:0"):
        y = tf.matmul(w, w, name="y")
    with cluster.session() as session:
        session.run(w.initializer)
        metadata = v1.RunMetadata()
        options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE, output_partition_graphs=True)
        session.run(y, options=options, run_metadata=metadata)
    nodes = {n.node_name for d in metadata.step_stats.dev_stats for n in d.node_stats}
    names = {d.device.split("/device:")[0] for d in metadata.step_stats.dev_stats}
    trace = timeline.Timeline(metadata.step_stats).generate_chrome_trace_format()
    partitions = {n.device.split("/device:")[0] for g in metadata.partition_graphs
                  for n in g.node}
    tasks = {"/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"}
    return ("y" in nodes, "RecvTensor" in nodes, tasks <= names, '"name": "y"' in trace,
            tasks <= partitions)


@program("ref", "resource", rtol=2.0**-6)
def rounded_transfers(cluster):
    """Sends floats as bfloat16, which TensorFlow truncates and Penstock rounds; training still
    works."""
    values = np.random.RandomState(1).uniform(1, 2, [100, 10]).astype(np.float32)
    with v1.device("/job:ps/task:0"):
        w = v1.get_variable("w", initializer=values)
    with v1.device("/job:worker/task:1"):
        doubled = 2.0 * w
        loss = tf.reduce_sum(tf.square(w))
    train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
    config = v1.ConfigProto()
    config.graph_options.enable_bfloat16_sendrecv = True
    with cluster.session(config) as session:
        session.run(w.initializer)
        found = session.run(doubled)
        for _ in range(5):
            session.run(train)
        return found, np.mean(found != 2 * values) > 0.9, session.run(loss)


@program("ref")
def profiles(cluster):
    """Profiles a traced step with tf.profiler: the time and memory of ops."""
    with v1.device("/job:ps/task:0"):
        w = v1.get_variable("w", initializer=np.ones([300, 200], np.float32))
    with v1.device("/job:worker/task:0"):
        x = v1.placeholder(tf.float32, [None, 300], name="x")
        y = tf.matmul(tf.nn.softplus(tf.matmul(x, w)), np.full([200, 50], 0.5, np.float32))
    metadata = v1.RunMetadata()
    with cluster.session() as session:
        session.run(w.initializer)
        options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
        session.run(y, {x: np.ones([100, 300])}, options=options, run_metadata=metadata)
    columns = v1.profiler.ProfileOptionBuilder.time_and_memory()
    columns["output"] = "none"
    table = v1.profiler.profile(w.graph, run_meta=metadata, cmd="op", options=columns)
    ops = {}
    while table.children:  # a list of ops, each the child of the previous one
        table = table.children[0]
        ops[table.name] = table
    products = ops["MatMul"]
    return (products.exec_micros > 0, products.requested_bytes == products.peak_bytes,
            products.output_bytes, products.residual_bytes // 1000,
            ops["VariableV2"].requested_bytes, ops["Softplus"].output_bytes)


@program("ref")
def timeouts(cluster):
    """A step that waits forever ends with its timeout, and the session stays usable."""
    with v1.device("/job:ps/task:0"):
        queue = v1.FIFOQueue(1, tf.float32, shapes=[[]], shared_name="never")
        taken = queue.dequeue(name="taken")
    with cluster.session() as session:
        begin = time.monotonic()
        late = _error(session, taken, options=v1.RunOptions(timeout_in_ms=400))[0]
        results = [late, time.monotonic() - begin < 10]
    config = v1.ConfigProto(operation_timeout_in_ms=500)
    with cluster.session(config) as session:
        results.append(_error(session, taken)[0])
        results.append(session.run(queue.size()))
    return results


@program("ref")
def close_cancels(cluster):
    with v1.device("/job:ps/task:0"):
        taken = v1.FIFOQueue(1, tf.float32, shapes=[[]], shared_name="empty").dequeue()
    session = cluster.session()
    session.run(tf.constant(1.0))
    found = []
    thread = threading.Thread(target=lambda: found.append(_error(session, taken)[0]))
    thread.start()
    time.sleep(0.5)
    session.close()
    thread.join(20)
    return found


@program("ref")
def many_blocked_steps(cluster):
    """Waiting steps do not prevent other steps from running."""
    with v1.device("/job:ps/task:0"):
        queue = v1.FIFOQueue(100, tf.int32, shapes=[[]], shared_name="many")
        taken, put = queue.dequeue(), queue.enqueue(v1.placeholder(tf.int32, [], "value"))
    with cluster.session() as session:
        session.run(queue.size())
        results = []
        threads = [threading.Thread(target=lambda: results.append(session.run(taken)))
                   for _ in range(60)]
        for thread in threads:
            thread.start()
        time.sleep(1)
        sums = [session.run(tf.add(i, 1)) for i in range(3)]
        for i in range(60):
            session.run(put, {"value:0": i})
        for thread in threads:
            thread.join(30)
        return sums, sorted(results)


@program("ref", "resource")
def random_streams(cluster):
    """Random ops continue from their state after the last step, independent of the other
    fetches."""
    v1.set_random_seed(5)
    numbers = [v1.random_uniform([3]), v1.random_normal([3]), v1.truncated_normal([3]),
               v1.random_uniform([3], maxval=100, dtype=tf.int32), v1.random.multinomial(
                   [[0.0, 1.0, 2.0]], 4), v1.random.gamma([3], 2.0),
               v1.random_shuffle(np.arange(6)), v1.random.stateless_uniform([3], [1, 2])]
    with cluster.session() as session:
        drawn = [session.run(numbers), session.run(numbers[:3]), session.run(numbers[1]),
                 session.run([tf.constant(1), numbers[0]])]
    with cluster.session() as session:
        drawn.append(session.run(numbers))
    return drawn
