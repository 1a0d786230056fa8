# SPDX-License-Identifier: Apache-2.0
"""cuda_objects: compiles .cu files, and .cc files as CUDA, to object files with nvcc."""

load("@local_cuda//:defs.bzl", "CUDA_ROOT")

# The compute capabilities to compile for (90 is Hopper). Each one adds its compile time.
_ARCHS = ["90"]

def _impl(ctx):
    context = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).compilation_context
    inputs = depset(ctx.files.srcs + ctx.files.hdrs, transitive = [context.headers])
    objects = []
    for src in ctx.files.srcs:
        if src.extension not in ["cc", "cu"]:
            continue
        object = ctx.actions.declare_file("_cuda/%s/%s.o" % (ctx.label.name, src.basename))
        args = ctx.actions.args()
        args.add("-x", "cu")
        args.add("-c", src)
        args.add("-o", object)
        args.add_all(["-ccbin", "g++", "-std=c++20", "-O2", "-Xcompiler", "-fPIC"])

        # The host code needs the flags of g++'s objects, so that both agree about alignment and
        # inlined vector code.
        args.add_all(ctx.fragments.cpp.copts, before_each = "-Xcompiler")
        for arch in _ARCHS:
            args.add("-gencode", "arch=compute_%s,code=sm_%s" % (arch, arch))
        args.add_all(["--expt-relaxed-constexpr", "--extended-lambda"])

        # Suppress two warnings. Unused functions: in this pass nothing calls the functions that OP
        # defines, nor their helpers. Comparison of an unsigned number with 0: templates take signed
        # and unsigned numbers.
        args.add("-diag-suppress=177,186")
        args.add_all(["-DPENSTOCK_CUDA=1", "-DPENSTOCK_CUDA_DEVICE=1", "-DNDEBUG"])
        args.add_all(["-I.", "-I" + ctx.bin_dir.path])
        args.add_all(context.defines, format_each = "-D%s")
        args.add_all(context.includes, format_each = "-I%s")
        args.add_all(context.quote_includes, format_each = "-I%s")
        args.add_all(context.system_includes, before_each = "-isystem")
        ctx.actions.run(
            executable = CUDA_ROOT + "/bin/nvcc",
            arguments = [args],
            inputs = inputs,
            outputs = [object],
            mnemonic = "NvccCompile",
            progress_message = "Compiling %s with nvcc" % src.short_path,
            env = {"PATH": "/usr/bin:/bin"},
        )
        objects.append(object)
    return [DefaultInfo(files = depset(objects))]

cuda_objects = rule(
    implementation = _impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "hdrs": attr.label_list(allow_files = True),
        "srcs": attr.label_list(allow_files = True),
    },
    fragments = ["cpp"],
)
