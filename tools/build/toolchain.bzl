# SPDX-License-Identifier: Apache-2.0
"""The C++ toolchain, for rules that call the compiler themselves."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# A rule that calls cpp_toolchain needs these attributes and toolchain types, and fragment "cpp".
CPP_TOOLCHAIN_ATTRS = {
    "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
}
CPP_TOOLCHAIN_TYPES = ["@bazel_tools//tools/cpp:toolchain_type"]

def cpp_toolchain(ctx):
    """Returns the toolchain, and its features as configured for the target of `ctx`."""
    toolchain = find_cpp_toolchain(ctx)
    return toolchain, cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
