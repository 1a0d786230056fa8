// SPDX-License-Identifier: Apache-2.0
//
// TFRecordDataset, TFRecordDatasetV2: the records of TFRecord files.
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "core/record/record_reader.h"
#include "kernels/dataset/file_dataset.h"

namespace penstock {
namespace {

class Records final : public FilePieces {
 public:
  explicit Records(RecordReader reader) : reader_(std::move(reader)) {}
  StatusOr<bool> Read(std::string* record) override { return reader_.Read(record); }
  int64_t offset() const override { return reader_.offset(); }

 private:
  RecordReader reader_;
};

template <bool kOffsets>
class TFRecordKernel final : public DatasetKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(std::vector<std::string> files, FilesInput(ctx, 0));
    ASSIGN_OR_RETURN(const Compression compression, CompressionInput(ctx, 1));
    RETURN_IF_ERROR(CheckBufferSize(ctx, 2, /*min=*/-1));  // -1 if the client sets no size
    std::vector<int64_t> offsets;
    if (kOffsets) {
      const auto given = ctx.input(3).flat<int64_t>();
      offsets.assign(given.begin(), given.end());
      if (!offsets.empty() && offsets.size() != files.size()) {
        return InvalidArgument("`byte_offsets` must have one entry for each of the ", files.size(),
                               " files, has ", offsets.size());
      }
      for (const int64_t offset : offsets) {
        if (offset < 0) return InvalidArgument("`byte_offsets` must be >= 0, one is ", offset);
      }
    }
    return NewFileDataset("TFRecord", std::move(files), std::move(offsets),
                          [compression](Env& env, const std::string& path,
                                        int64_t offset) -> StatusOr<std::unique_ptr<FilePieces>> {
                            ASSIGN_OR_RETURN(RecordReader reader,
                                             RecordReader::Open(env, path, compression));
                            RETURN_IF_ERROR(reader.SkipTo(offset));
                            return std::make_unique<Records>(std::move(reader));
                          });
  }
};

OP(TFRecordDataset) {
  return DatasetOp{
      .doc = "The records of TFRecord files.",
      .inputs = {{"filenames", "string"}, {"compression_type", "string"}, {"buffer_size", "int64"}},
      .spec = false,
      .stateful = true,
      .acts_outside = true};
}

OP(TFRecordDatasetV2) {
  return DatasetOp{.doc = "The records of TFRecord files, each read from a given offset.",
                   .inputs = {{"filenames", "string"},
                              {"compression_type", "string"},
                              {"buffer_size", "int64"},
                              {"byte_offsets", "int64"}},
                   .spec = false,
                   .stateful = true,
                   .acts_outside = true};
}

KERNEL_ANY_TYPE(TFRecordDataset, TFRecordKernel<false>);
KERNEL_ANY_TYPE(TFRecordDatasetV2, TFRecordKernel<true>);

}  // namespace
}  // namespace penstock
