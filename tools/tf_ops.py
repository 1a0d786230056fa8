# SPDX-License-Identifier: Apache-2.0
"""A stand-in for tf.load_op_library, for op libraries of Penstock (docs/custom-ops.md).

    from tf_ops import load_op_library    # was: load_op_library = tf.load_op_library
                                          # from penstock.tf_ops, where the wheel is installed
    cube_root_op = load_op_library("./libcube_root_op.so")
    y = cube_root_op.cube_root(x)         # builds graph, for sessions on a Penstock cluster

TensorFlow can build nodes only of ops in its own registry. So this module registers the ops there,
with the names, types and attributes from `penstock ops --json`, but without kernels. TensorFlow's
own sessions cannot run the ops, and it does not know the shapes of their outputs. For tf.gradients,
register a gradient in Python: @tf.RegisterGradient("CubeRoot").

The tasks must load the library, too: `penstock server --load=...`. Tasks that tf_server.Server
starts later do so automatically, because the library is added to PENSTOCK_LOAD.
"""

import ctypes
import functools
import json
import os
import re
import subprocess
import types

import tensorflow as tf
from tensorflow.python.framework import op_def_library, op_def_registry

if __package__:  # in the wheel
    from .tf_server import find_program
else:
    from tf_server import find_program

_ADD = ("Attr", "Input", "Output")

# TensorFlow ends the process if a registered name does not match these patterns.
_OP_NAME = re.compile(r"[A-Z][A-Za-z0-9_]*(>[A-Z][A-Za-z0-9_]*)*|_.*")
_NAMES = {"attrs": re.compile("[A-Za-z][A-Za-z0-9_]*"), "inputs": re.compile("[a-z][a-z0-9_]*"),
          "outputs": re.compile("[a-z][a-z0-9_]*")}


@functools.lru_cache(maxsize=None)
def _tensorflow():
    """Returns TensorFlow's C interface for registering ops (tensorflow/c/ops.h)."""
    library = ctypes.CDLL(os.path.join(tf.sysconfig.get_lib(), "libtensorflow_framework.so.2"))
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    for name, result, arguments in (
            ("TF_NewStatus", pointer, []), ("TF_DeleteStatus", None, [pointer]),
            ("TF_GetCode", ctypes.c_int, [pointer]), ("TF_Message", text, [pointer]),
            ("TF_NewOpDefinitionBuilder", pointer, [text]),
            ("TF_OpDefinitionBuilderSetIsStateful", None, [pointer, ctypes.c_bool]),
            ("TF_RegisterOpDefinition", None, [pointer, pointer]),
            *(("TF_OpDefinitionBuilderAdd" + what, None, [pointer, text]) for what in _ADD)):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _check(spec):
    """Raises an error if registering the op would end the process."""
    if not _OP_NAME.fullmatch(spec["name"]):
        raise ValueError("TensorFlow takes no op of the name '%s', expected one as CubeRoot" %
                         spec["name"])
    seen = set()
    for what, pattern in _NAMES.items():
        for part in spec[what]:
            name = part.split(":")[0]
            if not pattern.fullmatch(name):
                raise ValueError("op %s: TensorFlow takes no name '%s' among the %s, expected %s" %
                                 (spec["name"], name, what, pattern.pattern))
            if name in seen:
                raise ValueError("op %s: TensorFlow takes the name '%s' only once" %
                                 (spec["name"], name))
            seen.add(name)
    if op_def_registry.get(spec["name"]) is not None:
        raise RuntimeError("TensorFlow has an op %s of its own" % spec["name"])


def register(spec):
    """Registers an op of `penstock ops --json`.

    RuntimeError if TensorFlow has an op of this name; ValueError if it does not accept a name in
    the spec.
    """
    _check(spec)
    library = _tensorflow()
    builder = library.TF_NewOpDefinitionBuilder(spec["name"].encode())
    for what in _ADD:
        add = getattr(library, "TF_OpDefinitionBuilderAdd" + what)
        for text in spec[what.lower() + "s"]:
            add(builder, text.encode())
    library.TF_OpDefinitionBuilderSetIsStateful(builder, spec["stateful"])
    status = library.TF_NewStatus()
    try:
        library.TF_RegisterOpDefinition(builder, status)
        if library.TF_GetCode(status):
            raise RuntimeError("TensorFlow refuses the op %s: %s" %
                               (spec["name"], library.TF_Message(status).decode()))
    finally:
        library.TF_DeleteStatus(status)


def _function_name(op):
    """Converts CubeRoot to cube_root."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", op).lower()


def _make_function(spec):
    names = [part.split(":")[0] for part in spec["inputs"] + spec["attrs"]]

    def call(*arguments, name=None, **named):
        if len(arguments) > len(names):
            raise TypeError("%s takes %s" % (call.__name__, ", ".join(names)))
        return op_def_library.apply_op(spec["name"], name=name, **dict(zip(names, arguments)),
                                       **named)

    call.__name__ = _function_name(spec["name"])
    call.__doc__ = "%s\n\nTakes %s." % (spec["doc"], ", ".join(spec["inputs"] + spec["attrs"]))
    return call


def _specs(path):
    said = subprocess.run([find_program(), "ops", "--json", "--load=" + path],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if said.returncode:
        raise RuntimeError(said.stderr.strip())
    return [spec for spec in json.loads(said.stdout) if spec["library"] == path]


_loaded = {}


def load_op_library(library_filename):
    """Returns a module with a function for each op of the library, such as cube_root(x) for
    CubeRoot.

    RuntimeError if Penstock cannot load the library, or TensorFlow has an op of the same name;
    ValueError if TensorFlow does not accept the names of an op. In these cases no op is registered.
    """
    path = os.path.realpath(library_filename)
    if path in _loaded:
        return _loaded[path]
    specs = _specs(path)
    for spec in specs:
        _check(spec)
    module = types.ModuleType(os.path.basename(path).split(".")[0])
    for spec in specs:
        register(spec)
        function = _make_function(spec)
        setattr(module, function.__name__, function)
    before = os.environ.get("PENSTOCK_LOAD")
    os.environ["PENSTOCK_LOAD"] = before + "," + path if before else path
    _loaded[path] = module
    return module
