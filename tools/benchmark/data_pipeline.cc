// SPDX-License-Identifier: Apache-2.0
#include "tools/benchmark/data_pipeline.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "client/dataset.h"
#include "client/dataset_iterator.h"
#include "client/session.h"
#include "core/base/env.h"
#include "core/op/gradient.h"
#include "core/record/record_writer.h"
#include "proto/tensorflow/example.pb.h"
#include "tools/benchmark/workloads.h"

namespace penstock::benchmark {
namespace {

using client::Dataset;

// A file of kExamples records, which the destructor removes.
class ExamplesFile {
 public:
  ~ExamplesFile() { (void)Env::Real().RemoveFile(path_); }

  Status Write() {
    Env& env = Env::Real();
    ASSIGN_OR_RETURN(const auto writer, RecordWriter::Create(env, path_));
    for (int i = 0; i < kExamples; ++i) {
      tensorflow::Example example;
      auto& features = *example.mutable_features()->mutable_feature();
      features["image_raw"].mutable_bytes_list()->add_value(
          std::string(kPixels, static_cast<char>(i)));
      features["label"].mutable_int64_list()->add_value(i % 10);
      RETURN_IF_ERROR(writer->Write(example.SerializeAsString()));
    }
    return writer->Close();
  }
  const std::string& path() const { return path_; }

 private:
  const std::string path_ = StrCat(std::filesystem::temp_directory_path().string(),
                                   "/penstock_examples_", Env::Real().RandomU64());
};

// The step of a measurement, the program that contains it, and the session that runs it.
struct DataStep {
  ExamplesFile file;
  client::Program program;
  std::unique_ptr<client::Session> session;
  std::optional<client::Callable> run;

  Status Start(const std::vector<Output>& initial, Output target, const Outputs& feeds = {}) {
    RETURN_IF_ERROR(program.status());
    ASSIGN_OR_RETURN(session, client::Session::New(program));
    for (const Output& init : initial) RETURN_IF_ERROR(session->Execute(init));
    ASSIGN_OR_RETURN(client::Callable callable,
                     session->MakeCallable({feeds.begin(), feeds.end()}, {}, {target}));
    run.emplace(std::move(callable));
    return OkStatus();
  }
};

// Returns the pictures, as strings of bytes, and the labels of one or several serialized examples.
Outputs Parse(client::Program& program, Output records) {
  const auto strings = [&](const std::vector<std::string>& values) {
    return Constant(program, Tensor::Vector<std::string>(values));
  };
  const Output none = strings({});
  const Outputs defaults = {none, Constant(program, Tensor::Vector<int64_t>({}))};
  return CallN("ParseExampleV2",
               {records, none, none, strings({"image_raw", "label"}), none, defaults},
               {{"num_sparse", 0},
                {"sparse_types", std::vector<DType>{}},
                {"ragged_value_types", std::vector<DType>{}},
                {"ragged_split_types", std::vector<DType>{}},
                {"dense_shapes", std::vector<PartialShape>(2, PartialShape::Scalar())}});
}

StatusOr<Dataset> Examples(client::Program& program, const std::string& file,
                           const std::string& what) {
  const auto parse = [&program](const Outputs& records) { return Parse(program, records[0]); };
  const Dataset records = Dataset::TFRecords(program, {file});
  if (what == "examples") {
    return records.Map(parse).Shuffle(kShuffled, 1).Repeat().Batch(kBatch);
  }
  if (what == "parallel_examples") {
    return records.ParallelMap(parse).Shuffle(kShuffled, 1).Repeat().Batch(kBatch).Prefetch();
  }
  const Dataset batches =
      records.Shuffle(kShuffled, 1).Repeat().Batch(kBatch, {.drop_remainder = true});
  if (what == "batched_examples") return batches.Map(parse);
  if (what == "training") return batches.Map(parse).Prefetch();
  return InvalidArgument("no pipeline '", what, "'");
}

Round ElementsPerSecond(std::shared_ptr<DataStep> step, int elements) {
  return [step = std::move(step), elements]() -> StatusOr<double> {
    ASSIGN_OR_RETURN(const double seconds,
                     MeanSeconds([&step] { return (*step->run)({}).status(); }));
    return elements / seconds;
  };
}

// Adds a training step on pictures of bytes and int64 labels.
StatusOr<TrainingGraph> BuildStep(client::Program& program, Output bytes, Output labels) {
  const Output images = Cast(bytes, DType::kFloat) * (1.0 / 255);
  return BuildTraining(program, "mlp", images, Cast(labels, DType::kInt32));
}

StatusOr<Round> PrepareReadTraining(std::shared_ptr<DataStep> step, const client::Iterator& input) {
  const Outputs batch = input.GetNext();
  const Output bytes = Call("DecodeRaw", {batch[0]}, {{"out_type", DType::kUint8}});
  const Output shape = Constant(step->program, Tensor::Vector<int32_t>({kBatch, kPixels}));
  ASSIGN_OR_RETURN(const TrainingGraph graph,
                   BuildStep(step->program, Reshape(bytes, shape), batch[1]));
  RETURN_IF_ERROR(step->Start({graph.init, input.initializer()}, graph.train));
  return Round([step = std::move(step)]() -> StatusOr<double> {
    ASSIGN_OR_RETURN(const double seconds,
                     MeanSeconds([&step] { return (*step->run)({}).status(); }));
    return seconds * 1e3;
  });
}

StatusOr<Round> PrepareFedTraining(std::shared_ptr<DataStep> step) {
  const auto fed = [&step](DType dtype, const Shape& shape) {
    return CallIn(step->program, "Placeholder", {}, {{"dtype", dtype}, {"shape", shape}});
  };
  const Outputs feeds = {fed(DType::kUint8, Shape({kBatch, kPixels})),
                         fed(DType::kInt64, Shape({kBatch}))};
  ASSIGN_OR_RETURN(const TrainingGraph graph, BuildStep(step->program, feeds[0], feeds[1]));
  RETURN_IF_ERROR(step->Start({graph.init}, graph.train, feeds));
  const std::string pictures(int64_t{kExamples} * kPixels, 'x');
  return Round(
      [step = std::move(step), pictures, random = std::mt19937(1)]() mutable -> StatusOr<double> {
        const auto run = [&] {
          Tensor images(DType::kUint8, Shape({kBatch, kPixels})), labels(DType::kInt64, {kBatch});
          for (int64_t i = 0; i < kBatch; ++i) {
            const int64_t chosen = random() % kExamples;
            std::copy_n(&pictures[chosen * kPixels], kPixels,
                        images.mutable_data<uint8_t>() + i * kPixels);
            labels.mutable_data<int64_t>()[i] = chosen % 10;
          }
          return (*step->run)({images, labels}).status();
        };
        ASSIGN_OR_RETURN(const double seconds, MeanSeconds(run));
        return seconds * 1e3;
      });
}

}  // namespace

StatusOr<Round> PrepareData(const std::string& what) {
  auto step = std::make_shared<DataStep>();
  client::Program& program = step->program;
  if (what == "map") {
    const auto plus_one = [&program](const Outputs& x) {
      return Outputs{x[0] + Constant(program, Tensor::Scalar<int64_t>(1))};
    };
    const client::Iterator input(
        Dataset::Range(program, 0, int64_t{1} << 40).Map(plus_one).Batch(kMapBatch));
    RETURN_IF_ERROR(step->Start({input.initializer()}, input.GetNext()[0]));
    return ElementsPerSecond(std::move(step), kMapBatch);
  }
  if (what == "fed_training") return PrepareFedTraining(std::move(step));
  RETURN_IF_ERROR(step->file.Write());
  ASSIGN_OR_RETURN(const Dataset examples, Examples(program, step->file.path(), what));
  const client::Iterator input(examples);
  if (what == "training") return PrepareReadTraining(std::move(step), input);
  RETURN_IF_ERROR(step->Start({input.initializer()}, input.GetNext()[0]));
  return ElementsPerSecond(std::move(step), kBatch);
}

}  // namespace penstock::benchmark
