// SPDX-License-Identifier: Apache-2.0
//
// FixedLengthRecordDataset, FixedLengthRecordDatasetV2: read records of equal length from files,
// and skip the header and the footer.
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "core/record/input_stream.h"
#include "kernels/dataset/file_dataset.h"

namespace penstock {
namespace {

struct Lengths {
  int64_t header, record, footer;
};

// Keeps the last bytes that it has read, as many as the footer has, in a buffer: only the end of
// the file shows that they are the footer, because the size of a compressed file is not known.
class FixedRecords final : public FilePieces {
 public:
  FixedRecords(std::unique_ptr<InputStream> stream, const Lengths& lengths)
      : stream_(std::move(stream)), lengths_(lengths) {}

  StatusOr<bool> Read(std::string* record) override {
    const int64_t wanted = lengths_.record + lengths_.footer;
    std::string more;
    RETURN_IF_ERROR(stream_->Read(wanted - static_cast<int64_t>(ahead_.size()), &more));
    ahead_ += more;
    const auto found = static_cast<int64_t>(ahead_.size());
    if (found < wanted) {
      if (found <= lengths_.footer) return found == lengths_.footer ? End() : WrongLength(found);
      return WrongLength(found);
    }
    *record = ahead_.substr(0, lengths_.record);
    ahead_.erase(0, lengths_.record);
    return true;
  }
  int64_t offset() const override {
    return stream_->offset() - static_cast<int64_t>(ahead_.size()) - lengths_.header;
  }

 private:
  static StatusOr<bool> End() { return false; }
  StatusOr<bool> WrongLength(int64_t found) const {
    return InvalidArgument("Excess bytes of ", found - lengths_.footer, " before the footer of '",
                           stream_->path(), "': its body must be a multiple of the record length ",
                           lengths_.record, " bytes long.");
  }

  const std::unique_ptr<InputStream> stream_;
  const Lengths lengths_;
  std::string ahead_;
};

// Checks the file's size before the first record is read. InvalidArgument unless the file has a
// header, whole records and a footer. Must not be called for compressed files, because the size of
// their contents is not known.
Status CheckBody(Env& env, const std::string& path, const Lengths& lengths) {
  ASSIGN_OR_RETURN(const auto file, env.OpenFile(path));
  const int64_t body = file->size() - lengths.header - lengths.footer;
  if (body >= 0 && body % lengths.record == 0) return OkStatus();
  return InvalidArgument("Excluding the header (", lengths.header, " bytes) and footer (",
                         lengths.footer, " bytes), input file \"", path, "\" has body length ",
                         body, " bytes, which is not an exact multiple of the record length (",
                         lengths.record, " bytes).");
}

StatusOr<int64_t> Bytes(const KernelContext& ctx, int i, const char* name, int64_t min) {
  ASSIGN_OR_RETURN(const int64_t bytes, ScalarInput<int64_t>(ctx, i, name));
  if (bytes >= min && bytes <= InputStream::kMaxRecordBytes) return bytes;
  return InvalidArgument("`", name, "` must be ", min > 0 ? "> 0" : ">= 0", " and at most ",
                         InputStream::kMaxRecordBytes, ", is ", bytes);
}

template <bool kCompression>
class FixedLengthKernel final : public DatasetKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(std::vector<std::string> files, FilesInput(ctx, 0));
    Lengths lengths;
    ASSIGN_OR_RETURN(lengths.header, Bytes(ctx, 1, "header_bytes", 0));
    ASSIGN_OR_RETURN(lengths.record, Bytes(ctx, 2, "record_bytes", 1));
    ASSIGN_OR_RETURN(lengths.footer, Bytes(ctx, 3, "footer_bytes", 0));
    RETURN_IF_ERROR(CheckBufferSize(ctx, 4));
    Compression compression = Compression::kNone;
    if (kCompression) {
      ASSIGN_OR_RETURN(compression, CompressionInput(ctx, 5));
    }
    return NewFileDataset(
        "FixedLengthRecord", std::move(files), {},
        [compression, lengths](Env& env, const std::string& path,
                               int64_t offset) -> StatusOr<std::unique_ptr<FilePieces>> {
          if (compression == Compression::kNone) {
            RETURN_IF_ERROR(CheckBody(env, path, lengths));
          }
          ASSIGN_OR_RETURN(auto stream, InputStream::Open(env, path, compression));
          RETURN_IF_ERROR(stream->Skip(lengths.header));
          RETURN_IF_ERROR(stream->Skip(offset));
          return std::make_unique<FixedRecords>(std::move(stream), lengths);
        });
  }
};

DatasetOp FixedLengthOp(bool compression) {
  DatasetOp op{.doc = "The records, of equal length, of files; headers and footers are skipped.",
               .inputs = {{"filenames", "string"},
                          {"header_bytes", "int64"},
                          {"record_bytes", "int64"},
                          {"footer_bytes", "int64"},
                          {"buffer_size", "int64"}},
               .spec = false,
               .stateful = true,
               .acts_outside = true};
  if (compression) op.inputs.push_back({"compression_type", "string"});
  return op;
}

OP(FixedLengthRecordDataset) { return FixedLengthOp(false); }
OP(FixedLengthRecordDatasetV2) { return FixedLengthOp(true); }
KERNEL_ANY_TYPE(FixedLengthRecordDataset, FixedLengthKernel<false>);
KERNEL_ANY_TYPE(FixedLengthRecordDatasetV2, FixedLengthKernel<true>);

}  // namespace
}  // namespace penstock
