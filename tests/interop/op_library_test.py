#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests an op library of Penstock with TensorFlow's client: the program of docs/custom-ops.md, and
tasks that lack the library."""

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import harness  # noqa: E402  (goes on in a Python that has TensorFlow, or skips)

import tensorflow as tf  # noqa: E402
from tensorflow.python.framework import op_def_registry  # noqa: E402
import tf_ops  # noqa: E402
import tf_server  # noqa: E402

v1 = tf.compat.v1
LIBRARY = os.path.realpath("client/examples/libcube_root_op.so")
PAGE = "docs/custom-ops.md"
# Attributes of newer TensorFlow versions that Penstock's signatures lack; only TensorFlow's
# compilers use them.
NOT_OURS = {("MatMul", "grad_a"), ("MatMul", "grad_b"), ("BatchMatMul", "grad_x"),
            ("BatchMatMul", "grad_y"), ("BatchMatMulV2", "grad_x"), ("BatchMatMulV2", "grad_y")}


def start(cluster, job, load):
    """Starts a task, with or without the library; returns its server."""
    before = os.environ.pop("PENSTOCK_LOAD", None)
    try:
        if load:
            os.environ["PENSTOCK_LOAD"] = LIBRARY
        return tf_server.Server(cluster, job, 0)
    finally:
        os.environ.pop("PENSTOCK_LOAD", None)
        if before is not None:
            os.environ["PENSTOCK_LOAD"] = before


class OpLibrary(unittest.TestCase):
    def servers(self, **load):
        ports = harness.free_ports(2)
        cluster = {"ps": ["localhost:%d" % ports[0]], "worker": ["localhost:%d" % ports[1]]}
        started = {job: start(cluster, job, loads) for job, loads in load.items()}
        for server in started.values():
            self.addCleanup(server.stop)
        return started["worker"].target

    def test_1_the_program_of_the_page(self):
        with open(PAGE, encoding="utf-8") as file:
            program = re.search(r"```python\n(.*?)```", file.read(), re.DOTALL).group(1)
        target = self.servers(ps=True, worker=True)
        program = program.replace("grpc://127.0.0.1:2222", target)
        program = program.replace("build/libcube_root_op.so", LIBRARY)
        said = io.StringIO()
        with contextlib.redirect_stdout(said), tf.Graph().as_default():
            exec(compile(program, PAGE, "exec"), {})  # pylint: disable=exec-used
        numbers = [float(x) for x in re.findall(r"\d+\.\d*", said.getvalue())]
        for found, wanted in zip(numbers, [1, 2, 3, 1 / 3, 1 / 12, 1 / 27], strict=True):
            self.assertAlmostEqual(found, wanted, places=5)
        # Servers that are started from now on load the library.
        self.assertEqual(os.environ["PENSTOCK_LOAD"], LIBRARY)

    def test_2_a_task_that_lacks_the_library_is_named(self):
        ops = tf_ops.load_op_library(LIBRARY)
        for lacking in ("ps", "worker"):
            target = self.servers(**{job: job != lacking for job in ("ps", "worker")})
            with self.subTest(lacking=lacking), tf.Graph().as_default():
                with tf.device("/job:ps/task:0"):
                    y = ops.cube_root(v1.placeholder(tf.float64, [1]), name="root")
                with v1.Session(target) as session:
                    with self.assertRaises(tf.errors.NotFoundError) as caught:
                        session.run(y, {y.op.inputs[0]: [27.0]})
                said = str(caught.exception)
                self.assertIn("there is no op 'CubeRoot'", said)
                self.assertIn("this is /job:%s/replica:0/task:0" % lacking, said)
                self.assertIn("--load=LIBRARY", said)

    def test_3_mistakes(self):
        with self.assertRaisesRegex(RuntimeError, "there is no such file"):
            tf_ops.load_op_library("/nowhere/libnone.so")
        with self.assertRaisesRegex(TypeError, "x, T"), tf.Graph().as_default():
            tf_ops.load_op_library(LIBRARY).cube_root(1.0, tf.float32, 3)
        with self.assertRaisesRegex(RuntimeError, "TensorFlow has an op MatMul of its own"):
            tf_ops.register({"name": "MatMul", "inputs": [], "outputs": [], "attrs": [],
                             "stateful": False})
        # TensorFlow would end the process for these specs.
        good = {"name": "Refused", "inputs": ["x: T"], "outputs": ["y: T"],
                "attrs": ["T: {float, double}"], "stateful": False, "doc": ""}
        for change, why in (({"name": "refused"}, "no op of the name 'refused'"),
                            ({"inputs": ["X: T"]}, "no name 'X' among the inputs"),
                            ({"outputs": ["_y: T"]}, "no name '_y' among the outputs"),
                            ({"attrs": ["_T: type"]}, "no name '_T' among the attrs"),
                            ({"outputs": ["x: T"]}, "the name 'x' only once"),
                            ({"inputs": ["T: float"]}, "no name 'T' among the inputs")):
            with self.subTest(change=change), self.assertRaisesRegex(ValueError, why):
                tf_ops.register({**good, **change})
        # All ops of a library are checked before one is registered.
        bad = {**good, "name": "refused"}
        with unittest.mock.patch.object(tf_ops, "_specs", lambda path: [good, bad]):
            for _ in range(2):
                with self.assertRaisesRegex(ValueError, "no op of the name 'refused'"):
                    tf_ops.load_op_library("/nowhere/librefused.so")
        self.assertIsNone(op_def_registry.get("Refused"))
        # TensorFlow's own sessions cannot run the op.
        with tf.Graph().as_default(), v1.Session() as session:
            y = tf_ops.load_op_library(LIBRARY).cube_root([8.0])
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "No OpKernel"):
                session.run(y)

    def test_4_tensorflow_takes_the_signature_of_every_op(self):
        said = subprocess.run([os.environ["PENSTOCK"], "ops", "--json"], stdout=subprocess.PIPE,
                              check=True)
        specs = json.loads(said.stdout)
        self.assertGreater(len(specs), 900)
        for spec in specs:
            theirs = op_def_registry.get(spec["name"])
            spec["name"] = "Copy" + spec["name"].lstrip("_")
            tf_ops.register(spec)
            ours = op_def_registry.get(spec["name"])
            if theirs is None:
                continue
            types = {attr.name: attr.type for attr in ours.attr}
            for attr in theirs.attr:
                with self.subTest(op=theirs.name, attr=attr.name):
                    if (theirs.name, attr.name) in NOT_OURS:
                        continue
                    self.assertIn(attr.name, types)
                    self.assertEqual(types[attr.name], attr.type, spec)

    def test_5_an_installation_finds_its_own_program(self):
        with tempfile.TemporaryDirectory() as prefix:
            prefix = os.path.realpath(prefix)
            python, program = prefix + "/share/penstock/python", prefix + "/bin/penstock"
            os.makedirs(python)
            os.makedirs(prefix + "/bin")
            shutil.copy(tf_server.__file__, python)
            with open(program, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\n")
            os.chmod(program, 0o755)
            without = {name: value for name, value in os.environ.items() if name != "PENSTOCK"}
            said = subprocess.run(
                [sys.executable, "-c", "import tf_server; print(tf_server.find_program())"],
                env={**without, "PYTHONPATH": python}, cwd=prefix, stdout=subprocess.PIPE,
                text=True, check=True)
            self.assertEqual(said.stdout.strip(), program)


if __name__ == "__main__":
    unittest.main(verbosity=2)
