# SPDX-License-Identifier: Apache-2.0
"""Sample calls of ops: those that //tests/conformance:export_samples writes, and a few that it
cannot write."""

import dataclasses

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

v1 = tf.compat.v1


@dataclasses.dataclass
class Sample:
    """A call that should work. For inputs that are variables, `inputs` has their values."""
    op: str
    label: str
    inputs: list  # arrays, in order
    groups: list  # number of inputs for each argument of the op
    variables: list  # for each input: True if it is the value of a variable
    attrs: dict  # the AttrValues by name

    @property
    def definition(self):
        return op_def_registry.get(self.op)

    def with_inputs(self, inputs):
        return dataclasses.replace(self, inputs=list(inputs))

    def with_attr(self, name, value):
        return dataclasses.replace(self, attrs={**self.attrs, name: value})

    def types(self):
        """Returns a text such as "T=float Tidx=int32"; "any" if the op has no type attributes."""
        names = [a.name for a in self.definition.attr if a.type == "type"]
        return " ".join("%s=%s" % (name, tf.as_dtype(self.attrs[name].type).name)
                        for name in names if name in self.attrs) or "any"


def _groups(names):
    counts = []
    for name in names:
        argument = int(name[len("arg"):].split("_")[0])
        counts += [0] * (argument + 1 - len(counts))
        counts[argument] += 1
    return counts


def _sample(graph):
    *constants, node = graph.node
    if any(c.attr["dtype"].type == tf.variant.as_datatype_enum for c in constants):
        # clients cannot feed variants; tests/interop/tensor_lists.py makes them from other tensors
        return None
    sample = Sample(op=node.op, label=node.name.split()[1],
                    inputs=[tf.make_ndarray(c.attr["value"].tensor) for c in constants],
                    groups=_groups([c.name for c in constants]),
                    variables=["_variable" in c.attr for c in constants], attrs=dict(node.attr))
    return complete(sample) if sample.definition else None


def complete(sample):
    """Sets the attributes that the inputs determine, and seeds, so that random ops repeat."""
    attrs, inputs = dict(sample.attrs), iter(zip(sample.inputs, sample.variables))
    definition = sample.definition
    for i, argument in enumerate(definition.input_arg):
        values = [next(inputs) for _ in range(sample.groups[i] if i < len(sample.groups) else 0)]
        types = [tf.as_dtype(value.dtype).as_datatype_enum for value, _ in values]
        if argument.number_attr:
            attrs[argument.number_attr] = tf.compat.v1.AttrValue(i=len(values))
        if argument.type_list_attr:
            attrs[argument.type_list_attr] = v1.AttrValue(list=v1.AttrValue.ListValue(type=types))
        elif argument.type_attr and types:
            attrs[argument.type_attr] = v1.AttrValue(type=types[0])
    for attr in definition.attr:
        if attr.name in ("seed", "seed2") and attr.type == "int":
            attrs[attr.name] = v1.AttrValue(i=5)
        elif attr.name not in attrs and attr.HasField("default_value"):
            attrs[attr.name] = attr.default_value
    return dataclasses.replace(sample, attrs=attrs)


# The executor itself runs these ops, in loops and conditionals; Abort ends the process.
ONLY_IN_GRAPHS = {"Abort", "Enter", "Exit", "LoopCond", "Merge", "NextIteration", "Switch",
                  "RefEnter", "RefExit", "RefMerge", "RefNextIteration", "RefSwitch"}


def _runs_alone(sample):
    """Returns False for ops on queues and similar resources, because the sample would have a
    variable."""
    handles = [argument.is_ref and argument.type == tf.string.as_datatype_enum
               for argument in sample.definition.input_arg]
    return sample.op not in ONLY_IN_GRAPHS and not any(handles)


def read_samples(path):
    """Returns the samples by op, for the ops that both sides have."""
    samples = {}
    for record in v1.io.tf_record_iterator(path):
        sample = _sample(v1.GraphDef.FromString(record))
        if sample is not None and _runs_alone(sample):
            samples.setdefault(sample.op, []).append(sample)
    return samples


def cast(array, dtype):
    """Casts an array to a NumPy type that TensorFlow knows, if possible."""
    wanted = tf.as_dtype(dtype)
    if wanted in (tf.string, tf.variant, tf.resource) or array.dtype == object:
        return None
    plain = array.view(array.dtype[0]) if array.dtype.names else array
    target = wanted.as_numpy_dtype
    fields = np.dtype(target).names
    base = np.dtype(target)[0] if fields else target
    with np.errstate(all="ignore"):
        made = plain.astype(base)
    return made.view(target) if fields else made
