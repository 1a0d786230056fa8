# SPDX-License-Identifier: Apache-2.0
"""penstock_op_library: builds a shared library of ops for `--load` (docs/custom-ops.md)."""

# For programs that are linked with Penstock statically: exports the symbols that op libraries need.
EXPORTS_FOR_OP_LIBRARIES = ["-Wl,--export-dynamic-symbol=*8penstock*"]

def _headers_impl(ctx):
    context = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).compilation_context
    return [CcInfo(compilation_context = context)]

# Provides the headers of libraries without linking the libraries.
_headers = rule(
    implementation = _headers_impl,
    attrs = {"deps": attr.label_list(providers = [CcInfo])},
)

def penstock_op_library(name, srcs, deps = [], copts = [], local_defines = [], **kwargs):
    """Builds lib<name>.so from source files that include core/op/op_library.h.

    The library contains no code of Penstock: the process that loads it has that.

    Args:
      name: the library's.
      srcs: .cc files, and headers.
      deps: libraries of Penstock, such as @penstock//core/op: their headers.
      copts: flags for the compiler.
      local_defines: as in cc_library.
      **kwargs: passed on to cc_binary.
    """
    _headers(
        name = name + "_headers",
        testonly = kwargs.get("testonly", False),
        deps = deps,
    )
    native.cc_binary(
        name = "lib" + name + ".so",
        srcs = srcs,
        copts = copts,
        linkshared = True,
        local_defines = local_defines,
        deps = [":" + name + "_headers"],
        **kwargs
    )
