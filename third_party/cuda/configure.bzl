# SPDX-License-Identifier: Apache-2.0
"""Makes the repository @local_cuda: the installed CUDA toolkit, or empty libraries without it."""

def _impl(ctx):
    root = ctx.os.environ.get("CUDA_HOME", "/usr/local/cuda")
    if not ctx.path(root + "/bin/nvcc").exists:
        ctx.file("defs.bzl", "CUDA_FOUND = False\nCUDA_ROOT = \"/usr/local/cuda\"\n")
        ctx.template("BUILD.bazel", ctx.attr._absent)
        return
    lib = root + "/lib64" if ctx.path(root + "/lib64").exists else root + "/lib"
    ctx.file("defs.bzl", "CUDA_FOUND = True\nCUDA_ROOT = %r\n" % root)
    ctx.symlink(root + "/include", "cuda/include")
    ctx.template("BUILD.bazel", ctx.attr._present, {"%{lib}": lib})

cuda_configure = repository_rule(
    implementation = _impl,
    attrs = {
        "_absent": attr.label(default = "//third_party/cuda:absent.BUILD"),
        "_present": attr.label(default = "//third_party/cuda:present.BUILD"),
    },
    environ = ["CUDA_HOME"],
    local = True,
)
