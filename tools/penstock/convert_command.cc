// SPDX-License-Identifier: Apache-2.0
//
// `penstock convert`: writes a data set as TFRecord shards, with one tf.train.Example per picture.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/examples/fashion_mnist_data.h"
#include "core/base/check.h"
#include "core/base/env.h"
#include "core/record/record_writer.h"
#include "proto/tensorflow/example.pb.h"
#include "tools/penstock/commands.h"

namespace penstock {
namespace {

struct ConvertOptions {
  std::string to, from = "/usr/share/datasets/fashion-mnist", compression;
  int shards = 4;
};

void SetLong(int64_t value, tensorflow::Feature* feature) {
  feature->mutable_int64_list()->add_value(value);
}

std::string ExampleOf(const examples::Pictures& pictures, int64_t i) {
  tensorflow::Example example;
  auto& features = *example.mutable_features()->mutable_feature();
  const Tensor image = pictures.images.Slice(i, i + 1);
  features["image_raw"].mutable_bytes_list()->add_value(image.raw_data(), image.bytes());
  SetLong(image.dim(1), &features["height"]);
  SetLong(image.dim(2), &features["width"]);
  SetLong(pictures.labels.data<uint8_t>()[i], &features["label"]);
  return example.SerializeAsString();
}

const char* Suffix(Compression compression) {
  switch (compression) {
    case Compression::kNone:
      return "";
    case Compression::kGzip:
      return ".gz";
    case Compression::kZlib:
      return ".zlib";
  }
  CHECK(false, "no such compression");
}

// Writes the shards. Picture i goes to shard i % shards, so that each shard has a mix of all
// classes. Compressed shards have another suffix, so that readers of uncompressed ones do not find
// them.
Status WriteShards(Env& env, const ConvertOptions& options, Compression compression,
                   const std::string& part, const examples::Pictures& pictures) {
  std::vector<std::unique_ptr<RecordWriter>> writers;
  for (int shard = 0; shard < options.shards; ++shard) {
    const std::string path = absl::StrFormat("%s/%s-%05d-of-%05d.tfrecord%s", options.to, part,
                                             shard, options.shards, Suffix(compression));
    ASSIGN_OR_RETURN(auto writer, RecordWriter::Create(env, path, compression));
    writers.push_back(std::move(writer));
  }
  for (int64_t i = 0; i < pictures.size(); ++i) {
    RETURN_IF_ERROR(writers[i % options.shards]->Write(ExampleOf(pictures, i)));
  }
  for (const auto& writer : writers) RETURN_IF_ERROR(writer->Close());
  std::printf("%s: %lld records in %d files %s/%s-*.tfrecord\n", part.c_str(),
              static_cast<long long>(pictures.size()), options.shards, options.to.c_str(),
              part.c_str());
  return OkStatus();
}

Status RunConvertCommand(const ConvertOptions& options) {
  Env& env = Env::Real();
  ASSIGN_OR_RETURN(const Compression compression, ParseCompression(options.compression));
  ASSIGN_OR_RETURN(const examples::FashionMnist data,
                   examples::ReadFashionMnist(env, options.from));
  RETURN_IF_ERROR(env.CreateDirectories(options.to));
  RETURN_IF_ERROR(WriteShards(env, options, compression, "train", data.train));
  return WriteShards(env, options, compression, "test", data.test);
}

}  // namespace

void AddConvertCommand(CLI::App& app, int* exit_code) {
  CLI::App* convert = app.add_subcommand("convert", "Turn Fashion-MNIST into TFRecord files");
  convert->footer(
      "Each record is a tf.train.Example with image_raw (bytes), height, width and label (int64).\n"
      "  penstock convert /tmp/fashion --shards=8\n"
      "  penstock convert /tmp/fashion --compression=GZIP\n"
      "fashion_mnist --input=tfrecord reads shards without compression; compressed ones end in "
      ".gz\n"
      "or .zlib and are read by TFRecordReader with compression_type.\n");
  auto options = std::make_shared<ConvertOptions>();
  convert->add_option("to", options->to, "The folder to write to; created if it is missing")
      ->required();
  convert->add_option("--data_dir", options->from, "The folder of the IDX files")
      ->capture_default_str();
  convert->add_option("--shards", options->shards, "Number of files for train, and for test")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  convert->add_option("--compression", options->compression, "GZIP or ZLIB (default: none)")
      ->check(CLI::IsMember({"", "GZIP", "ZLIB"}));
  convert->callback([options, exit_code] { *exit_code = ExitCodeOf(RunConvertCommand(*options)); });
}

}  // namespace penstock
