# SPDX-License-Identifier: Apache-2.0
"""grpc_sources: generates the C++ gRPC stubs of a proto_library with the system's protoc."""

def _impl(ctx):
    proto = ctx.attr.proto[ProtoInfo]
    outputs = []
    args = ctx.actions.args()
    args.add(ctx.executable._plugin, format = "--plugin=protoc-gen-grpc=%s")

    # If another workspace depends on this one, outputs are below a separate folder.
    root = ctx.label.workspace_root
    args.add("--grpc_out=" + ctx.bin_dir.path + ("/" + root if root else ""))
    args.add_all(proto.transitive_proto_path, format_each = "-I%s")
    for src in proto.direct_sources:
        stem = src.basename[:-len(".proto")]
        for suffix in [".grpc.pb.h", ".grpc.pb.cc"]:
            outputs.append(ctx.actions.declare_file(stem + suffix))
        args.add(src.path[len(root) + 1:] if root else src.path)
    ctx.actions.run(
        executable = ctx.executable._protoc,
        arguments = [args],
        inputs = proto.transitive_sources,
        tools = [ctx.executable._plugin],
        outputs = outputs,
        mnemonic = "GrpcGenerate",
        progress_message = "Generating gRPC stubs for %s" % ctx.label,
    )
    return [DefaultInfo(files = depset(outputs))]

grpc_sources = rule(
    implementation = _impl,
    attrs = {
        "proto": attr.label(mandatory = True, providers = [ProtoInfo]),
        "_plugin": attr.label(
            default = "@com_github_grpc_grpc//:bin/grpc_cpp_plugin",
            allow_single_file = True,
            executable = True,
            cfg = "exec",
        ),
        "_protoc": attr.label(
            default = "@com_google_protobuf//:protoc",
            allow_single_file = True,
            executable = True,
            cfg = "exec",
        ),
    },
)
