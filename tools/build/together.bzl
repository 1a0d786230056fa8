# SPDX-License-Identifier: Apache-2.0
"""compiled_together: compiles the source files of a library or a test in groups, each as one file.

Compiling a file spends most of its time in headers, which other files of the same library include
as well. Eight files compiled as one take about a third of the time of eight compilations.
"""

load(":toolchain.bzl", "CPP_TOOLCHAIN_ATTRS", "CPP_TOOLCHAIN_TYPES", "cpp_toolchain")

# A larger group would save little more time, but would make the compilation after a change of one
# file take longer.
_FILES_PER_GROUP = 8

def _groups(files):
    """Cuts a list into groups of nearly equal size."""
    count = (len(files) + _FILES_PER_GROUP - 1) // _FILES_PER_GROUP
    return [files[len(files) * i // count:len(files) * (i + 1) // count] for i in range(count)]

def _include(file):
    # Files of an external repository begin with ../REPOSITORY/.
    path = file.short_path
    return '#include "%s"' % ("/".join(path.split("/")[2:]) if path.startswith("../") else path)

def _impl(ctx):
    toolchain, features = cpp_toolchain(ctx)
    sources = [file for file in ctx.files.srcs if file.extension == "cc"]
    groups = []
    for files in _groups(sources):
        group = ctx.actions.declare_file("%s/%s" % (ctx.label.name, files[0].basename))
        ctx.actions.write(group, "\n".join([_include(file) for file in files] + [""]))
        groups.append(group)
    included = cc_common.create_compilation_context(headers = depset(ctx.files.srcs))
    _, outputs = cc_common.compile(
        name = ctx.label.name,
        actions = ctx.actions,
        feature_configuration = features,
        cc_toolchain = toolchain,
        srcs = groups,
        private_hdrs = ctx.files.hdrs,
        compilation_contexts = [included] + [
            dep[CcInfo].compilation_context
            for dep in ctx.attr.deps
        ],
        local_defines = ctx.attr.local_defines,
        user_compile_flags = [
            ctx.expand_make_variables("copts", flag, {})
            for flag in ctx.attr.copts
        ],
    )
    return [DefaultInfo(files = depset(outputs.pic_objects or outputs.objects))]

compiled_together = rule(
    implementation = _impl,
    attrs = dict(
        CPP_TOOLCHAIN_ATTRS,
        copts = attr.string_list(),
        deps = attr.label_list(providers = [CcInfo]),
        hdrs = attr.label_list(allow_files = [".h", ".inc"]),
        local_defines = attr.string_list(),
        srcs = attr.label_list(
            allow_files = True,
            doc = "The .cc files that are compiled, and headers that they include.",
        ),
    ),
    fragments = ["cpp"],
    toolchains = CPP_TOOLCHAIN_TYPES,
)
