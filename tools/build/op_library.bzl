# SPDX-License-Identifier: Apache-2.0
"""penstock_op_library: ops in a shared library, for `--load`; docs/custom-ops.md."""

# For programs that contain Penstock instead of loading libpenstock.so: what op libraries call.
EXPORTS_FOR_OP_LIBRARIES = ["-Wl,--export-dynamic-symbol=*8penstock*"]

def _headers_impl(ctx):
    context = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).compilation_context
    return [CcInfo(compilation_context = context)]

# The headers of libraries without the libraries.
_headers = rule(
    implementation = _headers_impl,
    attrs = {"deps": attr.label_list(providers = [CcInfo])},
)

def penstock_op_library(name, srcs, deps = [], copts = [], local_defines = [], **kwargs):
    """lib<name>.so, of source files that include core/op/op_library.h.

    It holds nothing of Penstock: the process that loads it does.

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
