# SPDX-License-Identifier: Apache-2.0
"""Makes variations of a sample: other shapes, other values, other attributes."""

import itertools

import numpy as np
import tensorflow as tf

import samples

v1 = tf.compat.v1

STRINGS = [b"", b"a", b"12", b"-7.5e3", b"a\0b", b"\xff\xfe", "Ω straße 日本".encode(), b"x" * 300,
           b" two words ", b"1,2"]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 7.25, np.nan, np.inf, -np.inf, 1e-4, 300.0, -1e4]
SMALL = [-1, 0, 1, 2, 7, -3]
# Values that ops interpret as sizes must be small, so that they do not need all memory.
SIZES_MAX = 8


def is_float(array):
    return array.dtype.kind in "fc" or array.dtype.name in ("bfloat16",) or \
        array.dtype.name.startswith("float8")


def is_string(array):
    return array.dtype.kind in "OSU"


def filled(array, values):
    """Returns an array of the same shape and type that repeats these values."""
    flat = [values[i % len(values)] for i in range(array.size)]
    if is_string(array):
        made = np.empty(array.size, dtype=object)
        made[:] = flat
        return made.reshape(array.shape)
    with np.errstate(all="ignore"):
        return np.array(flat, dtype=np.float64 if is_float(array) else None).reshape(
            array.shape).astype(array.dtype)


def _plain(array):
    """Returns quantized numbers as their underlying integers."""
    return array.view(array.dtype[0]) if array.dtype.names else array


def _as(made, like):
    return made.view(like.dtype) if like.dtype.names else made


def special(array):
    """Returns values at the limits of the type."""
    if is_string(array):
        return filled(array, STRINGS)
    if is_float(array):
        info = None if array.dtype.kind == "c" else array.dtype
        most = [3e4, 6e-5] if info is not None else []
        return filled(array, FLOATS + most)
    if array.dtype.kind == "b":
        return ~array
    plain = _plain(array)
    if array.ndim <= 1 and array.size <= SIZES_MAX:
        values = [v for v in SMALL if v >= np.iinfo(plain.dtype).min]
    else:
        info = np.iinfo(plain.dtype)
        values = [info.min, info.max, 0, 1, 3, max(info.min, -5)]
    return _as(np.array([values[i % len(values)] for i in range(plain.size)],
                        dtype=plain.dtype).reshape(plain.shape), array)


def random(array, rng):
    if is_string(array) or array.dtype.kind == "b":
        return None
    if is_float(array):
        made = rng.normal(0, 5, array.shape)
        return (made + 1j * rng.normal(0, 5, array.shape) if array.dtype.kind == "c"
                else made).astype(array.dtype)
    if array.ndim == 0 or (array.ndim == 1 and array.size <= SIZES_MAX):
        return None
    low = 0 if _plain(array).dtype.kind == "u" else -100
    return _as(rng.integers(low, 100, array.shape).astype(_plain(array).dtype), array)


def _resized(array, sizes):
    """Maps the size of each dimension with `sizes`; repeats the values."""
    for axis, size in enumerate(array.shape):
        if size in sizes and (size > 0 or sizes[size] == 0):
            array = np.take(array, np.arange(sizes[size]) % max(size, 1), axis=axis)
    return array


def _is_size(array):
    return array.dtype.kind in "iu" and array.ndim <= 1 and array.size <= SIZES_MAX


def shape_variations(inputs):
    """Yields names and inputs of other shapes."""
    if all(array.size for array in inputs):
        yield "scalars", [array.reshape(-1)[0].reshape(()) if not is_string(array)
                          else np.array(array.reshape(-1)[0], dtype=object) for array in inputs]
    sizes = sorted({d for array in inputs for d in array.shape})
    for size in sizes:
        yield "empty %d" % size, [_resized(array, {size: 0}) for array in inputs]
    larger = {size: 5 * size + 2 for size in sizes if size > 1}
    yield "large", [array if _is_size(array) else _resized(array, larger) for array in inputs]
    if len(inputs) > 1:
        yield "large all", [_resized(array, larger) for array in inputs]
    for i, array in enumerate(inputs):
        def put(other, i=i):
            return inputs[:i] + [other] + inputs[i + 1:]
        yield "rank up %d" % i, put(array[np.newaxis])
        if array.ndim:
            yield "rank down %d" % i, put(array[0] if array.shape[0] else array.reshape(
                array.shape[1:] if array.size == np.prod(array.shape[1:]) else array.shape))
            yield "ones %d" % i, put(array[tuple(slice(0, 1) for _ in array.shape)])
            yield "shorter %d" % i, put(array[..., :-1])
            yield "empty all %d" % i, put(array[tuple(slice(0, 0) for _ in array.shape)])


def value_variations(inputs, rng):
    yield "special all", [special(array) for array in inputs]
    for i, array in enumerate(inputs):
        for name, made in (("special", special(array)), ("random", random(array, rng)),
                           ("zero", np.zeros_like(array) if not is_string(array) else None)):
            if made is not None:
                yield "%s %d" % (name, i), inputs[:i] + [made] + inputs[i + 1:]


def input_variations(sample, seed=1):
    """Yields names and inputs for the same node."""
    rng = np.random.default_rng(seed)
    inputs = [np.asarray(array) for array in sample.inputs]
    yield "sample", inputs
    if inputs:
        yield from itertools.chain(shape_variations(inputs), value_variations(inputs, rng))


def _other_attr_values(attr, value):
    if attr.type == "bool":
        return [v1.AttrValue(b=not value.b)]
    if attr.type == "int":
        return [v1.AttrValue(i=i) for i in sorted({0, -1, 1, value.i + 1, 100} - {value.i})]
    if attr.type == "float":
        return [v1.AttrValue(f=f) for f in (0.0, -1.5, 2 * value.f + 0.25)]
    if attr.type == "string":
        allowed = attr.allowed_values.list.s
        return [v1.AttrValue(s=s) for s in list(allowed) or [b"", b"odd"] if s != value.s]
    if attr.type == "list(int)":
        ints = list(value.list.i)
        others = [[], ints[::-1], [i + 1 for i in ints], ints + [1], [-i for i in ints]]
        return [v1.AttrValue(list=v1.AttrValue.ListValue(i=o)) for o in others if o != ints]
    if attr.type == "shape":
        shapes = [v1.TensorShape([]).as_proto(), v1.TensorShape(None).as_proto()]
        return [v1.AttrValue(shape=s) for s in shapes if s != value.shape]
    return []


def attr_variations(sample):
    """Yields names and samples with one attribute changed."""
    determined = {n for a in sample.definition.input_arg
                  for n in (a.number_attr, a.type_attr, a.type_list_attr) if n}
    for attr in sample.definition.attr:
        if attr.name in determined or attr.name in ("container", "shared_name", "seed", "seed2"):
            continue
        if attr.name not in sample.attrs:
            continue
        for i, other in enumerate(_other_attr_values(attr, sample.attrs[attr.name])):
            yield "%s #%d" % (attr.name, i), sample.with_attr(attr.name, other)


def type_variations(sample):
    """Yields samples for the types that TensorFlow's definition allows, if such values exist."""
    for argument in sample.definition.input_arg:
        attr = argument.type_attr
        if not attr or argument.is_ref or any(sample.variables):
            continue
        definition = next(a for a in sample.definition.attr if a.name == attr)
        for enum in definition.allowed_values.list.type:
            inputs = _cast_inputs(sample, attr, tf.as_dtype(enum))
            if inputs is not None:
                yield samples.complete(sample.with_inputs(inputs).with_attr(
                    attr, v1.AttrValue(type=enum)))


def _cast_inputs(sample, attr, dtype):
    inputs, made = iter(sample.inputs), []
    for argument, count in zip(sample.definition.input_arg, sample.groups):
        for _ in range(count):
            array = next(inputs)
            made.append(samples.cast(array, dtype) if argument.type_attr == attr else array)
    return None if any(m is None for m in made) else made
