#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that every op of TensorFlow's OpList is an op of Penstock with the same signature, unless
OPS.md explains why not."""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import harness  # noqa: E402, F401  (goes on in a Python that has TensorFlow, or skips)

import tensorflow as tf  # noqa: E402
from tensorflow.core.framework import op_def_pb2  # noqa: E402
from tensorflow.python.client import pywrap_tf_session  # noqa: E402

AGREEMENT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "agreement")
sys.path.insert(0, AGREEMENT)
import op_list  # noqa: E402

OPS_OF = (2, 21)  # the version of TensorFlow whose ops OPS.md is about
FEWEST = 1500  # a complete TensorFlow has at least this many ops


def _tensorflows_ops():
    ops = op_def_pb2.OpList()
    ops.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    return op_list.theirs(ops)


def _penstocks_ops():
    said = subprocess.run([os.environ["PENSTOCK"], "ops", "--json"], stdout=subprocess.PIPE,
                          check=True)
    return op_list.ours(json.loads(said.stdout))


def main():
    ours, theirs = _penstocks_ops(), _tensorflows_ops()
    if len(theirs) < FEWEST:
        sys.exit("TensorFlow lists %d ops, expected %d or more" % (len(theirs), FEWEST))
    # Identity allows every type that Penstock's tensors can have.
    known_types = ours["Identity"]["attrs"]["T"][2]
    rows = op_list.read_rows(os.path.join(AGREEMENT, "OPS.md"))
    older = tuple(int(n) for n in tf.__version__.split(".")[:2]) < OPS_OF
    lines = op_list.unexplained(ours, theirs, known_types, rows, older)
    print("\n".join(lines))
    print("%d ops of TensorFlow's %d are here; %d lines that OPS.md does not explain" % (
        len(ours.keys() & theirs.keys()), len(theirs), len(lines)))
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
