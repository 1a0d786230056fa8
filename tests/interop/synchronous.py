# SPDX-License-Identifier: Apache-2.0
"""Tests SyncReplicasOptimizer, with a separate client for each worker."""

import threading
import time

import numpy as np
import tensorflow as tf
from harness import program, v1


class _Started(v1.train.SessionRunHook):
    """Sets an event when the chief has initialised the variables; workers that start earlier would
    wait half a minute at a time."""

    def __init__(self, event):
        self.event = event

    def after_create_session(self, session, coord):
        self.event.set()


class _Slow(v1.train.SessionRunHook):
    def __init__(self, seconds):
        self.seconds = seconds

    def before_run(self, context):
        time.sleep(self.seconds)


def _loss(task):
    """Returns the loss of y = 3x - 1 with a table. The workers use different rows, each of them
    once, because TensorFlow's accumulator does not compute the mean if a gradient repeats a row."""
    random = np.random.RandomState(7 + task)
    xs = random.rand(10, 1).astype(np.float32)
    w = v1.get_variable("w", [1, 1], initializer=v1.zeros_initializer())
    b = v1.get_variable("b", [1], initializer=v1.zeros_initializer())
    table = v1.get_variable("table", [4, 2], initializer=v1.ones_initializer())
    rows = tf.nn.embedding_lookup(table, [task, task + 1])
    loss = (tf.reduce_mean(tf.square(tf.matmul(xs, w) + b - (3 * xs - 1))) +
            tf.reduce_mean(tf.square(rows - 3.0)))
    return loss, [w, b, table]


def _train(cluster, steps, optimizer, num_tokens, slow):
    """Trains up to `steps` with a client per worker; returns the variables that the chief read
    last."""
    ends, errors = {}, []
    started = threading.Event()

    def work(task):
        try:
            if task == 1:
                assert started.wait(60), "the chief does not start"
            with tf.Graph().as_default(), cluster.between_graphs(task):
                step = v1.train.get_or_create_global_step()
                loss, variables = _loss(task)
                sync = optimizer()
                train = sync.minimize(loss, global_step=step)
                hooks = [sync.make_session_run_hook(task == 0, num_tokens=num_tokens),
                         v1.train.StopAtStepHook(last_step=steps)]
                hooks.append(_Slow(slow) if task == 1 else _Started(started))
                config = v1.ConfigProto(
                    device_filters=["/job:ps", "/job:worker/task:%d" % task])
                with v1.train.MonitoredTrainingSession(
                        cluster.target("worker", task), is_chief=task == 0, config=config,
                        hooks=hooks, save_summaries_steps=None, save_summaries_secs=None,
                        max_wait_secs=60, stop_grace_period_secs=1) as session:
                    while not session.should_stop():
                        session.run(train)
                        if session.should_stop():
                            break
                    ends[task] = None
                if task == 0:  # reads the variables in another session, since this one is closed
                    with cluster.session() as session:
                        ends[task] = session.run(variables + [step])
        except BaseException as error:  # noqa: B902
            errors.append(error)

    threads = [threading.Thread(target=work, args=(task,)) for task in (0, 1)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    if errors:
        raise errors[0]
    assert len(ends) == 2, "a worker never ended"
    return ends[0]


@program("ref", "resource")
def synchronous_workers(cluster):
    """Without initial tokens, every update is the mean of one gradient of each worker."""
    def optimizer():
        return v1.train.SyncReplicasOptimizer(
            v1.train.MomentumOptimizer(0.1, 0.5), replicas_to_aggregate=2, total_num_replicas=2)

    return _train(cluster, 12, optimizer, num_tokens=0, slow=0.05)


@program("ref", "resource")
def a_backup_worker(cluster):
    """The first gradient is applied. The other worker's gradient comes late and is dropped."""
    def optimizer():
        return v1.train.SyncReplicasOptimizer(
            v1.train.GradientDescentOptimizer(0.3), replicas_to_aggregate=1, total_num_replicas=2)

    w, b, _, step = _train(cluster, 200, optimizer, num_tokens=-1, slow=0.02)
    return bool(abs(w[0, 0] - 3) < 0.2), bool(abs(b[0] + 1) < 0.2), bool(200 <= step <= 210)
