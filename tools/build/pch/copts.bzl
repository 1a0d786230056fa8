# SPDX-License-Identifier: Apache-2.0
"""The ways of compiling a file, and their flags. Each way has its own precompiled header."""

PCH_COPTS = {
    "library": [],
    # Vectorises loops, and does without two guarantees of floating-point numbers that no kernel
    # needs.
    "kernel": [
        "-O3",
        # Ignores the flags of floating-point exceptions: no code reads them, and keeping them
        # prevents the vectorisation of loops.
        "-fno-trapping-math",
        # Multiplies complex numbers without checking (NaN, NaN) for a hidden infinity.
        "-fcx-fortran-rules",
    ],
    "test": ["-O1"],
}
