# SPDX-License-Identifier: Apache-2.0
"""precompiled_header: headers of the system and of packages, parsed once for all files.

Without it, a compiler spends half of its time on parsing the same headers for each file. GCC
accepts a precompiled header only if it was made with the same options, so there is one for each way
of compiling (copts.bzl). It contains no header of this tree, so it is rebuilt only for a new
compiler or package, and no file sees headers of a library on which it does not depend.
"""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "ACTION_NAMES")
load("//tools/build:toolchain.bzl", "CPP_TOOLCHAIN_ATTRS", "CPP_TOOLCHAIN_TYPES", "cpp_toolchain")

def _impl(ctx):
    toolchain, features = cpp_toolchain(ctx)
    header = ctx.actions.declare_file(ctx.label.name + ".h")
    ctx.actions.symlink(output = header, target_file = ctx.files.srcs[-1])
    compiled = ctx.actions.declare_file(ctx.label.name + ".h.gch")
    flags = cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = ACTION_NAMES.cpp_compile,
        variables = cc_common.create_compile_variables(
            feature_configuration = features,
            cc_toolchain = toolchain,
            use_pic = True,
            user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts +
                                 ctx.attr.copts,
        ),
    )
    ctx.actions.run(
        executable = toolchain.compiler_executable,
        arguments = flags + ["-iquote", ".", "-x", "c++-header", header.path, "-o", compiled.path],
        inputs = depset([header] + ctx.files.srcs, transitive = [toolchain.all_files]),
        outputs = [compiled],
        mnemonic = "CppPrecompile",
        progress_message = "Precompiling %s" % ctx.label,
        use_default_shell_env = True,
    )
    files = depset([header, compiled] + ctx.files.srcs)
    return [
        DefaultInfo(files = files),
        CcInfo(compilation_context = cc_common.create_compilation_context(headers = files)),
    ]

precompiled_header = rule(
    implementation = _impl,
    attrs = dict(
        CPP_TOOLCHAIN_ATTRS,
        copts = attr.string_list(),
        srcs = attr.label_list(
            mandatory = True,
            allow_files = [".h"],
            doc = "The last one is compiled, and may include the others.",
        ),
    ),
    fragments = ["cpp"],
    provides = [CcInfo],
    toolchains = CPP_TOOLCHAIN_TYPES,
)
