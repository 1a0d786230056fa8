// SPDX-License-Identifier: Apache-2.0
#include "tools/benchmark/local_step.h"

#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "client/session.h"
#include "tools/benchmark/workloads.h"

namespace penstock::benchmark {
namespace {

using client::Callable;
using client::Program;
using client::Session;

// A program with the step to measure, and the session that runs it.
struct LocalStep {
  Program program;
  std::unique_ptr<Session> session;
  std::optional<Callable> run;
  std::vector<Tensor> feeds;

  Status Start(const SessionOptions& options = {}) {
    ASSIGN_OR_RETURN(session, Session::New(program, "", options));
    return OkStatus();
  }
  Status Prepare(const std::vector<Output>& fed, const std::vector<Output>& fetched,
                 const std::vector<Output>& targets) {
    ASSIGN_OR_RETURN(Callable callable, session->MakeCallable({fed.begin(), fed.end()},
                                                              {fetched.begin(), fetched.end()},
                                                              {targets.begin(), targets.end()}));
    run.emplace(std::move(callable));
    return OkStatus();
  }
  StatusOr<double> Seconds() {
    return MedianSeconds([this] { return (*run)(feeds).status(); });
  }
};

}  // namespace

StatusOr<Round> PrepareExecutor(const std::string& shape, const std::string& kind) {
  const auto step = std::make_shared<LocalStep>();
  ASSIGN_OR_RETURN(const ExecutorGraph graph, BuildExecutorGraph(step->program, shape, kind));
  SessionOptions options;
  options.optimize =
      false;  // off, because the optimiser would fold the graph that the executor has to run
  RETURN_IF_ERROR(step->Start(options));
  RETURN_IF_ERROR(step->Prepare(graph.feeds, {}, {graph.target}));
  step->feeds.assign(graph.feeds.size(), Tensor::Scalar<float>(1));
  return Round([step, nodes = graph.nodes]() -> StatusOr<double> {
    ASSIGN_OR_RETURN(const double seconds, step->Seconds());
    return nodes / seconds;
  });
}

StatusOr<Round> PrepareLocalStep(const std::string& how) {
  if (how != "run" && how != "callable") return InvalidArgument("no local step '", how, "'");
  const auto step = std::make_shared<LocalStep>();
  const Output x =
      CallIn(step->program, "Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", Shape()}});
  const Output y = x + 1.0;
  RETURN_IF_ERROR(step->Start());
  step->feeds = {Tensor::Scalar<float>(1)};
  if (how == "callable") {
    RETURN_IF_ERROR(step->Prepare({x}, {y}, {}));
    return Round([step]() -> StatusOr<double> {
      ASSIGN_OR_RETURN(const double seconds, step->Seconds());
      return seconds * 1e6;
    });
  }
  return Round([step, x = x.name(), y = y.name()]() -> StatusOr<double> {
    ASSIGN_OR_RETURN(const double seconds, MedianSeconds([&] {
                       return step->session->Run({{x, step->feeds[0]}}, {y}).status();
                     }));
    return seconds * 1e6;
  });
}

StatusOr<Round> PrepareTraining(const std::string& model) {
  const auto step = std::make_shared<LocalStep>();
  ASSIGN_OR_RETURN(const TrainingGraph graph, BuildTraining(step->program, model));
  RETURN_IF_ERROR(step->Start());
  RETURN_IF_ERROR(step->session->Execute(graph.init));
  RETURN_IF_ERROR(step->Prepare({graph.images, graph.labels}, {}, {graph.train}));
  Tensor images(DType::kFloat, Shape({kBatch, kPixels})), labels(DType::kInt32, Shape({kBatch}));
  std::mt19937 random(1);
  std::uniform_real_distribution<float> brightness;
  for (float& pixel : images.mutable_flat<float>()) pixel = brightness(random);
  for (int i = 0; i < kBatch; ++i) labels.mutable_data<int32_t>()[i] = i % 10;
  step->feeds = {images, labels};
  return Round([step]() -> StatusOr<double> {
    ASSIGN_OR_RETURN(const double seconds, step->Seconds());
    return seconds * 1e3;
  });
}

StatusOr<Round> PrepareEmbedding(const std::string& kind) {
  if (kind != "dynamic") return InvalidArgument("no table '", kind, "'");
  const auto step = std::make_shared<LocalStep>();
  const EmbeddingGraph graph = BuildEmbedding(step->program);
  RETURN_IF_ERROR(step->program.status());
  RETURN_IF_ERROR(step->Start());
  RETURN_IF_ERROR(step->session->Execute(graph.init));
  RETURN_IF_ERROR(step->Prepare({graph.ids, graph.splits}, {}, {graph.train}));
  Tensor splits(DType::kInt64, Shape({kBags + 1}));
  for (int i = 0; i <= kBags; ++i) splits.mutable_data<int64_t>()[i] = int64_t{i} * kBagIds;
  constexpr int64_t kIds = int64_t{kBags} * kBagIds;
  for (int64_t first = 0; first < kTableRows; first += kIds) {
    Tensor ids(DType::kInt64, Shape({kIds}));
    for (int64_t i = 0; i < kIds; ++i) ids.mutable_data<int64_t>()[i] = first + i;
    RETURN_IF_ERROR((*step->run)({ids, splits}).status());
  }
  std::mt19937 random(1);
  std::vector<Tensor> batches;
  for (int i = 0; i < kBagBatches; ++i) {
    Tensor& ids = batches.emplace_back(DType::kInt64, Shape({kIds}));
    for (int64_t& id : ids.mutable_flat<int64_t>()) id = random() % kTableRows;
  }
  return Round([step, splits, batches, next = size_t{0}]() mutable -> StatusOr<double> {
    ASSIGN_OR_RETURN(const double seconds, MedianSeconds([&] {
                       return (*step->run)({batches[next++ % batches.size()], splits}).status();
                     }));
    return seconds * 1e3;
  });
}

}  // namespace penstock::benchmark
