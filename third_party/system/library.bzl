# SPDX-License-Identifier: Apache-2.0
"""system_library: a library of the operating system, given by its compiler and linker flags."""

def _system_library_impl(ctx):
    linker_input = cc_common.create_linker_input(
        owner = ctx.label,
        user_link_flags = depset(ctx.attr.linkopts),
    )
    own = CcInfo(
        compilation_context = cc_common.create_compilation_context(
            system_includes = depset(ctx.attr.includes),
            defines = depset(ctx.attr.defines),
        ),
        linking_context = cc_common.create_linking_context(
            linker_inputs = depset([linker_input]),
        ),
    )
    return [DefaultInfo(), cc_common.merge_cc_infos(
        direct_cc_infos = [own],
        cc_infos = [d[CcInfo] for d in ctx.attr.deps],
    )]

system_library = rule(
    implementation = _system_library_impl,
    attrs = {
        "defines": attr.string_list(),
        "deps": attr.label_list(providers = [CcInfo]),
        "includes": attr.string_list(),
        "linkopts": attr.string_list(),
    },
    provides = [CcInfo],
)
