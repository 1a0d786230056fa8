#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests libpenstock.so from Python with ctypes: trains in this process and on a ps and a worker in
other processes, shares memory by DLPack, loads an op library."""

import array
import ctypes
import importlib.util
import os
import socket
import subprocess
import unittest

LIBRARY = "tools/package/libpenstock.so"
PENSTOCK = "tools/penstock/penstock"
CUBE_ROOT = "client/examples/libcube_root_op.so"
FLOAT = 1

P, S, INT, LONG = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_int64


class DLTensor(ctypes.Structure):
    _fields_ = [("data", P), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(LONG)),
                ("strides", ctypes.POINTER(LONG)), ("byte_offset", ctypes.c_uint64)]


DELETER = ctypes.CFUNCTYPE(None, P)


class DLManagedTensor(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", P), ("deleter", DELETER)]


class Step(ctypes.Structure):
    _fields_ = [("feed_names", ctypes.POINTER(S)), ("feeds", ctypes.POINTER(P)),
                ("num_feeds", INT), ("fetch_names", ctypes.POINTER(S)), ("num_fetches", INT),
                ("targets", ctypes.POINTER(S)), ("num_targets", INT), ("timeout_ms", LONG),
                ("cancellation", P)]


def load():
    library = ctypes.CDLL(os.path.abspath(LIBRARY))
    for name, result, arguments in (
            ("AbiVersion", INT, []), ("StatusMessage", S, [P]), ("DeleteStatus", None, [P]),
            ("LoadLibrary", P, [S]), ("NewSession", P, [S, LONG, P]),
            ("ExtendSession", P, [P, S, ctypes.c_size_t]), ("DeleteSession", None, [P]),
            ("Run", P, [P, P, ctypes.c_size_t, P]), ("NewTensor", P, [INT, P, INT, P]),
            ("TensorData", P, [P]), ("TensorBytes", ctypes.c_size_t, [P]),
            ("TensorFromDLPack", P, [P, P]), ("TensorToDLPack", P, [P, P]),
            ("DeleteTensor", None, [P])):
        function = getattr(library, "PS_" + name)
        function.restype, function.argtypes = result, arguments
    return library


ps = load()


def check(status):
    if status:
        message = ps.PS_StatusMessage(status).decode()
        ps.PS_DeleteStatus(status)
        raise RuntimeError(message)


def floats(shape, values):
    """Returns a tensor whose elements are copied from a buffer."""
    tensor = P()
    check(ps.PS_NewTensor(FLOAT, (LONG * len(shape))(*shape), len(shape), ctypes.byref(tensor)))
    source = array.array("f", values)
    ctypes.memmove(ps.PS_TensorData(tensor), source.buffer_info()[0], ps.PS_TensorBytes(tensor))
    return tensor


def values_of(tensor):
    size = ps.PS_TensorBytes(tensor)
    return list(array.array("f", ctypes.string_at(ps.PS_TensorData(tensor), size)))


class Session:
    def __init__(self, target, graph):
        self.handle = P()
        check(ps.PS_NewSession(target.encode(), 30_000, ctypes.byref(self.handle)))
        check(ps.PS_ExtendSession(self.handle, graph, len(graph)))

    def run(self, feeds=None, fetches=(), targets=()):
        """Returns the handles of the fetched tensors."""
        feeds = feeds or {}
        step = Step((S * len(feeds))(*[name.encode() for name in feeds]),
                    (P * len(feeds))(*feeds.values()), len(feeds),
                    (S * len(fetches))(*[name.encode() for name in fetches]), len(fetches),
                    (S * len(targets))(*[name.encode() for name in targets]), len(targets))
        fetched = (P * len(fetches))()
        check(ps.PS_Run(self.handle, ctypes.byref(step), ctypes.sizeof(step), fetched))
        return list(fetched)

    def close(self):
        ps.PS_DeleteSession(self.handle)


def graph_file(name):
    with open("client/c/least_squares_%s.pb" % name, "rb") as file:
        return file.read()


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class CApi(unittest.TestCase):
    def session(self, target, graph):
        session = Session(target, graph)
        self.addCleanup(session.close)
        return session

    def train(self, session):
        session.run(targets=["init"])
        feeds = {"x": floats([2, 2], [1, 0, 0, 1]), "y": floats([2, 1], [3, -1])}
        for _ in range(30):
            session.run(feeds, targets=["train"])
        w = session.run(fetches=["w/value"])[0]
        found = values_of(w)
        for tensor in (w, *feeds.values()):
            ps.PS_DeleteTensor(tensor)
        for value, wanted in zip(found, [3, -1], strict=True):
            self.assertAlmostEqual(value, wanted, places=3)

    def test_trains_in_this_process(self):
        self.assertEqual(ps.PS_AbiVersion(), 1)
        self.train(self.session("", graph_file("local")))

    def test_trains_on_a_cluster(self):
        ports = free_ports(2)
        for job in ("ps", "worker"):
            server = subprocess.Popen(
                [PENSTOCK, "server", "--job_name=" + job, "--task_index=0",
                 "--ps_hosts=127.0.0.1:%d" % ports[0], "--worker_hosts=127.0.0.1:%d" % ports[1]],
                stdout=subprocess.PIPE, text=True)
            self.addCleanup(server.stdout.close)
            self.addCleanup(server.wait, 60)
            self.addCleanup(server.terminate)
            self.assertIn("serves at", server.stdout.readline())
        self.train(self.session("grpc://127.0.0.1:%d" % ports[1], graph_file("cluster")))

    def managed(self, values, shape, strides=None):
        """Returns a DLPack tensor around a Python buffer, and a list that counts its deletions."""
        buffer = (ctypes.c_float * len(values))(*values)
        dims = (LONG * len(shape))(*shape)
        steps = (LONG * len(strides))(*strides) if strides else None
        deleted = []
        managed = DLManagedTensor(
            DLTensor(ctypes.addressof(buffer), 1, 0, len(shape), 2, 32, 1, dims, steps, 0), None,
            DELETER(deleted.append))
        # keeps the buffers alive until the test ends
        self.addCleanup(lambda: (buffer, dims, steps))
        return managed, buffer, deleted

    def test_dlpack_in_and_out_without_a_copy(self):
        managed, buffer, deleted = self.managed([1, 2, 3, 4, 5, 6], [3, 2], [2, 1])
        x = P()
        check(ps.PS_TensorFromDLPack(ctypes.byref(managed), ctypes.byref(x)))
        self.assertEqual(ps.PS_TensorData(x), ctypes.addressof(buffer))
        out = ctypes.POINTER(DLManagedTensor)()
        check(ps.PS_TensorToDLPack(x, ctypes.byref(out)))
        self.assertEqual(out.contents.tensor.data, ctypes.addressof(buffer))
        self.assertEqual(out.contents.tensor.shape[:2], [3, 2])
        session = self.session("", graph_file("local"))
        session.run(targets=["init"])
        zeros = session.run({"x": x}, ["prediction"])[0]
        self.assertEqual(values_of(zeros), [0, 0, 0])
        ps.PS_DeleteTensor(zeros)
        ps.PS_DeleteTensor(x)
        self.assertEqual(len(deleted), 0, "the DLPack tensor that was given out still lives")
        out.contents.deleter(ctypes.cast(out, P))
        self.assertEqual(len(deleted), 1)

    def test_a_variable_does_not_write_the_callers_memory(self):
        managed, buffer, deleted = self.managed([5, 7], [2, 1])
        start = P()
        check(ps.PS_TensorFromDLPack(ctypes.byref(managed), ctypes.byref(start)))
        session = self.session("", graph_file("local"))
        session.run({"zeros": start}, targets=["init"])  # now the variable uses the memory
        ps.PS_DeleteTensor(start)
        self.assertEqual(len(deleted), 0, "the variable has no copy yet")
        feeds = {"x": floats([2, 2], [1, 0, 0, 1]), "y": floats([2, 1], [3, -1])}
        session.run(feeds, targets=["train"])
        w = session.run(fetches=["w/value"])[0]
        self.assertEqual(values_of(w), [4, 3])
        self.assertEqual(list(buffer), [5, 7])
        self.assertEqual(len(deleted), 1, "given back: the variable has memory of its own")
        for tensor in (w, *feeds.values()):
            ps.PS_DeleteTensor(tensor)

    def test_dlpack_that_is_refused_stays_the_callers(self):
        managed, _, deleted = self.managed([1, 2, 3, 4], [2, 2], [1, 2])
        x = P()
        with self.assertRaisesRegex(RuntimeError, "stride 2 in dimension 1, expected 1"):
            check(ps.PS_TensorFromDLPack(ctypes.byref(managed), ctypes.byref(x)))
        managed.tensor.strides, managed.tensor.device_type = None, 2
        with self.assertRaisesRegex(RuntimeError, "expected CPU memory"):
            check(ps.PS_TensorFromDLPack(ctypes.byref(managed), ctypes.byref(x)))
        self.assertEqual((deleted, x.value), ([], None))

    @unittest.skipUnless(importlib.util.find_spec("numpy"), "there is no numpy")
    def test_numpy_reads_what_was_fetched(self):
        import numpy as np  # pylint: disable=import-outside-toplevel
        managed, _, _ = self.managed([1, 2, 3, 4], [2, 2])
        x = P()
        check(ps.PS_TensorFromDLPack(ctypes.byref(managed), ctypes.byref(x)))
        new_capsule = ctypes.pythonapi.PyCapsule_New
        new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [P, S, P]

        class Fetched:
            def __dlpack__(self, **_):
                out = P()
                check(ps.PS_TensorToDLPack(x, ctypes.byref(out)))
                return new_capsule(out, b"dltensor", None)

            def __dlpack_device__(self):
                return (1, 0)

        self.assertEqual(np.from_dlpack(Fetched()).tolist(), [[1, 2], [3, 4]])
        ps.PS_DeleteTensor(x)

    def test_loads_an_op_library(self):
        check(ps.PS_LoadLibrary(CUBE_ROOT.encode()))

        def field(number, content):
            return bytes([number << 3 | 2, len(content)]) + content

        def node(name, op, inputs, attr):
            kind = field(5, field(1, attr) + field(2, b"\x30\x01"))  # a type: DT_FLOAT
            return field(1, field(1, name) + field(2, op) +
                         b"".join(field(3, one) for one in inputs) + kind)

        session = self.session("", node(b"x", b"Placeholder", [], b"dtype") +
                               node(b"y", b"CubeRoot", [b"x"], b"T"))
        x = floats([2], [27, -8])
        y = session.run({"x": x}, ["y"])[0]
        self.assertEqual(values_of(y), [3, -2])
        ps.PS_DeleteTensor(x)
        ps.PS_DeleteTensor(y)


if __name__ == "__main__":
    unittest.main(verbosity=2)
