# SPDX-License-Identifier: Apache-2.0
"""How kernels are compiled: loops vectorised, and no attention to what nobody looks at."""

KERNEL_COPTS = select({
    "//tools/build:clang": [],  # fuzzing: what is not known to it, and takes long to compile
    "//conditions:default": [
        "-O3",
        # Floating-point exceptions: nobody reads the flags, and they keep loops from being
        # vectorised.
        "-fno-trapping-math",
        # Complex products without the search for infinities hidden in (NaN, NaN).
        "-fcx-fortran-rules",
    ],
})
