#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that every op agrees with TensorFlow's in a few cases, unless DIFFERENCES.md explains why
not: a short run of tools/op_agreement."""

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import harness  # noqa: E402, F401  (goes on in a Python that has TensorFlow, or skips)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "agreement"))
import agree  # noqa: E402

if __name__ == "__main__":
    sys.exit(agree.run(
        argparse.Namespace(ops=sys.argv[1:] or ["*"], quick=True, samples=None, matrix=None,
                           unexplained=None),
        os.environ["PENSTOCK"], "tests/conformance/export_samples"))
