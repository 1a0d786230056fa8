# SPDX-License-Identifier: Apache-2.0
"""The ways of compiling a file, with a precompiled header for each."""

PCH_COPTS = {
    "library": [],
    # Vectorises loops, and gives up features of floating-point numbers that no kernel uses.
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
