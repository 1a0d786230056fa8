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

_COPT = "//command_line_option:copt"

def _oldest_impl(settings, attr):
    return {_COPT: settings[_COPT] + ["-march=x86-64"]}

_oldest_processor = transition(implementation = _oldest_impl, inputs = [_COPT], outputs = [_COPT])

def _newer_impl(settings, attr):
    return {level: {_COPT: settings[_COPT] + ["-march=" + level]} for level in attr.levels}

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

# Like _image, but for every x86-64 processor: everything is compiled for the oldest one, and
# `variants`, the library again, also for newer ones. The dynamic linker chooses among them.
_portable_image = rule(
    implementation = _image_impl,
    attrs = dict(
        _IMAGE_ATTRS,
        # Names of GCC and of glibc's folders glibc-hwcaps.
        levels = attr.string_list(default = ["x86-64-v3", "x86-64-v4"]),
        variants = attr.label_list(cfg = _newer_processors),
        _allowlist_function_transition = attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    ),
    cfg = _oldest_processor,
)

def images(name, library, **kwargs):
    """Declares the image NAME, and NAME_portable for every x86-64 processor.

    The latter compiles everything three times, so it is built only if it is asked for by name.
    """
    _image(name = name, library = library, **kwargs)
    _portable_image(
        name = name + "_portable",
        library = library,
        tags = ["manual"],
        variants = [library],
        **kwargs
    )
