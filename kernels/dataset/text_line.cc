// SPDX-License-Identifier: Apache-2.0
//
// TextLineDataset: the lines of text files.
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "core/record/input_stream.h"
#include "kernels/dataset/file_dataset.h"

namespace penstock {
namespace {

class Lines final : public FilePieces {
 public:
  explicit Lines(std::unique_ptr<InputStream> stream) : stream_(std::move(stream)) {}
  StatusOr<bool> Read(std::string* line) override { return stream_->ReadLine(line); }
  int64_t offset() const override { return stream_->offset(); }

 private:
  const std::unique_ptr<InputStream> stream_;
};

class TextLineKernel final : public DatasetKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(std::vector<std::string> files, FilesInput(ctx, 0));
    ASSIGN_OR_RETURN(const Compression compression, CompressionInput(ctx, 1));
    RETURN_IF_ERROR(CheckBufferSize(ctx, 2));
    return NewFileDataset("TextLine", std::move(files), {},
                          [compression](Env& env, const std::string& path,
                                        int64_t offset) -> StatusOr<std::unique_ptr<FilePieces>> {
                            ASSIGN_OR_RETURN(auto stream,
                                             InputStream::Open(env, path, compression));
                            RETURN_IF_ERROR(stream->Skip(offset));
                            return std::make_unique<Lines>(std::move(stream));
                          });
  }
};

OP(TextLineDataset) {
  return DatasetOp{
      .doc = "The lines of text files, without line ends.",
      .inputs = {{"filenames", "string"}, {"compression_type", "string"}, {"buffer_size", "int64"}},
      .spec = false,
      .stateful = true,
      .acts_outside = true};
}
KERNEL_ANY_TYPE(TextLineDataset, TextLineKernel);

}  // namespace
}  // namespace penstock
