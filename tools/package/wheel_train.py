# SPDX-License-Identifier: Apache-2.0
"""A TensorFlow 1 program as in tutorials: between-graph replication, with variables on the ps.

It does not mention Penstock. wheel_test.py runs it.
"""

import argparse

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ps_hosts")
    parser.add_argument("--worker_hosts")
    parser.add_argument("--job_name")
    parser.add_argument("--task_index", type=int)
    parser.add_argument("--steps", type=int, default=200)
    args = parser.parse_args()

    cluster = tf.train.ClusterSpec({"ps": args.ps_hosts.split(","),
                                    "worker": args.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=args.job_name, task_index=args.task_index)
    if args.job_name == "ps":
        server.join()
        return

    device = "/job:worker/task:%d" % args.task_index
    with tf.device(tf.train.replica_device_setter(worker_device=device, cluster=cluster)):
        x = tf.constant([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        y = tf.constant([[3.0], [-1.0], [2.0]])
        w = tf.get_variable("w", [2, 1], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.squared_difference(tf.matmul(x, w), y))
        step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(0.3).minimize(loss, global_step=step)

    hooks = [tf.train.StopAtStepHook(last_step=args.steps)]
    # With this filter a worker does not depend on the others, which may have ended when it starts.
    config = tf.ConfigProto(device_filters=["/job:ps", device])
    with tf.train.MonitoredTrainingSession(server.target, is_chief=args.task_index == 0,
                                           hooks=hooks, config=config) as session:
        while not session.should_stop():
            value = session.run([w, train])[0]
    print("w = %.2f %.2f" % tuple(value.ravel()), flush=True)


if __name__ == "__main__":
    main()
