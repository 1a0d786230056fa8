# SPDX-License-Identifier: Apache-2.0
"""system_repository: a repository whose targets represent installed Debian -dev packages.

A list of words describes a target: a word without a prefix is a pkg-config module, -l, -I and -D
are flags, which are passed on unchanged, and a label is a dependency.
"""

def _pkg_config(ctx, kind, modules):
    result = ctx.execute(["pkg-config", kind] + modules)
    if result.return_code != 0:
        fail("pkg-config %s: %s\nRun tools/install_packages, which installs the list in %s." %
             (modules, result.stderr, "tools/packages.txt"))
    return [f for f in result.stdout.replace("\n", " ").split(" ") if f]

def _unique(flags):
    """Returns the flags with each -l once, at its last place, and without -Wl flags of pkg-config,
    which would end the --push-state of _target too early."""
    last = {f: i for i, f in enumerate(flags)}
    return [f for i, f in enumerate(flags) if last[f] == i and not f.startswith("-Wl")]

def _target(ctx, name, words):
    modules = [w for w in words if w[0] not in "-@:/"]
    cflags = _pkg_config(ctx, "--cflags", modules) if modules else []
    libs = _pkg_config(ctx, "--libs", modules) if modules else []
    libs += [w for w in words if w.startswith("-l")]
    linkopts = ["-Wl,--push-state,--as-needed"] + _unique(libs) + ["-Wl,--pop-state"]
    return """
system_library(
    name = "%s",
    defines = %r,
    includes = %r,
    linkopts = %r,
    deps = %r,
)
""" % (
        name,
        [w[2:] for w in words if w.startswith("-D")],
        [f[2:] for f in cflags + words if f.startswith("-I")],
        linkopts if libs else [],
        [w for w in words if w[0] in "@:/"],
    )

def _impl(ctx):
    packages = {package: "" for package in ctx.attr.build_files.values()}
    for label, words in ctx.attr.targets.items():
        package, _, name = label.partition(":")
        packages[package] = packages.get(package, "") + _target(ctx, name, words)
    for build_file, package in ctx.attr.build_files.items():
        packages[package] += ctx.read(build_file)
    for link, path in ctx.attr.links.items():
        if not ctx.path(path).exists:
            fail("%s is missing. Run tools/install_packages." % path)
        ctx.symlink(path, link)
    for package, rules in packages.items():
        ctx.file(
            (package + "/" if package else "") + "BUILD.bazel",
            "load(\"@penstock//third_party/system:library.bzl\", \"system_library\")\n" +
            "package(default_visibility = [\"//visibility:public\"])\n" + rules,
        )

system_repository = repository_rule(
    implementation = _impl,
    attrs = {
        # Maps each BUILD file to the package to whose BUILD file it is appended.
        "build_files": attr.label_keyed_string_dict(),
        # Maps a path in the repository to the file or folder of the system to which it links.
        "links": attr.string_dict(),
        "targets": attr.string_list_dict(),
    },
    environ = ["PKG_CONFIG_PATH"],
    local = True,
)
