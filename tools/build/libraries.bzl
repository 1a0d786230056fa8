# SPDX-License-Identifier: Apache-2.0
"""penstock_api: combines all libraries of a BUILD file in one target that exports their headers."""

def _impl(ctx):
    return [cc_common.merge_cc_infos(
        direct_cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    )]

_libraries = rule(
    implementation = _impl,
    attrs = {"deps": attr.label_list(providers = [CcInfo])},
)

def penstock_api(name, deps = [], visibility = None):
    """Combines every library declared above it in the BUILD file, except those for tests; and
    `deps`."""
    rules = native.existing_rules()
    _libraries(
        name = name,
        deps = deps + sorted([
            ":" + r
            for r in rules
            if rules[r]["kind"] == "cc_library" and not rules[r].get("testonly")
        ]),
        visibility = visibility,
    )
