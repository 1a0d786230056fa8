// SPDX-License-Identifier: Apache-2.0
#include "client/examples/fashion_mnist_records.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "core/op/gradient.h"
#include "core/record/record_reader.h"
#include "proto/tensorflow/example.pb.h"

namespace penstock::examples {
namespace {

constexpr int64_t kSide = 28;
constexpr int64_t kNumKinds = 10;
constexpr int64_t kMixed = 4096;  // number of records in the buffer that batches are drawn from

StatusOr<std::vector<std::string>> Shards(Env& env, const std::string& directory,
                                          const std::string& part) {
  std::vector<std::string> shards;
  const auto names = env.ListDirectory(directory);
  if (names.ok()) {
    for (const std::string& name : *names) {
      if (absl::StartsWith(name, part + "-") && absl::EndsWith(name, ".tfrecord")) {
        shards.push_back(StrCat(directory, "/", name));
      }
    }
  }
  if (shards.empty()) {
    return NotFound("no ", part, "-*.tfrecord in '", directory, "': `penstock convert ", directory,
                    "` makes them");
  }
  std::sort(shards.begin(), shards.end());
  return shards;
}

// Returns this worker's shards. InvalidArgument if it gets none.
StatusOr<std::vector<std::string>> TrainShards(Env& env, const std::string& directory,
                                               const client::WorkerShare& share) {
  ASSIGN_OR_RETURN(const std::vector<std::string> all, Shards(env, directory, "train"));
  std::vector<std::string> mine;
  for (size_t i = share.worker; i < all.size(); i += share.workers) mine.push_back(all[i]);
  if (!mine.empty()) return mine;
  return InvalidArgument("there are ", all.size(), " files train-*.tfrecord in '", directory,
                         "' for ", share.workers, " workers: `penstock convert ", directory,
                         " --shards=", share.workers, "` makes one for each");
}

// Returns the pictures and labels of serialized Examples.
Outputs ParseRecords(GraphBuilder& program, Output records) {
  const auto strings = [&](const std::vector<std::string>& values) {
    return Constant(program, Tensor::Vector<std::string>(values));
  };
  const Output none = strings({});
  const Outputs defaults = {none, Constant(program, Tensor::Vector<int64_t>({}))};
  const Outputs parsed = CallN(
      "ParseExampleV2", {records, none, none, strings({"image_raw", "label"}), none, defaults},
      {{"num_sparse", 0},
       {"sparse_types", std::vector<DType>{}},
       {"ragged_value_types", std::vector<DType>{}},
       {"ragged_split_types", std::vector<DType>{}},
       {"dense_shapes", std::vector<PartialShape>(2, PartialShape::Scalar())}});
  const Output bytes = Call("DecodeRaw", {parsed[0]}, {{"out_type", DType::kUint8}});
  const Output shape = Constant(program, Tensor::Vector<int32_t>({-1, kSide, kSide}));
  return {Reshape(bytes, shape), Cast(parsed[1], DType::kUint8)};
}

Status AppendPictures(Env& env, const std::string& path, std::vector<std::string>* images,
                      std::vector<uint8_t>* labels) {
  ASSIGN_OR_RETURN(RecordReader reader, RecordReader::Open(env, path));
  std::string record;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader.Read(&record));
    if (!more) return OkStatus();
    tensorflow::Example example;
    if (!example.ParseFromString(record)) {
      return DataLoss(path, ": record ", images->size(), " is no tf.train.Example");
    }
    const auto& features = example.features().feature();
    const auto image = features.find("image_raw"), label = features.find("label");
    if (image == features.end() || image->second.bytes_list().value_size() != 1 ||
        image->second.bytes_list().value(0).size() != kSide * kSide || label == features.end() ||
        label->second.int64_list().value_size() != 1) {
      return InvalidArgument(path, ": record ", images->size(),
                             " has no image_raw of 784 bytes and label");
    }
    const int64_t kind = label->second.int64_list().value(0);
    if (kind < 0 || kind >= kNumKinds) {
      return InvalidArgument(path, ": record ", images->size(), " has the label ", kind,
                             ", must be in [0, ", kNumKinds, ")");
    }
    images->push_back(image->second.bytes_list().value(0));
    labels->push_back(static_cast<uint8_t>(kind));
  }
}

}  // namespace

StatusOr<client::Dataset> ReadPictureBatches(GraphBuilder& program, Env& env,
                                             const std::string& directory,
                                             const ReadOptions& options) {
  using client::Dataset;
  ASSIGN_OR_RETURN(const std::vector<std::string> shards,
                   TrainShards(env, directory, options.share));
  const Output files = Constant(program, Tensor::Vector<std::string>(shards));
  return Dataset::TensorSlices(program, {files})
      .Shuffle(static_cast<int64_t>(shards.size()), options.seed)
      .FlatMap([&](const Outputs& file) { return Dataset::TFRecords(program, file[0]); })
      .Shuffle(kMixed, options.seed)
      .Repeat()
      .Batch(options.batch_size, {.drop_remainder = true})
      .Map([&](const Outputs& records) { return ParseRecords(program, records[0]); })
      .Prefetch();
}

StatusOr<Pictures> ReadTestRecords(Env& env, const std::string& directory) {
  ASSIGN_OR_RETURN(const std::vector<std::string> shards, Shards(env, directory, "test"));
  std::vector<std::string> images;
  std::vector<uint8_t> labels;
  for (const std::string& shard : shards) {
    RETURN_IF_ERROR(AppendPictures(env, shard, &images, &labels));
  }
  Pictures pictures{Tensor(DType::kUint8, {static_cast<int64_t>(images.size()), kSide, kSide}),
                    Tensor::Vector<uint8_t>(labels)};
  uint8_t* pixel = pictures.images.mutable_data<uint8_t>();
  for (const std::string& image : images) pixel = std::copy(image.begin(), image.end(), pixel);
  return pictures;
}

}  // namespace penstock::examples
