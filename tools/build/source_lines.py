# SPDX-License-Identifier: Apache-2.0
"""Checks that the functions of client/ that add nodes take the line of their caller.

Errors of a node name the line of the program that made it (client/ops/line_scope.h). A function
that adds nodes takes a LocatedOutput, LocatedOutputs or LocatedSink, or a SourceLine.
"""

import re

# Folders whose headers are not for programs, or whose functions record lines in another way.
SKIPPED = ("client/c/", "client/examples/", "client/testing/", "client/summary/testing/")
# Functions that return tensors but add no node, or whose nodes already have a line.
EXEMPT = {
    "client/variable.h": {"handle", "Read", "initializer", "IsInitialized", "operator Output"},
    "client/embedding/partitioned_variable.h": {"Read", "initializer", "operator Output"},
    "client/optimizer.h": {"Like", "tensor"},
    "client/tensor_array.h": {"At"},  # the array with another flow
    "client/dataset_node.h": {"Value", "Number", "Text"},  # the line of the DatasetNode
    "client/started_step.h": {"get"},
    "client/summary/summary_hook.h": {"ExtraFetches"},
    "client/sync/bounded_staleness.h": {"ExtraFetches"},
    "client/chief_hook.h": {"ExtraFetches"},
    # CollectiveReplicas::Average calls BeginUpdate, and has the line of its caller.
    "client/allreduce/elastic_group.h": {"BeginUpdate", "ExtraFetches"},
    "client/embedding/table_view.h": {"LookupSparse"},  # called by EmbeddingLookupSparse
}
_TENSORS = re.compile(
    r"^(?:static |explicit |\[\[nodiscard\]\] )*"
    r"(?:Output|Outputs|Gradient|TensorArray|IdLists|RnnOutputs|Towers|Accumulation|RecordOutputs|"
    r"BucketedBatch|ClippedGradients|LossGradients|Metric|Training|std::vector<VariableGradient>|"
    r"std::vector<Gradient>)\s+(operator\(\)|\w+)\((.*)\)")
_LINE = re.compile(r"\bSourceLine\b|\bLine line\b|\bLocated(?:Output|Outputs|Sink)\b")


def _declarations(text):
    """Yields (line number, text) of each declaration outside of private and protected parts."""
    hidden, depth, hidden_depth, begin, words = False, 0, 0, None, []
    for number, line in enumerate(text.split("\n"), 1):
        code = line.split("//")[0].strip()
        access = re.match(r"(public|private|protected):", code)
        if access:
            hidden, hidden_depth = access.group(1) != "public", depth
            continue
        if not code or code.startswith("#"):
            continue
        if begin is None:
            begin = number
        words.append(code)
        depth += code.count("{") - code.count("}")
        if hidden and depth < hidden_depth:
            hidden = False
        statement = " ".join(words)
        if code.endswith((";", "{", "}")) and statement.count("(") == statement.count(")"):
            if not hidden:
                yield begin, statement
            begin, words = None, []


def check(path, text):
    """Returns (line, message) for each function of the header that takes no line."""
    if not path.startswith("client/") or not path.endswith(".h") or path.startswith(SKIPPED):
        return []
    found = []
    for number, statement in _declarations(text):
        match = _TENSORS.match(statement)
        if not match or _LINE.search(statement) or match.group(1) in EXEMPT.get(path, ()):
            continue
        accessor = not match.group(2).strip() and re.search(r"\) const \{ return \w+_?;", statement)
        if not accessor:
            found.append((number, f"{match.group(1)} adds nodes without the line of its caller"))
    return found
