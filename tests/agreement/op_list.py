# SPDX-License-Identifier: Apache-2.0
"""Compares the signatures of two lists of ops: TensorFlow's OpList and `penstock ops --json`.

Both are converted to dicts of one form: inputs and outputs as "name: type" in order; attributes by
name as (kind, minimum, allowed, default). `allowed` is a set, or None if any value is allowed; the
other values are spelled as in Penstock.
"""

import fnmatch
import re

from tensorflow.core.framework import types_pb2


def _type_name(number):
    return types_pb2.DataType.Name(number)[len("DT_"):].lower()


def _quoted(text):
    return "'%s'" % text


def _their_argument(arg):
    kind = arg.type_attr or arg.type_list_attr or _type_name(arg.type)
    if arg.number_attr:
        kind = "%s * %s" % (arg.number_attr, kind)
    return "%s: %s" % (arg.name, "Ref(%s)" % kind if arg.is_ref else kind)


def _their_shape(shape):
    if shape.unknown_rank:
        return "{ unknown_rank: true }"
    return "{%s }" % "".join(" dim { size: %d }" % dim.size for dim in shape.dim)


def _their_list(values):
    items = [_quoted(s.decode()) for s in values.s] + ["%d" % i for i in values.i]
    items += ["%g" % f for f in values.f] + [str(b).lower() for b in values.b]
    items += ["DT_" + _type_name(t).upper() for t in values.type]
    items += [_their_shape(shape) for shape in values.shape]
    return "[%s]" % ", ".join(items)


def _their_default(attr):
    if not attr.HasField("default_value"):
        return None
    value = attr.default_value
    spell = {
        "s": lambda: _quoted(value.s.decode("unicode_escape")),
        "i": lambda: "%d" % value.i,
        "f": lambda: "%g" % value.f,
        "b": lambda: str(value.b).lower(),
        "type": lambda: "DT_" + _type_name(value.type).upper(),
        "shape": lambda: _their_shape(value.shape),
        "list": lambda: _their_list(value.list),
    }
    kind = value.WhichOneof("value")
    return spell[kind]() if kind in spell else None  # Penstock has no spelling for tensors


def _their_attribute(attr):
    allowed = None
    if attr.HasField("allowed_values"):
        allowed = {_type_name(t) for t in attr.allowed_values.list.type}
        allowed |= {_quoted(s.decode()) for s in attr.allowed_values.list.s}
    minimum = attr.minimum if attr.has_minimum else None
    return attr.type, minimum, allowed, _their_default(attr)


def theirs(op_list):
    """Converts TensorFlow's OpList."""
    return {op.name: {"input": [_their_argument(arg) for arg in op.input_arg],
                      "output": [_their_argument(arg) for arg in op.output_arg],
                      "attrs": {attr.name: _their_attribute(attr) for attr in op.attr}}
            for op in op_list.op}


_ATTRIBUTE = re.compile(
    r"(?P<name>\w+): (?P<list>list\()?"
    r"(?:(?P<kind>\w+)|\{(?P<allowed>[^}]*)\})\)?(?: >= (?P<min>-?\d+))?(?: = (?P<default>.*))?",
    re.DOTALL)


def _our_attribute(text):
    # `penstock ops` escapes tabs and newlines; TensorFlow's OpList has them unescaped.
    found = _ATTRIBUTE.fullmatch(text.replace("\\t", "\t").replace("\\n", "\n"))
    if not found:
        raise ValueError("penstock ops --json: no attribute is spelled '%s'" % text)
    allowed, kind = found["allowed"], found["kind"]
    if allowed is not None:
        allowed = set(allowed.split(", "))
        kind = "string" if min(allowed).startswith("'") else "type"
    minimum = int(found["min"]) if found["min"] else None
    return found["name"], ("list(%s)" % kind if found["list"] else kind, minimum, allowed,
                           found["default"])


def ours(specs):
    """Converts the output of `penstock ops --json`."""
    return {spec["name"]: {"input": spec["inputs"], "output": spec["outputs"],
                           "attrs": dict(map(_our_attribute, spec["attrs"]))}
            for spec in specs}


def _compare_arguments(what, mine, other):
    for i, (a, b) in enumerate(zip(mine, other)):
        if a != b:
            yield "%s %d is '%s', TensorFlow's '%s'" % (what, i, a, b)
    if len(mine) != len(other):
        yield "%d %ss, TensorFlow's %d" % (len(mine), what, len(other))


def _compare_attributes(name, mine, other, known_types):
    """Yields the differences: `mine` may allow more values than `other`, but not fewer."""
    if mine[0] != other[0]:
        yield "attribute %s is of kind %s, TensorFlow's %s" % (name, mine[0], other[0])
        return
    if (mine[1] or 0) > (other[1] or 0):
        yield "attribute %s must be >= %s, TensorFlow's >= %s" % (name, mine[1], other[1])
    if mine[2] is not None:
        everything = known_types if mine[0].endswith(("type", "type)")) else {"any string"}
        wanted = everything if other[2] is None else other[2]
        lacking = (wanted & known_types if everything is known_types else wanted) - mine[2]
        if lacking:
            yield "attribute %s does not allow %s" % (name, ", ".join(sorted(lacking)))
    if mine[3] != other[3]:
        yield "attribute %s has default %s, TensorFlow's %s" % (name, mine[3], other[3])


def compare(mine, other, known_types):
    """Yields a text for each difference between the op's two signatures. Ignores types outside
    `known_types`, which Penstock's tensors cannot hold."""
    for what in ("input", "output"):
        yield from _compare_arguments(what, mine[what], other[what])
    for name in sorted(mine["attrs"].keys() | other["attrs"].keys()):
        if name.startswith("_"):
            continue  # attributes that are private to one side
        if name not in mine["attrs"]:
            yield "there is no attribute %s" % name
        elif name not in other["attrs"]:
            yield "attribute %s is unknown to TensorFlow" % name
        else:
            yield from _compare_attributes(name, mine["attrs"][name], other["attrs"][name],
                                           known_types)


class Row:
    """A row of OPS.md: differences that match its patterns are intended, for the given reason."""

    def __init__(self, ops, differences, reason):
        self.ops, self.differences, self.reason = ops, differences, reason
        self.used = set()  # the patterns of ops that have matched

    def covers(self, op, difference):
        if not any(fnmatch.fnmatchcase(difference, pattern) for pattern in self.differences):
            return False
        matching = {pattern for pattern in self.ops if fnmatch.fnmatchcase(op, pattern)}
        self.used |= matching
        return bool(matching)

    def stale(self):
        if self.reason.startswith("Until TensorFlow "):
            return []  # only older versions need the row
        return [pattern for pattern in self.ops if pattern not in self.used]


def read_rows(path):
    """Returns the rows of the file's tables: | ops | differences | reason |, with patterns in
    backquotes."""
    rows = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
            if line.startswith("| `") and len(cells) == 3:
                rows.append(Row(*(re.findall(r"`([^`]*)`", cell) for cell in cells[:2]), cells[2]))
    return rows


def unexplained(mine, other, known_types, rows, older=False):
    """Returns lines for the differences that no row explains, and for the rows that match
    nothing. `older`: `other` is of an older TensorFlow than the rows. Its clients do not send
    newer attributes, which have defaults, and it lacks the newer ops that rows are about."""
    lines = []
    for op in sorted(other):
        found = ["absent"] if op not in mine else compare(mine[op], other[op], known_types)
        for difference in found:
            if older and difference.endswith("is unknown to TensorFlow"):
                continue
            if not sum(row.covers(op, difference) for row in rows):
                lines.append("%s: %s" % (op, difference))
    for row in () if older else rows:
        for pattern in row.stale():
            lines.append("a row of the table is about nothing: `%s` (%s)" % (pattern, row.reason))
    return lines
