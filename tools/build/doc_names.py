# SPDX-License-Identifier: Apache-2.0
"""Reports names in documents that do not exist: files, Bazel labels, flags, C++ names, commands of
penstock. Used by tools/tidy.

A document is an .md file. File names are checked in all of its text, other names only in code:
between backticks or in fenced blocks. A file exists if the path is relative to the root, to the
document's folder or to a folder above it, or if it is the end of a path below the document's
folder. Other names must occur in the sources as a word: in code, a string or a script, not in a
comment.
"""

import os
import pathlib
import re

import layering

# Names that a document may use although the tree does not define them: (document, or "*" for all;
# pattern of the complete name; reason). tools/tidy reports rows that no document needs.
FOREIGN = (
    ("*", r"CMakeLists\.txt|program\.cc|\./program|build/program", "a user's own program"),
    ("*", r"train\.py", "a user's own program"),
    ("docs/install.md", r"venv/bin/\w+", "a Python environment of the user's"),
    ("*", r"compile_commands\.json|steps\.json", "written by a command"),
    ("*", r"--output_base|--test_timeout", "a flag of Bazel"),
    ("docs/operations.md", r"histogram_quantile", "a function of Prometheus"),
    ("*", r"penstock/c_api\.h", "client/c/c_api.h, once installed"),
    ("SECURITY.md", r"--fail", "a flag of curl"),
    ("client/README.md", r"w/Momentum|save/Const", "nodes of a graph"),
    ("core/compiler/passes/README.md", r"NAME_test\.cc", "the file to be written"),
    ("client/optimizers/README.md", r"ResourceSparseApplyAdam", "SPARSE_UPDATE makes the name"),
    ("core/functions/README.md", r"CALL/\w+", "nodes of a graph"),
    ("docs/broken-launches.md", r"conv1/filters", "a variable in a message"),
    ("docs/adding-a-file-system.md", r"BucketEnv|OpenInBucket", "an example to be written"),
    ("docs/adding-a-transport.md", r".*pigeon(_transport\.cc|/g)?", "an example to be written"),
    ("docs/adding-a-transport.md", r"skeleton_transport\.cc|s/Skeleton/Pigeon/g",
     "in the folder that was copied"),
    ("docs/adding-an-op.md", r".*cube\.cc|CubeFn", "an example to be written"),
    ("docs/custom-ops.md", r"cube_root(_op)?\.cc|build/cube_root", "a copy in a user's folder"),
    ("docs/custom-ops.md", r"cmake_minimum_required|target_link_libraries", "CMake"),
    ("docs/gpu-build.md", r"out/gpu_check|gpu_check/run", "written by tools/gpu_check"),
    ("docs/install.md", r"task\.h|examples/least_squares", "below the folder examples, once built"),
    ("docs/install.md", r"cmake_minimum_required|target_link_libraries", "CMake"),
    ("docs/install.md", r"local_repository", "Bazel"),
    ("proto/README.md", r"(proto/tensorflow/)?x\.(proto|pb\.h)", "x stands for any"),
    ("tests/agreement/OPS.md", r"[A-Z_]\w*", "TensorFlow's ops that are not here"),
    ("tests/agreement/DIFFERENCES.md", r"ResourceApplyAdadelta", "DENSE_UPDATE makes the name"),
    ("tools/README.md", r"(shape|expm1)(_test)?\.(cc|h)", "an example of a BUILD file"),
    ("tools/README.md", r"parse_headers", "a feature of Bazel"),
    ("tools/benchmark/README.md", r"training/mlp|executor/chain/add", "names of measurements"),
    ("tools/package/README.md", r"PREFIX/bin/penstock|include/penstock", "where users install to"),
    ("tools/penstock/README.md", r"x_command\.cc", "x stands for any"),
)

TABLE = "tools/build/doc_names.py"
# Files that are not checked, because they contain names that do not exist on purpose.
UNREAD = (TABLE, "tools/build/doc_names_test.py")
# Macros of penstock.bzl that add a suffix to the name of their target.
MADE_BY_MACRO = {"penstock_fuzz": "_fuzzer"}
SOURCES = (".cc", ".h", ".cu", ".cuh", ".proto", ".py", ".bzl", ".sh", ".in", ".lds", ".BUILD")
FILE_SUFFIX = "cc|h|cu|cuh|proto|py|bzl|md|sh|txt|lds|in|json|bazel|csv"

ADDRESS = re.compile(r"\bhttps?://\S+")
FENCE = re.compile(r"^\s*```")
SPAN = re.compile(r"`([^`]+)`")
FILE = re.compile(rf"(?<![\w./:@{{}}*$~?-])((?:\.\./)*(?:[\w.{{}},-]+/)*[\w{{}},-][\w.{{}},-]*"
                  rf"\.(?:{FILE_SUFFIX}|{{[\w,]+}}))(?![\w/*-]|\.\w)")
FOLDER = re.compile(r"(?<![\w./:@{}*$~?=-])((?:[\w.-]+/)+(?:[\w-]*|\{[\w,]+\}/?))"
                    r"(?![\w./*:=$?{}-])")
LABEL = re.compile(r"(?<![\w:/])(?:@penstock)?//((?:[\w-]+/)*[\w-]+)?(:[\w./-]+|/?\.\.\.)?"
                   r"(?![\w/*])")
FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*")
MEMBER = re.compile(r"\b([A-Z]\w+)::(~?\w+)")
# Matches CamelCase of two or more words, kConstants, and snake_case.
NAME = re.compile(r"(?<![\w.:/*$%-])(k?[A-Z][a-z0-9]+[A-Z]\w*|k[A-Z]\w+|[a-z]\w*_\w+)"
                  r"(?![\w*/-]|\.\w|::)")
COMMAND = re.compile(r"^(?:\S*/)?penstock ([a-z]\w*)")
ADDED_COMMAND = re.compile(r'add_subcommand\(\s*"(\w+)"')
COMMENT = re.compile(r"^\s*//.*$|\s//\s.*$", re.MULTILINE)


def code_of(lines):
    """Yields (line, text) for each piece of code in a document."""
    fenced = False
    for number, line in enumerate(lines, 1):
        if FENCE.match(line):
            fenced = not fenced
        elif fenced:
            yield number, line
        else:
            for span in SPAN.finditer(line):
                yield number, span[1]


def alternatives(path):
    """Expands a/{b,c} to a/b and a/c."""
    braces = re.search(r"\{([^{}]*)\}", path)
    if not braces:
        return [path]
    return [found for choice in braces[1].split(",")
            for found in alternatives(path[:braces.start()] + choice + path[braces.end():])]


class Tree:
    """The files, flags, words and commands that exist in the tree."""

    def __init__(self, root):
        self.root = root
        self.files, self.folders, self.flags, self.commands = set(), set(), set(), set()
        self.words_of = {}
        self.labels = {}
        for directory, subfolders, names in os.walk(root):
            subfolders[:] = [s for s in subfolders if (s[0] != "." or s == ".ci")
                             and s != "__pycache__" and not s.startswith("bazel-")]
            folder = pathlib.Path(directory).relative_to(root)
            self.folders.add(folder.as_posix())
            for name in names:
                self.add(folder / name)
        self.words = set().union(*self.words_of.values())
        self.stems = {os.path.splitext(name)[0] for name in self.files}

    def add(self, path):
        self.files.add(path.as_posix())
        full = self.root / path
        if path.as_posix() in UNREAD:
            return
        if path.suffix not in SOURCES and path.name not in ("BUILD.bazel", ".bazelrc"):
            if path.suffix or not full.is_file() or not os.access(full, os.X_OK):
                return
        text = full.read_text(encoding="utf-8", errors="replace")
        if path.name == "BUILD.bazel":
            for rule in re.finditer(r"outs = \[([^\]]*)\]", text):
                for made in re.findall(r'"([^"]+)"', rule[1]):
                    self.files.add((path.parent / made).as_posix())
        text = COMMENT.sub("", text)
        self.words_of[path] = set(re.findall(r"\w+", text))
        self.flags |= set(FLAG.findall(text))
        self.commands |= set(ADDED_COMMAND.findall(text))

    def has_path(self, path, document):
        """Returns whether the path exists; it may lack the suffix: `worker/step_table` means .h and
        .cc."""
        path = path.rstrip("/")
        if path.startswith("bazel-bin/"):
            package, _, name = path[len("bazel-bin/"):].rpartition("/")
            if self.has_label(package, ":" + name):
                return True
            path = path[len("bazel-bin/"):]
        exists = self.files | self.folders | self.stems
        for start in (document.parent, *document.parents):
            if os.path.normpath((start / path).as_posix()) in exists:
                return True
        folder = document.parent.as_posix()
        below = "" if folder == "." else folder + "/"
        return any(name.endswith("/" + path) and name.startswith(below) for name in exists)

    def has_names(self, text):
        """Returns whether `text` is a list of existing names, as in _Send/_Recv."""
        return all(re.match(r"_?[A-Z]", part) and part in self.words for part in text.split("/"))

    def has_label(self, package, name):
        package = package or ""
        if name and (name.endswith("...") or name == ":__subpackages__"):
            return (package or ".") in self.folders
        if not (self.root / package / "BUILD.bazel").is_file():
            return False
        if package not in self.labels:
            rules = layering.rules_of(self.root, package)
            self.labels[package] = {args["name"] + MADE_BY_MACRO.get(rule, "")
                                    for rule, args in rules if "name" in args}
        wanted = name[1:] if name else package.rsplit("/", 1)[-1]
        return wanted in self.labels[package] or f"{package}/{wanted}" in self.files

    def has_member(self, scope, member):
        return any(scope in words and member in words for words in self.words_of.values())


def findings_in(tree, document, lines):
    """Yields (line, name) for each name that does not exist."""
    plain = [ADDRESS.sub(" ", line) for line in lines]
    for number, line in enumerate(plain, 1):
        for match in FILE.finditer(line):
            for path in alternatives(match[1]):
                if not tree.has_path(path, document):
                    yield number, path
    for number, text in code_of(plain):
        for match in FOLDER.finditer(text):
            for path in alternatives(match[1]):
                if not tree.has_path(path, document) and not tree.has_names(path):
                    yield number, path
        for match in LABEL.finditer(text):
            if (match[1] or match[2]) and not tree.has_label(match[1], match[2]):
                yield number, match[0]
        for match in FLAG.finditer(text):
            if match[0] not in tree.flags:
                yield number, match[0]
        for match in MEMBER.finditer(text):
            if not tree.has_member(match[1], match[2].lstrip("~")):
                yield number, match[0]
        for match in NAME.finditer(text):
            if match[0] not in tree.words:
                yield number, match[0]
        command = COMMAND.match(text.strip())
        if command and command[1] not in tree.commands:
            yield number, f"penstock {command[1]}"


def check(root, foreign=FOREIGN):
    """Yields (path, line, message) for each finding."""
    tree = Tree(root)
    used = set()
    for name in sorted(tree.files):
        if not name.endswith(".md"):
            continue
        lines = (root / name).read_text(encoding="utf-8").split("\n")
        for number, missing in findings_in(tree, pathlib.Path(name), lines):
            rows = [row for row in foreign
                    if row[0] in ("*", name) and re.fullmatch(row[1], missing)]
            used.update(rows)
            if not rows:
                yield (pathlib.Path(name), number,
                       f"there is no {missing}; if it is not ours: FOREIGN in {TABLE}")
    for row in foreign:
        if row not in used:
            yield pathlib.Path(TABLE), 1, f"no document needs the row {row[:2]} any more"
