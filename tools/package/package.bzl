# SPDX-License-Identifier: Apache-2.0
"""Rules for an installation: a shared library that contains other libraries completely, programs
linked against it, and the image (a tar file) of all installed files."""

load("//tools/build:toolchain.bzl", "CPP_TOOLCHAIN_ATTRS", "CPP_TOOLCHAIN_TYPES", "cpp_toolchain")

_HeldInfo = provider(doc = "A set of libraries.", fields = {"owners": "their labels, as keys"})

def _inputs(deps):
    return cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in deps],
    ).linking_context.linker_inputs.to_list()

def _whole_libraries_impl(ctx):
    toolchain, features = cpp_toolchain(ctx)
    inputs = _inputs(ctx.attr.deps)
    whole = [
        cc_common.create_linker_input(
            owner = input.owner,
            libraries = depset([
                cc_common.create_library_to_link(
                    actions = ctx.actions,
                    feature_configuration = features,
                    cc_toolchain = toolchain,
                    pic_static_library = library.pic_static_library or library.static_library,
                    alwayslink = True,
                )
                for library in input.libraries
            ]),
            user_link_flags = depset(input.user_link_flags),
            additional_inputs = depset(input.additional_inputs),
        )
        for input in inputs
    ]
    return [
        CcInfo(linking_context = cc_common.create_linking_context(linker_inputs = depset(whole))),
        _HeldInfo(owners = {input.owner: True for input in inputs if input.libraries}),
    ]

# Combines every object of `deps` and of their dependencies. A binary that links the result contains
# all their functions, even if it does not call them.
whole_libraries = rule(
    implementation = _whole_libraries_impl,
    attrs = dict(CPP_TOOLCHAIN_ATTRS, deps = attr.label_list(providers = [CcInfo])),
    fragments = ["cpp"],
    toolchains = CPP_TOOLCHAIN_TYPES,
)

def _linked_against_impl(ctx):
    held = ctx.attr.held[_HeldInfo].owners
    library = ctx.file.shared_library
    rest = [input for input in _inputs(ctx.attr.deps) if input.owner not in held]
    rest.append(cc_common.create_linker_input(
        owner = ctx.label,
        user_link_flags = depset([library.path]),
        additional_inputs = depset([library]),
    ))
    return [CcInfo(
        compilation_context = cc_common.merge_cc_infos(
            cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
        ).compilation_context,
        linking_context = cc_common.create_linking_context(linker_inputs = depset(rest)),
    )]

# Provides `deps`, but replaces the libraries that are in `held` by `shared_library`, which contains
# them.
linked_against = rule(
    implementation = _linked_against_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "held": attr.label(providers = [_HeldInfo]),
        "shared_library": attr.label(allow_single_file = True),
    },
)

def _name_and_path(file):
    return "%s=%s" % (file.short_path, file.path)

def _image_impl(ctx):
    image = ctx.actions.declare_file(ctx.label.name + ".tar")
    headers = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.api],
    ).compilation_context.headers
    public = [
        header.short_path
        for dep in ctx.attr.api
        for header in dep[CcInfo].compilation_context.direct_public_headers
    ]
    args = ctx.actions.args()
    args.add("--output", image)
    args.add("--library", ctx.file.library)
    variants = getattr(ctx.split_attr, "variants", {})
    for level, targets in variants.items():
        args.add_all("--variants", targets[0].files, format_each = level + "=%s")
    args.add("--command", ctx.file.command)
    args.add("--packages", ctx.file.packages)
    args.add_all("--public", public)
    args.add_all("--headers", headers, map_each = _name_and_path)
    for target, folder in ctx.attr.files.items():
        args.add_all("--files", ["%s=%s" % (folder, file.path) for file in target.files.to_list()])
    args.use_param_file("@%s", use_always = True)
    args.set_param_file_format("multiline")
    ctx.actions.run(
        executable = "/usr/bin/python3",
        arguments = [ctx.file._make_image.path, args],
        inputs = depset(
            [ctx.file._make_image, ctx.file.library, ctx.file.command, ctx.file.packages] +
            ctx.files.files + getattr(ctx.files, "variants", []),
            transitive = [headers],
        ),
        outputs = [image],
        mnemonic = "PenstockImage",
        progress_message = "Packing %s" % ctx.label,
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([image]), runfiles = ctx.runfiles(files = [image]))]

_ALLOWLIST = attr.label(
    default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
)

_COPT = "//command_line_option:copt"

def _oldest_impl(settings, attr):
    return {_COPT: settings[_COPT] + ["-march=x86-64"]}

_oldest_processor = transition(implementation = _oldest_impl, inputs = [_COPT], outputs = [_COPT])

# A level that the build compiles for anyway leaves its options as they are: its variant is then the
# library of the image NAME, and is not compiled twice.
def _newer_impl(settings, attr):
    usual = settings[_COPT]
    last = ([copt for copt in usual if copt.startswith("-march=")] or [""])[-1]
    return {
        level: {_COPT: usual if last == "-march=" + level else usual + ["-march=" + level]}
        for level in attr.levels
    }

_newer_processors = transition(implementation = _newer_impl, inputs = [_COPT], outputs = [_COPT])

_IMAGE_ATTRS = {
    # Libraries whose public headers programs may include. Headers of other dependencies of
    # `api` are installed if these headers or installed sources include them.
    "api": attr.label_list(providers = [CcInfo]),
    "command": attr.label(allow_single_file = True),
    # Maps a file to the folder that it is installed to. In a file x.in, @NAME@ is replaced.
    "files": attr.label_keyed_string_dict(allow_files = True),
    "library": attr.label(allow_single_file = True),
    # The list of packages whose licences are installed.
    "packages": attr.label(allow_single_file = True),
    "_make_image": attr.label(
        default = "//tools/package:make_image.py",
        allow_single_file = True,
    ),
}

# Makes NAME.tar: an installation, with paths relative to its prefix (make_image.py).
_image = rule(implementation = _image_impl, attrs = _IMAGE_ATTRS)

def _for_any_processor_impl(ctx):
    return [DefaultInfo(files = depset([ctx.file.target]))]

# Provides the file of `target`, compiled for any x86-64 processor.
_for_any_processor = rule(
    implementation = _for_any_processor_impl,
    attrs = {
        "target": attr.label(allow_single_file = True, cfg = _oldest_processor),
        "_allowlist_function_transition": _ALLOWLIST,
    },
)

# Like _image, with further variants of the library for newer processors. The dynamic linker chooses
# among them.
_portable_image = rule(
    implementation = _image_impl,
    attrs = dict(
        _IMAGE_ATTRS,
        # Names of GCC and of glibc's folders glibc-hwcaps.
        levels = attr.string_list(default = ["x86-64-v3", "x86-64-v4"]),
        variants = attr.label_list(cfg = _newer_processors),
        _allowlist_function_transition = _ALLOWLIST,
    ),
)

def images(name, library, command, files, programs = {}, **kwargs):
    """Declares the image NAME, and NAME_portable for every x86-64 processor.

    In the latter the programs and one library are compiled for the oldest processor, and the
    library again for newer ones. It is built only if it is asked for by name.

    Args:
      name: of the image.
      library: libpenstock.so.
      command: the program that is installed as bin/penstock.
      files: maps files that are not compiled to the folders that they are installed to.
      programs: the same, for compiled programs.
      **kwargs: further attributes of both images.
    """
    _image(
        name = name,
        library = library,
        command = command,
        files = dict(files, **programs),
        **kwargs
    )
    oldest = {}
    for target in [library, command] + list(programs):
        oldest[target] = "%s_of_%s_portable" % (target.strip(":").replace("/", "_"), name)
        _for_any_processor(name = oldest[target], target = target, tags = ["manual"])
    _portable_image(
        name = name + "_portable",
        library = oldest[library],
        command = oldest[command],
        files = dict(files, **{oldest[target]: programs[target] for target in programs}),
        tags = ["manual"],
        variants = [library],
        **kwargs
    )
