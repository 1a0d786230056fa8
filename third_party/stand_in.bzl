# SPDX-License-Identifier: Apache-2.0
"""A repository whose files lie in third_party/bazel of this one."""

def _impl(ctx):
    root = str(ctx.path(Label("@penstock//:WORKSPACE")).dirname)
    for file in ctx.path(root + "/third_party/bazel/" + ctx.name).readdir():
        ctx.symlink(file, file.basename)

stand_in_repository = repository_rule(implementation = _impl, local = True)
