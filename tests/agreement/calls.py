# SPDX-License-Identifier: Apache-2.0
"""Runs one call of an op on both sides: a graph with that node, in a TensorFlow session in this
process, and in the unmodified client's session on a Penstock server."""

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
TIMEOUT_MS = 10_000
# The timeout of a second attempt, if one side has ended in time and the other one has not: on a
# machine that is busy with other tests, a step may take long.
SECOND_TIMEOUT_MS = 60_000
# A GraphDef version before any op was removed.
OLD_VERSION = 0
UNFETCHABLE = (tf.resource, tf.variant)


class NotBuilt(Exception):
    """Raised if the client itself refuses the graph, so that neither side gets it."""


def _placeholder(graph, name, dtype):
    graph.node.add(name=name, op="Placeholder").attr["dtype"].type = dtype


def _add_variable(graph, k, value, dtype, ref):
    shape = v1.TensorShape(value.shape).as_proto()
    variable = graph.node.add(name="var%d" % k, op="VariableV2" if ref else "VarHandleOp")
    variable.attr["dtype"].type = dtype
    variable.attr["shape"].CopyFrom(v1.AttrValue(shape=shape))
    variable.attr["shared_name"].s = b"var%d" % k
    init = graph.node.add(name="init%d" % k, op="Assign" if ref else "AssignVariableOp",
                          input=["var%d" % k, "in%d" % k])
    init.attr["T" if ref else "dtype"].type = dtype
    if ref:
        graph.node.add(name="read%d" % k, op="Identity", input=["var%d" % k]).attr["T"].type = dtype
    else:
        read = graph.node.add(name="read%d" % k, op="ReadVariableOp", input=["var%d" % k])
        read.attr["dtype"].type = dtype


def _imported(graph):
    for version in (tf.version.GRAPH_DEF_VERSION, OLD_VERSION):
        graph.versions.producer = version
        imported = tf.Graph()
        try:
            with imported.as_default():
                v1.import_graph_def(graph, name="")
            return imported
        except (ValueError, tf.errors.OpError) as error:
            if "not available in GraphDef version" not in str(error) or version == OLD_VERSION:
                raise NotBuilt(str(error).splitlines()[0]) from error


class Call:
    """A graph with the node of a sample, and placeholders for its inputs."""

    def __init__(self, sample):
        self.sample = sample
        definition = sample.definition
        refs = [a.is_ref for a, n in zip(definition.input_arg, sample.groups) for _ in range(n)]
        graph = v1.GraphDef()
        node = v1.NodeDef(name="node", op=sample.op)
        for k, value in enumerate(sample.inputs):
            dtype = tf.as_dtype(value.dtype).as_datatype_enum
            _placeholder(graph, "in%d" % k, dtype)
            if sample.variables[k]:
                _add_variable(graph, k, value, dtype, refs[k])
            node.input.append(("var%d" if sample.variables[k] else "in%d") % k)
        known = {attr.name for attr in definition.attr}
        for name, value in sample.attrs.items():
            if name in known:
                node.attr[name].CopyFrom(value)
        graph.node.append(node)
        self.graph = _imported(graph)
        outputs = self.graph.get_operation_by_name("node").outputs
        handles = [o.is_ref and o.type == tf.string.as_datatype_enum
                   for o in definition.output_arg]
        fetched = outputs and not any(handles) and all(
            t.dtype.base_dtype not in UNFETCHABLE for t in outputs)
        self.fetches = [t.name for t in outputs] if fetched else ["node"]
        self.fetched = bool(fetched)
        self.held = [k for k, variable in enumerate(sample.variables) if variable]

    def run(self, session, inputs, timeout_ms):
        """Returns the outputs, then the values of variables; raises an OpError if the step
        fails."""
        options = v1.RunOptions(timeout_in_ms=timeout_ms)

        def run(fetches, feeds):
            return session.run(fetches, {"in%d:0" % k: inputs[k] for k in feeds}, options=options)

        if self.held:
            run(["init%d" % k for k in self.held], self.held)
        given = [k for k in range(len(inputs)) if k not in self.held]
        found = run(self.fetches, given)
        if self.held:
            found = found + run(["read%d:0" % k for k in self.held], [])
        return [np.asarray(a) for a in found if a is not None]


def _config():
    config = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    return config


class Sides:
    """The sessions of one call on both sides."""

    def __init__(self, call, target):
        self.call = call
        config = _config()
        config.experimental.share_session_state_in_clusterspec_propagation = False
        config.isolate_session_state = True
        self.theirs = v1.Session(graph=call.graph, config=_config())
        self.ours = v1.Session(target, graph=call.graph, config=config)

    def close(self):
        for session in (self.theirs, self.ours):
            try:
                session.close()
            except tf.errors.OpError:
                pass

    def run(self, inputs):
        """Runs the call on Penstock, then on TensorFlow. Returns for each (values, None) or (None,
        error)."""
        sessions = (self.ours, self.theirs)
        results = [self._run(session, inputs, TIMEOUT_MS) for session in sessions]
        late = [isinstance(error, tf.errors.DeadlineExceededError) for _, error in results]
        if sum(late) == 1:
            slow = late.index(True)
            results[slow] = self._run(sessions[slow], inputs, SECOND_TIMEOUT_MS)
        return results

    def _run(self, session, inputs, timeout_ms):
        try:
            return self.call.run(session, inputs, timeout_ms), None
        except tf.errors.OpError as error:
            return None, error
        except (TypeError, ValueError) as error:
            return None, tf.errors.InvalidArgumentError(None, None, "client: %s" % error)
