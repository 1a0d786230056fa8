# SPDX-License-Identifier: Apache-2.0
"""One macro per kind of target. They set the compiler's warnings and add the common dependencies.

    penstock_library    a library
    penstock_test       a GoogleTest program; main is linked in
    penstock_binary     a program
    penstock_programs   all programs of a BUILD file, as one target
    penstock_benchmark  a Google Benchmark program; main is linked in; built, not run, by the tests
    penstock_ops        files that define ops and kernels; with --config=cuda also built by nvcc
    penstock_proto      "x_proto" and its C++ library "x_cc_proto"
    penstock_grpc       the gRPC stubs of a penstock_proto

Targets are private unless they set `visibility`, so that Bazel enforces the layers. A header that a
file includes must belong to a direct dependency: tools/tidy checks this (build/layering.py).
"""

load("//tools/build:cuda.bzl", "cuda_objects")
load("//tools/build:grpc.bzl", "grpc_sources")
load("//tools/build:together.bzl", "compiled_together")
load("//tools/build/pch:copts.bzl", "PCH_COPTS")

# Warnings are set here and not in .bazelrc, so that they do not apply to generated and foreign
# code.
_COPTS = [
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wnon-virtual-dtor",
    "-Woverloaded-virtual",
    "-Wsuggest-override",
    "-Wunused",
    # Designated initialisers leave out fields that have a default, on purpose.
    "-Wno-missing-field-initializers",
    "-Wno-unused-parameter",
    "-Wno-sign-compare",
    # The platform's calling convention for vectors changed between compilers; we ship no binaries.
    "-Wno-psabi",
    # GCC 12 reports these falsely in inlined library code (GCC bugs 105329, 105651, 106199).
    "-Wno-restrict",
    "-Wno-array-bounds",
    "-Wno-stringop-overflow",
    "-Wno-stringop-overread",
    "-Wno-maybe-uninitialized",
    "-Wno-uninitialized",  # moving an empty absl::InlinedVector copies its inline storage
]

_CLANG = "//tools/build:clang"

# --config=debug, lint and fuzz: each file is compiled alone.
_APART = "//tools/build:apart"

_PRIVATE = ["//visibility:private"]

_CUDA = "//third_party/cuda:enabled"

def _pch(name, copts = []):
    """Returns (copts, deps) that begin each file with a precompiled header of //tools/build/pch.

    Without one for targets with their own flags, because the header is made with other flags; and
    for clang.
    """
    if copts:
        return select({_CLANG: [], "//conditions:default": PCH_COPTS[name]}) + copts, []
    root = native.repository_name()[1:]
    path = "$(BINDIR)/%stools/build/pch/%s.h" % ("external/%s/" % root if root else "", name)
    return (
        select({
            # Clang does not know some of the flags, and is slow with others.
            _CLANG: [],
            "//conditions:default": PCH_COPTS[name] + ["-include", path],
        }),
        select({_CLANG: [], "//conditions:default": ["//tools/build/pch:" + name]}),
    )

def _together(name, srcs, hdrs, deps, copts, local_defines, testonly):
    """Returns `srcs` of a target, with object files, compiled in groups, for the .cc files."""
    files = [src for src in srcs if src.endswith(".cc")]
    if len(files) < 2:
        return srcs
    compiled_together(
        name = name + "_together",
        srcs = srcs,
        hdrs = hdrs,
        deps = deps,
        # GCC treats the included .cc files as headers, and warns about classes that use types of an
        # unnamed namespace.
        copts = copts + ["-Wno-subobject-linkage"],
        local_defines = local_defines,
        tags = ["manual"],
        testonly = testonly,
    )
    return [src for src in srcs if src not in files] + select({
        _APART: files,
        "//conditions:default": [":%s_together" % name],
    })

def penstock_library(
        name,
        srcs = [],
        hdrs = [],
        deps = [],
        copts = [],
        defines = [],
        local_defines = [],
        objects = [],
        optimise_loops = False,
        testonly = None,
        visibility = _PRIVATE,
        **kwargs):
    """A cc_library.

    Its .cc files are compiled in groups (together.bzl), so that names in their unnamed namespaces
    must differ. Inner loops, and srcs with a select(), are compiled file by file.

    Args:
      name: the library.
      srcs: .cc files, and private headers.
      hdrs: public headers.
      deps: libraries.
      copts: more flags for the compiler.
      defines: as in cc_library.
      local_defines: as in cc_library.
      objects: object files made otherwise.
      optimise_loops: the files are inner loops of kernels.
      testonly: as everywhere.
      visibility: as everywhere.
      **kwargs: passed on to cc_library; nothing that changes the compilation.
    """
    flags, pch = _pch("kernel" if optimise_loops else "library", copts)
    copts = _COPTS + flags
    deps = deps + pch
    if type(srcs) == "list" and not optimise_loops:
        srcs = _together(name, srcs, hdrs, deps, copts, defines + local_defines, testonly)
    native.cc_library(
        name = name,
        srcs = srcs + objects,
        hdrs = hdrs,
        deps = deps,
        copts = copts,
        defines = defines,
        local_defines = local_defines,
        testonly = testonly,
        visibility = visibility,
        **kwargs
    )

def penstock_test(
        name,
        srcs,
        deps = [],
        copts = [],
        local_defines = [],
        optimise_loops = False,
        size = "small",
        **kwargs):
    """A cc_test. As in a library, its .cc files are compiled in groups.

    The usual target is `tests`: all tests of a folder in one program, which is compiled and linked
    once. A test is a target of its own if it needs files, flags or a process for itself.
    """

    # Without optimise_loops, a test's own files are compiled with -O1, which takes a fifth less
    # time than -O2. The libraries that it tests are compiled as always.
    flags, pch = _pch("kernel" if optimise_loops else "test", copts)
    copts = _COPTS + flags
    deps = deps + pch + ["@com_google_googletest//:gtest_main", "//tools:sanitizer_defaults"]
    if not optimise_loops:
        srcs = _together(name, srcs, [], deps, copts, local_defines, True)
    native.cc_test(
        name = name,
        srcs = srcs,
        deps = deps,
        copts = copts,
        local_defines = local_defines,
        size = size,
        **kwargs
    )

def penstock_fuzz(name, srcs, deps = [], corpus = [], **kwargs):
    """A fuzz target (tests/fuzz/fuzz_target.h): a test that replays the corpus, and a fuzzer.

    The fuzzer NAME_fuzzer uses clang's libFuzzer, so it links only with --config=fuzz.
    """
    penstock_test(
        name = name + "_test",
        srcs = srcs + ["fuzz_target.h", "replay.cc"],
        deps = deps + ["@com_google_absl//absl/strings"],
        args = ["$(rootpaths %s)" % file for file in corpus],
        data = corpus,
        **kwargs
    )
    native.cc_binary(
        name = name + "_fuzzer",
        srcs = srcs + ["fuzz_target.h"],
        deps = deps,
        copts = _COPTS,
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],
        testonly = True,
    )

def penstock_binary(name, srcs = [], deps = [], copts = [], visibility = _PRIVATE, **kwargs):
    flags, pch = _pch("library", copts)
    native.cc_binary(
        name = name,
        srcs = srcs,
        deps = deps + pch + ["//tools:sanitizer_defaults"],
        copts = _COPTS + flags,
        visibility = visibility,
        **kwargs
    )

def penstock_programs(name, visibility = _PRIVATE):
    """Collects every program declared above it in the BUILD file, so that none is forgotten."""
    rules = native.existing_rules()
    native.filegroup(
        name = name,
        srcs = sorted([r for r in rules if rules[r]["kind"] == "cc_binary"]),
        visibility = visibility,
    )

def penstock_benchmark(name, srcs, deps = [], copts = [], visibility = _PRIVATE, **kwargs):
    flags, pch = _pch("library", copts)
    native.cc_binary(
        name = name,
        srcs = srcs,
        deps = deps + pch + [
            "@com_github_google_benchmark//:benchmark_main",
            "//tools:sanitizer_defaults",
        ],
        copts = _COPTS + flags,
        testonly = True,
        visibility = visibility,
        **kwargs
    )

def penstock_ops(
        name,
        srcs,
        hdrs = [],
        deps = [],
        copts = [],
        optimise_loops = False,
        cuda = True,
        cuda_srcs = [],
        cuda_deps = [],
        visibility = _PRIVATE,
        **kwargs):
    """Files whose static initialisers register ops and kernels: always linked in whole.

    With --config=cuda the host compiler sees PENSTOCK_CUDA=1, and every .cc of `srcs` is compiled
    once more by nvcc, as CUDA, with PENSTOCK_CUDA_DEVICE=1 as well.

    Args:
      name: the library.
      srcs: .cc files, and private headers.
      hdrs: public headers.
      deps: libraries that both passes need.
      copts: more flags for the host compiler.
      optimise_loops: the files are inner loops.
      cuda: False: nvcc does not compile `srcs`.
      cuda_srcs: .cu files and .cuh headers that only nvcc compiles.
      cuda_deps: libraries of the CUDA build only, such as @local_cuda//:cublas.
      visibility: as everywhere.
      **kwargs: passed on to cc_library.
    """
    objects = []
    if cuda or cuda_srcs:
        objects = [":" + name + "_cuda"]
        cuda_objects(
            name = name + "_cuda",
            srcs = cuda_srcs + (srcs if cuda else []),
            hdrs = hdrs,
            deps = deps + cuda_deps + ["@local_cuda//:cudart"],
            tags = ["manual"],
        )
    penstock_library(
        name = name,
        srcs = srcs,
        hdrs = hdrs,
        deps = deps + select({
            _CUDA: cuda_deps + ["@local_cuda//:cudart"],
            "//conditions:default": [],
        }),
        copts = copts,
        objects = select({
            _CUDA: objects,
            "//conditions:default": [],
        }),
        optimise_loops = optimise_loops,
        local_defines = select({
            _CUDA: ["PENSTOCK_CUDA=1"],
            "//conditions:default": [],
        }),
        alwayslink = True,
        visibility = visibility,
        **kwargs
    )

def _stem(name):
    if not name.endswith("_proto"):
        fail("%s: the name of a proto target ends in _proto" % name)
    return name[:-len("_proto")]

def penstock_proto(name, srcs, deps = [], visibility = _PRIVATE):
    """Declares the proto_library `name`, "x_proto", and the C++ library "x_cc_proto"."""
    native.proto_library(name = name, srcs = srcs, deps = deps, visibility = visibility)
    native.cc_proto_library(
        name = _stem(name) + "_cc_proto",
        deps = [":" + name],
        visibility = visibility,
    )

def penstock_grpc(name, proto, visibility = _PRIVATE):
    """Declares gRPC stubs for a penstock_proto of the same package; usual name: "x_cc_grpc"."""
    grpc_sources(name = name + "_sources", proto = proto)
    native.cc_library(
        name = name,
        srcs = [":" + name + "_sources"],
        hdrs = [":" + name + "_sources"],
        deps = [_stem(proto) + "_cc_proto", "@com_github_grpc_grpc//:grpc++"],
        visibility = visibility,
    )
