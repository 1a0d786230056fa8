# SPDX-License-Identifier: Apache-2.0
"""Tests monitored sessions: initialisation, hooks, recovery, several workers."""

import glob
import os
import threading

import numpy as np
import tensorflow as tf
from harness import program, v1


def _regression(cluster, task=0, optimizer=None):
    """Learns y = 3x - 1 from noise-free points."""
    random = np.random.RandomState(51 + task)
    xs = random.rand(20, 1).astype(np.float32)
    with cluster.between_graphs(task):
        step = v1.train.get_or_create_global_step()
        w = v1.get_variable("w", [1, 1], initializer=v1.zeros_initializer())
        b = v1.get_variable("b", [1], initializer=v1.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(xs, w) + b - (3 * xs - 1)))
        optimizer = optimizer or v1.train.GradientDescentOptimizer(0.3)
        return loss, optimizer.minimize(loss, global_step=step), [w, b], step


class _Notes(v1.train.SessionRunHook):
    def __init__(self, loss):
        self.loss, self.events, self.losses = loss, [], []

    def begin(self):
        self.events.append("begin")

    def after_create_session(self, session, coord):
        self.events.append("created")

    def before_run(self, context):
        return v1.train.SessionRunArgs(self.loss)

    def after_run(self, context, values):
        self.losses.append(values.results)

    def end(self, session):
        self.events.append("end")


@program("ref", "resource", "v2")
def monitored_session(cluster):
    loss, train, variables, step = _regression(cluster)
    v1.summary.scalar("loss", loss)
    notes = _Notes(loss)
    folder = os.path.join(cluster.folder, "run")

    def run(last_step):
        hooks = [notes, v1.train.StopAtStepHook(last_step=last_step),
                 v1.train.NanTensorHook(loss)]
        with v1.train.MonitoredTrainingSession(
                cluster.target(), is_chief=True, checkpoint_dir=folder, hooks=hooks,
                save_checkpoint_steps=5, save_summaries_steps=4, log_step_count_steps=3) as session:
            while not session.should_stop():
                session.run(train)

    run(8)
    with tf.Graph().as_default():  # a second program resumes where the first one ended
        loss, train, variables, step = _regression(cluster)
        v1.summary.scalar("loss", loss)
        notes.loss = loss
        run(13)
    latest = os.path.basename(tf.train.latest_checkpoint(folder))
    values = []
    for path in sorted(glob.glob(os.path.join(folder, "events*"))):
        for event in v1.train.summary_iterator(path):
            values += [v.tag for v in event.summary.value]
    return notes.events, notes.losses, latest, "loss" in values


@program("ref", "resource")
def between_graph_workers(cluster):
    """Two clients with separate graphs and masters share the variables on the ps."""
    errors = []
    ends = {}

    def work(task):
        try:
            with tf.Graph().as_default():
                _, train, variables, step = _regression(cluster, task)
                config = v1.ConfigProto(
                    device_filters=["/job:ps", "/job:worker/task:%d" % task])
                with v1.train.MonitoredTrainingSession(
                        cluster.target("worker", task), is_chief=task == 0, config=config,
                        hooks=[v1.train.StopAtStepHook(last_step=600)],
                        checkpoint_dir=cluster.folder if task == 0 else None,
                        max_wait_secs=60) as session:
                    while not session.should_stop():
                        values = session.run([train] + variables + [step])
                    ends[task] = values
        except BaseException as error:  # noqa: B902
            errors.append(error)

    threads = [threading.Thread(target=work, args=(task,)) for task in (0, 1)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]
    last = max(ends.values(), key=lambda e: e[3])
    return [bool(abs(last[1][0, 0] - 3) < 0.05), bool(abs(last[2][0] + 1) < 0.05),
            # fetched concurrently with the update, so it may lack the last one
            bool(last[3] >= 595)]


@program("ref", "resource", "v2")
def session_manager(cluster):
    """A worker that is not the chief waits until the chief has initialised the variables."""
    with cluster.between_graphs():
        w = v1.get_variable("w", initializer=[1.0, 2.0])
        local = v1.get_variable("local", initializer=3.0,
                                collections=[v1.GraphKeys.LOCAL_VARIABLES])
    ready = v1.report_uninitialized_variables()
    locals_ready = v1.report_uninitialized_variables(v1.global_variables())
    manager = v1.train.SessionManager(
        local_init_op=v1.local_variables_initializer(), ready_op=ready,
        ready_for_local_init_op=locals_ready, recovery_wait_secs=1)
    with cluster.session() as session:
        before = session.run(ready), session.run(locals_ready)
        try:
            session.run(tf.identity(w) if w.op.type == "VarHandleOp" else w + 1)
            failed = "nothing"
        except tf.errors.FailedPreconditionError as error:
            failed = "uninitialized" in str(error).lower(), error.op.name
        initialised = session.run([v1.is_variable_initialized(w)])

    initializer = v1.global_variables_initializer()

    def initialise():
        with v1.Session(cluster.target(), graph=initializer.graph) as session:
            session.run(initializer)

    chief = threading.Timer(1.5, initialise)
    chief.start()
    session = manager.wait_for_session(cluster.target("worker", 1), max_wait_secs=60)
    chief.join()
    values = session.run([w, local])
    after = session.run(ready)
    session.close()
    return before, failed, initialised, values, after
