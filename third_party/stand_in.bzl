# SPDX-License-Identifier: Apache-2.0
"""stand_in_repository: a repository with the files of third_party/bazel/NAME."""

def _impl(ctx):
    root = str(ctx.path(Label("@penstock//:WORKSPACE")).dirname)
    for file in ctx.path(root + "/third_party/bazel/" + ctx.name).readdir():
        ctx.symlink(file, file.basename)

stand_in_repository = repository_rule(implementation = _impl, local = True)
