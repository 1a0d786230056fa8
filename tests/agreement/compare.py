# SPDX-License-Identifier: Apache-2.0
"""Compares the results of two sides: exactly, except for floating-point numbers."""

import numpy as np

# The last bits of these types depend on the order of additions and on the implementation of
# functions such as exp. TensorFlow rounds 16-bit numbers after each operation inside an op,
# Penstock only at the op's end.
TOLERANCES = {"float16": 1e-2, "bfloat16": 5e-2, "float32": 2e-5, "float64": 1e-10,
              "complex64": 2e-5, "complex128": 1e-10}

# Vectors from these ops are determined only up to a factor of absolute value one. If the vectors
# are not requested, TensorFlow returns an uninitialised scalar, and Penstock an empty tensor, as
# the shape functions of both say.
UP_TO_PHASE = ("SelfAdjointEig", "Svd", "Qr")

# TensorFlow computes these in float, even if the type is double.
IN_FLOAT = ("CTCBeamSearchDecoder", "CTCLoss", "CropAndResizeGradImage", "ResizeBicubicGrad",
            "ResizeBilinearGrad")


def _parts(array):
    if array.dtype.kind == "c":
        return [array.real, array.imag]
    return [array.astype(np.float64)]


def _scale(array):
    sizes = [np.abs(part[np.isfinite(part)]) for part in _parts(array)]
    return max((float(size.max()) for size in sizes if size.size), default=0.0)


def _close(ours, theirs, tolerance, scale):
    with np.errstate(all="ignore"):
        for a, b in zip(_parts(ours), _parts(theirs)):
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            near = np.abs(a - b) <= tolerance * np.maximum(np.abs(b), scale)
            near &= np.isfinite(b)  # infinity is equal only to itself
            wrong = ~(same | near)
            if wrong.any():
                return int(np.argmax(wrong.reshape(-1)))
    return None


def _tolerance(op, dtype):
    return TOLERANCES["float32" if op in IN_FLOAT and dtype == "float64" else dtype]


def difference(op, ours, theirs):
    """Returns how two lists of arrays differ; "" if they do not."""
    if len(ours) != len(theirs):
        return "%d outputs, TensorFlow's %d" % (len(ours), len(theirs))
    if op.startswith("FusedBatchNorm") and theirs[0].dtype == np.float16:
        # The other outputs are unused: TensorFlow leaves them uninitialised, or gives them other
        # shapes than for float.
        ours, theirs = ours[:3], theirs[:3]
    for i, (a, b) in enumerate(zip(map(np.asarray, ours), map(np.asarray, theirs))):
        vectors = any(word in op for word in UP_TO_PHASE)
        if vectors and a.size == 0 and b.shape == ():
            continue
        if a.dtype != b.dtype or a.shape != b.shape:
            return "output %d: %s%s, TensorFlow's %s%s" % (i, a.dtype, a.shape, b.dtype, b.shape)
        if a.dtype.name in TOLERANCES:
            if vectors:
                a, b = np.abs(a), np.abs(b)
            # If summands cancel, the tolerance depends on the size of the summands.
            wrong = _close(a, b, _tolerance(op, a.dtype.name), max(1e-6, min(_scale(b), 1e4)))
        else:
            equal = a == b
            wrong = None if np.all(equal) else int(np.argmin(np.asarray(equal).reshape(-1)))
        if wrong is not None:
            return "output %d [%d]: %r, TensorFlow's %r" % (i, wrong, a.reshape(-1)[wrong],
                                                          b.reshape(-1)[wrong])
    return ""
