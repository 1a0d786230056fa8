# SPDX-License-Identifier: Apache-2.0
"""The ways of compiling a file, with a precompiled header for each."""

PCH_COPTS = {
    "library": [],
    # Loops vectorised, and no attention to what nobody looks at.
    "kernel": [
        "-O3",
        # Floating-point exceptions: nobody reads the flags, and they keep loops from being
        # vectorised.
        "-fno-trapping-math",
        # Complex products without the search for infinities hidden in (NaN, NaN).
        "-fcx-fortran-rules",
    ],
    "test": ["-O1"],
}
