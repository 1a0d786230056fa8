# SPDX-License-Identifier: Apache-2.0
"""Declares every external package, with the labels of its upstream Bazel build."""

load("//third_party:stand_in.bzl", "stand_in_repository")
load("//third_party/cuda:configure.bzl", "cuda_configure")
load("//third_party/system:repository.bzl", "system_repository")

def penstock_dependencies():
    """Declares the packages. For this tree's WORKSPACE, and for trees that use it as @penstock."""

    # Bazel 4 declares these repositories in its built-in WORKSPACE suffix and would download them.
    # If the workspace has declared one of them before this call, that declaration stays.
    for name in ["rules_cc", "rules_java", "remote_coverage_tools"]:
        if not native.existing_rule(name):
            stand_in_repository(name = name)
    cuda_configure(name = "local_cuda")
    _system_dependencies()

def _system_dependencies():
    system_repository(
        name = "com_google_absl",
        # Maps each label to the names of its pkg-config modules in Debian.
        targets = {
            "absl/algorithm:container": ["absl_algorithm_container"],
            "absl/base:core_headers": ["absl_core_headers"],
            "absl/cleanup:cleanup": ["absl_cleanup"],
            "absl/container:btree": ["absl_btree"],
            "absl/container:fixed_array": ["absl_fixed_array"],
            "absl/container:flat_hash_map": ["absl_flat_hash_map"],
            "absl/container:flat_hash_set": ["absl_flat_hash_set"],
            "absl/container:inlined_vector": ["absl_inlined_vector"],
            "absl/container:node_hash_map": ["absl_node_hash_map"],
            "absl/debugging:stacktrace": ["absl_stacktrace"],
            "absl/debugging:symbolize": ["absl_symbolize"],
            "absl/flags:flag": ["absl_flags"],
            "absl/flags:parse": ["absl_flags_parse"],
            "absl/flags:usage": ["absl_flags_usage"],
            "absl/functional:any_invocable": ["absl_any_invocable"],
            "absl/functional:function_ref": ["absl_function_ref"],
            "absl/hash:hash": ["absl_hash"],
            "absl/numeric:bits": ["absl_bits"],
            "absl/random:random": ["absl_random_random"],
            "absl/status:status": ["absl_status"],
            "absl/status:statusor": ["absl_statusor"],
            "absl/strings:cord": ["absl_cord"],
            "absl/strings:str_format": ["absl_str_format"],
            "absl/strings:strings": ["absl_strings"],
            "absl/synchronization:synchronization": ["absl_synchronization"],
            "absl/time:time": ["absl_time"],
            "absl/types:optional": ["absl_optional"],
            "absl/types:span": ["absl_span"],
        },
    )
    system_repository(
        name = "com_google_protobuf",
        targets = {":protobuf": ["protobuf"]},
        links = {
            "bin/protoc": "/usr/bin/protoc",
            "include/google/protobuf": "/usr/include/google/protobuf",
        },
        build_files = {"@penstock//third_party/system:protobuf.BUILD": ""},
    )
    system_repository(
        name = "com_github_grpc_grpc",
        targets = {
            ":grpc++": ["grpc++", "@com_google_protobuf//:protobuf"],
            ":grpc++_reflection": ["-lgrpc++_reflection", ":grpc++"],
        },
        links = {"bin/grpc_cpp_plugin": "/usr/bin/grpc_cpp_plugin"},
        build_files = {"@penstock//third_party/system:grpc.BUILD": ""},
    )
    system_repository(
        name = "com_google_googletest",
        targets = {
            ":gtest": ["gmock", "gtest"],
            ":gtest_main": ["-lgmock_main", ":gtest"],
        },
    )
    system_repository(
        name = "com_github_google_benchmark",
        targets = {
            ":benchmark": ["benchmark"],
            ":benchmark_main": ["-lbenchmark_main", ":benchmark"],
        },
    )
    system_repository(name = "civetweb", targets = {":civetweb": ["-lcivetweb"]})
    system_repository(name = "cli11", targets = {":cli11": ["CLI11"]})
    system_repository(name = "eigen", targets = {":eigen": ["eigen3", "-DEIGEN_MPL2_ONLY"]})
    system_repository(name = "farmhash", targets = {":farmhash": ["-lfarmhash"]})
    system_repository(name = "giflib", targets = {":gif": ["-lgif"]})
    system_repository(name = "highwayhash", targets = {":highwayhash": ["-lhighwayhash"]})
    system_repository(name = "icu", targets = {":icu": ["icu-uc"]})
    system_repository(name = "isal", targets = {":isal": ["libisal"]})
    system_repository(name = "leveldb", targets = {":leveldb": ["-lleveldb"]})
    system_repository(name = "libjpeg_turbo", targets = {":jpeg": ["libjpeg"]})
    system_repository(name = "libpng", targets = {":libpng": ["libpng"]})
    system_repository(name = "nlohmann_json", targets = {":json": ["nlohmann_json"]})
    system_repository(name = "onednn", targets = {":onednn": ["-ldnnl", "-l:libgomp.so.1"]})
    system_repository(name = "openblas", targets = {":openblas": ["openblas"]})
    system_repository(
        name = "openssl",
        targets = {":ssl": ["libssl", "libcrypto"]},
    )
    system_repository(name = "prometheus_cpp", targets = {":core": ["prometheus-cpp-core"]})
    system_repository(name = "rdma_core", targets = {":ibverbs": ["libibverbs"]})
    system_repository(name = "snappy", targets = {":snappy": ["snappy"]})
    system_repository(name = "re2", targets = {":re2": ["re2"]})
    system_repository(name = "spdlog", targets = {":spdlog": ["spdlog"]})
    system_repository(name = "zlib", targets = {":zlib": ["zlib"]})
