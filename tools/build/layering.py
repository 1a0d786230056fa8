# SPDX-License-Identifier: Apache-2.0
"""Which target may include what: an include of ours comes from the target itself or from one of its
direct dependencies. Used by tools/tidy.

The same as Bazel's layering_check, but without a compiler. BUILD files are Python enough to be run
as such, with functions that only note their arguments.
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
    """The names that a BUILD file sees: functions that note their arguments in `rules`."""

    def __init__(self):
        super().__init__()
        self.rules = []
        self["select"] = lambda cases: [x for case in cases.values() for x in case]
        self["glob"] = lambda *args, **kwargs: []

    def __missing__(self, name):
        if name.isupper():  # a constant that was loaded
            return []
        return lambda *args, **kwargs: self.rules.append((name, kwargs))


def targets_of(root, package):
    """The targets of one BUILD file that have code."""
    names = BuildFile()
    path = root / package / "BUILD.bazel"
    exec(compile(path.read_text(encoding="utf-8"), path, "exec"), names)
    protos = {f":{args['name']}": args for rule, args in names.rules if rule == "penstock_proto"}
    for rule, args in names.rules:
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
    """Yields (file, line, what is wrong)."""
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
