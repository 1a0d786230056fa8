# SPDX-License-Identifier: Apache-2.0
"""Runs TensorFlow programs on a cluster of TensorFlow servers and on one of Penstock servers, and
compares the results.

The programs run in $PENSTOCK_TENSORFLOW_PYTHON, or in this Python if it has TensorFlow; without
either they are skipped.

A program is a function that takes a Cluster and returns its results: arrays, numbers and strings,
in dicts, lists or tuples. It is called once per cluster, with an empty default graph, and must not
depend on which cluster it gets. Seeds make its random numbers the same.

    @program("ref", "resource", "v2")
    def least_squares(cluster): ...

The arguments select the modes: "ref" and "resource" are TensorFlow 1's behaviour with this kind of
variable; "v2" is TensorFlow 2's behaviour in graph mode.
"""

import importlib.util
import os
import sys
import tempfile
import time
import unittest
import xml.sax.saxutils

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
# By default TensorFlow's use of oneDNN, which gives other results, depends on the processor.
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"
os.environ["TF_USE_LEGACY_KERAS"] = "1"
for proxy in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "grpc_proxy"):
    os.environ.pop(proxy, None)

def _find_tensorflow():
    """Restarts the program in $PENSTOCK_TENSORFLOW_PYTHON if that is set. Otherwise ends the
    process, with a skipped test, if this Python has no TensorFlow."""
    wanted = os.environ.pop("PENSTOCK_TENSORFLOW_PYTHON", None)
    if wanted:
        os.execv(wanted, [wanted] + sys.argv)
    if importlib.util.find_spec("tensorflow") is None:
        print("SKIPPED: there is no TensorFlow; tools/install_tensorflow installs it")
        if "XML_OUTPUT_FILE" in os.environ:
            with open(os.environ["XML_OUTPUT_FILE"], "w", encoding="utf-8") as f:
                f.write("<testsuites><testsuite name='interop'><testcase name='programs'>"
                        "<skipped/></testcase></testsuite></testsuites>\n")
        sys.exit(0)


_find_tensorflow()

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

for folder in ("../../tools", "../e2e"):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), folder))
if os.path.exists("tools/penstock/penstock"):  # the path in a test's runfiles
    os.environ.setdefault("PENSTOCK", os.path.abspath("tools/penstock/penstock"))
import tf_server  # noqa: E402
from ports import free_ports  # noqa: E402

v1 = tf.compat.v1
# The folder into which the build puts the programs of client/examples.
EXAMPLES = os.environ.get("PENSTOCK_EXAMPLES", os.path.abspath("client/examples"))
TASKS = {"ps": 1, "worker": 2}
RELATIVE_TOLERANCE = 2e-5
ABSOLUTE_TOLERANCE = 1e-6

_programs = []


def program(*modes, rtol=RELATIVE_TOLERANCE, atol=ABSOLUTE_TOLERANCE):
    """Declares a program that runs in these modes on both sides; `rtol` and `atol` are the
    tolerances of the results."""
    def add(function):
        _programs.append((function, modes, rtol, atol))
        return function
    return add


class Cluster:
    """A cluster of 1 ps and 2 workers for one program, of TensorFlow's or Penstock's servers."""

    def __init__(self, servers, folder):
        self.servers = servers
        self.folder = folder  # an empty folder for the program's files, visible to the servers too

    def target(self, job="worker", task=0):
        return self.servers[job][task].target

    def spec(self):
        return tf.train.ClusterSpec(self.servers["ps"][0].server_def.cluster)

    def between_graphs(self, task=0):
        """Places variables on the ps, everything else on a worker."""
        return v1.device(v1.train.replica_device_setter(
            cluster=self.spec(), worker_device="/job:worker/task:%d" % task))

    def session(self, config=None, task=0):
        return v1.Session(self.target("worker", task), config=config)


def _start_servers(make):
    ports = iter(free_ports(sum(TASKS.values())))
    spec = {job: ["localhost:%d" % next(ports) for _ in range(n)] for job, n in TASKS.items()}
    return {job: [make(spec, job_name=job, task_index=i) for i in range(n)]
            for job, n in TASKS.items()}


def _assert_same(ours, theirs, rtol, atol, where="result"):
    if isinstance(theirs, dict):
        if set(ours) != set(theirs):
            raise AssertionError("%s: keys %s, TensorFlow's %s" % (where, set(ours), set(theirs)))
        for key in theirs:
            _assert_same(ours[key], theirs[key], rtol, atol, "%s[%r]" % (where, key))
    elif isinstance(theirs, (list, tuple)):
        if len(ours) != len(theirs):
            raise AssertionError("%s: %d parts, TensorFlow's %d" % (where, len(ours), len(theirs)))
        for i, (a, b) in enumerate(zip(ours, theirs)):
            _assert_same(a, b, rtol, atol, "%s[%d]" % (where, i))
    else:
        a, b = np.asarray(ours), np.asarray(theirs)
        if a.shape != b.shape or a.dtype.kind != b.dtype.kind:
            raise AssertionError("%s: %s %s, TensorFlow's %s %s" %
                                 (where, a.dtype, a.shape, b.dtype, b.shape))
        if b.dtype.kind in "fc":
            np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=where)
        else:
            np.testing.assert_array_equal(a, b, err_msg=where)


def _run(function, servers):
    with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
        v1.reset_default_graph()
        cluster = Cluster(servers, folder)
        # Removes the state that earlier programs left on the tasks.
        v1.Session.reset(cluster.target("ps"))
        v1.Session.reset(cluster.target("worker"))
        with tf.Graph().as_default():
            return function(cluster)


def _tensorflow_server(*args, **kwargs):
    # Names the leader of collective groups, which TensorFlow's tasks need to know.
    config = v1.ConfigProto()
    config.experimental.collective_group_leader = "/job:worker/replica:0/task:0"
    return v1.train.Server(*args, config=config, **kwargs)


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.theirs = _start_servers(_tensorflow_server)
        cls.ours = _start_servers(tf_server.Server)


def _make_test(function, mode, rtol, atol):
    def test(self):
        if mode == "ref":
            v1.disable_resource_variables()
        else:
            v1.enable_resource_variables()
        expected = _run(function, self.theirs)
        _assert_same(_run(function, self.ours), expected, rtol, atol)
    return test


class _Result(unittest.TextTestResult):
    """Also records the data for Bazel's XML file."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.cases = []

    def startTest(self, test):
        self.began = time.monotonic()
        super().startTest(test)

    def stopTest(self, test):
        failed = {id(t): text for t, text in self.failures + self.errors}
        skipped = id(test) in {id(t) for t, _ in self.skipped}
        self.cases.append((test.id().split(".")[-1], time.monotonic() - self.began,
                           failed.get(id(test)), skipped))
        super().stopTest(test)


def _write_xml(path, result):
    quote = xml.sax.saxutils.quoteattr
    with open(path, "w", encoding="utf-8") as f:
        f.write("<testsuites><testsuite name='interop' tests='%d'>\n" % len(result.cases))
        for name, seconds, failure, skipped in result.cases:
            f.write("<testcase name=%s time='%.2f'>" % (quote(name), seconds))
            if skipped:
                f.write("<skipped/>")
            if failure is not None:
                f.write("<failure message=%s/>" % quote(failure.strip().splitlines()[-1]))
            f.write("</testcase>\n")
        f.write("</testsuite></testsuites>\n")


def main(modes):
    """Runs the programs of these modes whose names contain one of the command line's words; all of
    them if there are no words. Then ends the process."""
    if "v2" in modes:
        v1.disable_eager_execution()
    else:
        v1.disable_v2_behavior()
    v1.logging.set_verbosity(v1.logging.ERROR)
    words = sys.argv[1:]
    for function, program_modes, rtol, atol in _programs:
        for mode in modes:
            name = "%s/%s" % (function.__name__, mode)
            if mode in program_modes and (not words or any(w in name for w in words)):
                test = _make_test(function, mode, rtol, atol)
                setattr(Programs, "test_" + name, test)
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Programs)
    runner = unittest.TextTestRunner(verbosity=2, resultclass=_Result)
    result = runner.run(suite)
    if "XML_OUTPUT_FILE" in os.environ:
        _write_xml(os.environ["XML_OUTPUT_FILE"], result)
    sys.stdout.flush()
    sys.stderr.flush()
    # TensorFlow's servers cannot be stopped while the process runs, so exit.
    for task in sum(Programs.ours.values(), []) if result.testsRun else []:
        task.stop()
    os._exit(0 if result.wasSuccessful() and result.testsRun else 1)
