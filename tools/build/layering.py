# SPDX-License-Identifier: Apache-2.0
"""Checks that each included header of this tree belongs to the target itself or to one of its
direct dependencies; and that public libraries are installed. Used by tools/tidy.

Like Bazel's layering_check, but without a compiler. It executes BUILD files as Python, with
functions that only record their arguments.
"""

import pathlib
import re

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
CODE = (".cc", ".h", ".cu", ".cuh")


class Target:
    def __init__(self, package, args):
        self.label = f"//{package}:{args['name']}"
        self.hdrs = self.files(package, args, "hdrs")
        self.srcs = self.files(package, args, "srcs", "cuda_srcs")
        self.deps = [absolute(package, dep) for key in ("deps", "cuda_deps")
                     for dep in args.get(key) or []]

    @staticmethod
    def files(package, args, *keys):
        return {f"{package}/{name}" for key in keys for name in args.get(key) or []}


def absolute(package, label):
    if label.startswith(":"):
        return f"//{package}{label}"
    if label.startswith("//") and ":" not in label:
        return f"{label}:{label.rsplit('/', 1)[-1]}"
    return label


def proto_target(package, args, suffix, name):
    target = Target(package, {"name": name, "deps": args.get("deps")})
    target.hdrs = {f"{package}/{src[:-len('.proto')]}{suffix}" for src in args["srcs"]}
    return target


class BuildFile(dict):
    """The names available to a BUILD file: functions that record their arguments in `rules`."""

    def __init__(self):
        super().__init__()
        self.rules = []
        self["select"] = lambda cases: [x for case in cases.values() for x in case]
        self["glob"] = lambda *args, **kwargs: []

    def __missing__(self, name):
        if name.isupper():  # a constant from a load statement
            return []
        return lambda *args, **kwargs: self.rules.append((name, kwargs))


def rules_of(root, package):
    names = BuildFile()
    path = root / package / "BUILD.bazel"
    exec(compile(path.read_text(encoding="utf-8"), path, "exec"), names)
    return names.rules


def targets_of(root, package):
    """Returns the targets of one BUILD file that have code."""
    rules = rules_of(root, package)
    protos = {f":{args['name']}": args for rule, args in rules if rule == "penstock_proto"}
    for rule, args in rules:
        if rule == "penstock_proto":
            yield proto_target(package, args, ".pb.h", args["name"][:-len("proto")] + "cc_proto")
        elif rule == "penstock_grpc":
            yield proto_target(package, protos[args["proto"]], ".grpc.pb.h", args["name"])
        elif rule == "penstock_fuzz":
            shared = ["fuzz_target.h", "replay.cc"]
            yield Target(package, {**args, "srcs": args["srcs"] + shared})
        elif rule.startswith("penstock_") or rule == "cc_library":
            yield Target(package, args)


def check(root, packages):
    """Yields (file, line, message) for each finding."""
    targets = {t.label: t for package in packages for t in targets_of(root, package.as_posix())}
    public = {hdr for target in targets.values() for hdr in target.hdrs}
    for target in targets.values():
        own = target.hdrs | target.srcs
        seen = set(own).union(*(targets[d].hdrs for d in target.deps if d in targets))
        for name in sorted(own):
            path = root / name
            if path.suffix not in CODE or not path.is_file():
                continue
            text = path.read_text(encoding="utf-8")
            for include in INCLUDE.finditer(text):
                wanted = include[1]
                if wanted in seen or not (wanted in public or (root / wanted).is_file()):
                    continue
                line = text.count("\n", 0, include.start(1)) + 1
                why = "has no dependency that offers it" if wanted in public else "it is private"
                yield pathlib.Path(name), line, f"{target.label} includes {wanted}: {why}"


def check_api(root, packages):
    """Yields (file, line, message) for public libraries below client/ that would not be
    installed."""
    api = {absolute("client", dep) for rule, args in rules_of(root, "client")
           if rule == "penstock_api" for dep in args["deps"]}
    for package in packages:
        # Examples are installed as sources.
        if package.parts[:1] != ("client",) or package.parts[1:2] in ((), ("examples",)):
            continue
        rules = rules_of(root, package.as_posix())
        default = [args["default_visibility"] for rule, args in rules if rule == "package"]
        for rule, args in rules:
            visibility = args.get("visibility") or (default[0] if default else [])
            if (rule != "penstock_library" or args.get("testonly")
                    or "//visibility:public" not in visibility):
                continue
            label = f"//{package.as_posix()}:{args['name']}"
            if label not in api:
                yield package / "BUILD.bazel", 1, f"add {label} to //client:api: it is public"
