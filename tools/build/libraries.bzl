# SPDX-License-Identifier: Apache-2.0
"""libraries: several libraries as one, which offers the headers of all of them."""

def _impl(ctx):
    return [cc_common.merge_cc_infos(
        direct_cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    )]

libraries = rule(
    implementation = _impl,
    attrs = {"deps": attr.label_list(providers = [CcInfo])},
)
