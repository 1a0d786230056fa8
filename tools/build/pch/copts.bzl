# SPDX-License-Identifier: Apache-2.0
"""The ways of compiling a file, and their flags. Each way has its own precompiled header."""

PCH_COPTS = {
    "library": [],
    # Vectorises loops, and drops two guarantees about floating-point numbers that no kernel needs.
    "kernel": [
        "-O3",
        # Does not preserve the flags of floating-point exceptions: no code reads them, and
        # preserving them prevents the vectorisation of loops.
        "-fno-trapping-math",
        # Multiplies complex numbers without checking (NaN, NaN) for a hidden infinity.
        "-fcx-fortran-rules",
    ],
    "test": ["-O1"],
}
