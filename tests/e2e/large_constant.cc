// SPDX-License-Identifier: Apache-2.0
//
// A client whose graph has a large constant on a task: runs steps that read its last elements,
// writes the graph to a file, and runs the graph that it reads from the file. Prints what each part
// took, and the memory that this process has used at most.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "core/graph/builder.h"
#include "core/graph/graph_proto.h"
#include "core/op/registry.h"
#include "distributed/rpc/graph_upload.h"
#include "distributed/rpc/remote_session.h"

namespace penstock {
namespace {

class Stopwatch {
 public:
  // Prints the time since the last call, and the peak of the memory.
  void Print(const char* what) {
    const auto now = std::chrono::steady_clock::now();
    rusage use;
    getrusage(RUSAGE_SELF, &use);
    std::printf("%s: %.2f s, peak %.2f GB\n", what,
                std::chrono::duration<double>(now - last_).count(),
                static_cast<double>(use.ru_maxrss) / 1e6);
    std::fflush(stdout);
    last_ = std::chrono::steady_clock::now();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

struct Flags {
  std::string target, device = "/job:ps/task:0", file;
  int64_t bytes = 0, more_bytes = 0, message_bytes = GraphUpload::kLimits.whole_bytes_max;
};

constexpr char kFrom[] = "Placeholder:0", kPart[] = "Slice:0";

// Returns a graph with a constant whose element i is i % 1000, and kPart: the two elements of it
// from the index that is fed as kFrom. If there are more_bytes, a second constant has them.
StatusOr<Graph> MakeGraph(const Flags& flags) {
  GraphBuilder g;
  const auto device = g.DeviceScope(flags.device);
  const int64_t count = flags.bytes / static_cast<int64_t>(sizeof(float));
  ASSIGN_OR_RETURN(Tensor value, Tensor::Make(CpuAllocator(), DType::kFloat, Shape({count})));
  for (int64_t i = 0; i < count; ++i) value.mutable_data<float>()[i] = static_cast<float>(i % 1000);
  const Output large = Constant(g, std::move(value));
  const Output from =
      CallIn(g, "Placeholder", {}, {{"dtype", DType::kInt64}, {"shape", PartialShape({1})}});
  Call("Slice", {large, from, Constant(g, Tensor::Vector<int64_t>({2}))});
  if (flags.more_bytes > 0) {
    ASSIGN_OR_RETURN(Tensor more,
                     Tensor::Make(CpuAllocator(), DType::kUint8, Shape({flags.more_bytes})));
    std::fill_n(more.mutable_data<uint8_t>(), flags.more_bytes, 0);
    Constant(g, std::move(more));
  }
  RETURN_IF_ERROR(g.status());
  return std::move(g.mutable_graph());
}

Status RunGraph(const Flags& flags, const Graph& graph) {
  Stopwatch watch;
  PieceLimits limits = GraphUpload::kLimits;
  limits.whole_bytes_max = flags.message_bytes;
  ASSIGN_OR_RETURN(const auto session,
                   NewRemoteSession(flags.target, SessionOptions(), Env::Real(), limits));
  RETURN_IF_ERROR(session->Extend(graph));
  watch.Print("sent to the master");
  const int64_t last = flags.bytes / static_cast<int64_t>(sizeof(float)) - 2;
  for (const char* what : {"first step", "second step"}) {
    std::vector<Tensor> out;
    RETURN_IF_ERROR(
        session->Run({}, {{kFrom, Tensor::Vector<int64_t>({last})}}, {kPart}, {}, &out, nullptr));
    watch.Print(what);
    for (int i = 0; i < 2; ++i) {
      const float expected = static_cast<float>((last + i) % 1000), got = out[0].data<float>()[i];
      if (got != expected) return Internal("expected ", expected, ", got ", got);
    }
  }
  return session->Close();
}

Status RunFlags(const Flags& flags) {
  Stopwatch watch;
  std::optional<Graph> graph;
  ASSIGN_OR_RETURN(graph, MakeGraph(flags));
  watch.Print("made");
  RETURN_IF_ERROR(RunGraph(flags, *graph));
  watch.Print("run");
  if (flags.file.empty()) return OkStatus();
  RETURN_IF_ERROR(WriteGraphFile(Env::Real(), *graph, flags.file));
  watch.Print("written");
  graph.reset();
  ASSIGN_OR_RETURN(graph, ReadGraphFile(Env::Real(), flags.file, Registry::Global()));
  watch.Print("read");
  RETURN_IF_ERROR(RunGraph(flags, *graph));
  watch.Print("run");
  return OkStatus();
}

int Main(int argc, char** argv) {
  CLI::App app;
  Flags flags;
  app.add_option("--target", flags.target, "grpc://host:port of the master")->required();
  app.add_option("--bytes", flags.bytes, "bytes of the constant")->required();
  app.add_option("--more_bytes", flags.more_bytes, "bytes of a second constant");
  app.add_option("--device", flags.device, "device of the constant");
  app.add_option("--message_bytes", flags.message_bytes, "larger graphs are sent in parts");
  app.add_option("--file", flags.file, "where to write the graph");
  CLI11_PARSE(app, argc, argv);
  const Status status = RunFlags(flags);
  if (status.ok()) {
    std::printf("done\n");
  } else {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  }
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) { return penstock::Main(argc, argv); }
