// SPDX-License-Identifier: Apache-2.0
#include "kernels/dataset/file_dataset.h"

#include <utility>

namespace penstock {
namespace {

class FileDataset final : public Dataset {
 public:
  FileDataset(const char* name, std::vector<std::string> files, std::vector<int64_t> offsets,
              OpenPieces open)
      : Dataset({.types = {DType::kString}, .shapes = {PartialShape::Scalar()}}, {}),
        name_(name),
        files_(std::move(files)),
        offsets_(std::move(offsets)),
        open_(std::move(open)) {}
  const char* Name() const override { return name_; }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext&) const override {
    return std::make_unique<Iterator>(Self(this));
  }

 private:
  class Iterator final : public DatasetIterator {
   public:
    explicit Iterator(std::shared_ptr<const FileDataset> dataset) : dataset_(std::move(dataset)) {}

    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      while (file_ < dataset_->files_.size()) {
        if (ctx.cancellation->cancelled()) return ctx.cancellation->status();
        if (pieces_ == nullptr) {
          const std::vector<int64_t>& offsets = dataset_->offsets_;
          const Status opened = Open(*ctx.env, offsets.empty() ? 0 : offsets[file_]);
          // If a file cannot be opened, the next call continues with the next file.
          if (!opened.ok()) return ++file_, opened;
        }
        Tensor piece(DType::kString, Shape());
        const StatusOr<bool> found = pieces_->Read(piece.mutable_data<std::string>());
        if (found.ok() && *found) {
          element->assign(1, std::move(piece));
          *end = false;
          return OkStatus();
        }
        pieces_ = nullptr;
        ++file_;
        if (!found.ok()) return found.status();
      }
      *end = true;
      return OkStatus();
    }

    Status Save(const IteratorContext&, StateWriter* writer) override {
      writer->Label(dataset_->name_);
      writer->Int(static_cast<int64_t>(file_));
      writer->Int(pieces_ != nullptr);
      writer->Int(pieces_ == nullptr ? 0 : pieces_->offset());
      return OkStatus();
    }
    Status Restore(const IteratorContext& ctx, StateReader* reader) override {
      RETURN_IF_ERROR(reader->Label(dataset_->name_));
      ASSIGN_OR_RETURN(file_, reader->Int(0, static_cast<int64_t>(dataset_->files_.size())));
      ASSIGN_OR_RETURN(const int64_t open, reader->Int(0, 1));
      ASSIGN_OR_RETURN(const int64_t offset, reader->Int());
      if (open == 0 || file_ == dataset_->files_.size()) return OkStatus();
      return Open(*ctx.env, offset);
    }

   private:
    Status Open(Env& env, int64_t offset) {
      ASSIGN_OR_RETURN(pieces_, dataset_->open_(env, dataset_->files_[file_], offset));
      return OkStatus();
    }

    const std::shared_ptr<const FileDataset> dataset_;
    size_t file_ = 0;
    std::unique_ptr<FilePieces> pieces_;  // the open file; null: none
  };

  const char* const name_;
  const std::vector<std::string> files_;
  const std::vector<int64_t> offsets_;
  const OpenPieces open_;
};

}  // namespace

DatasetPtr NewFileDataset(const char* name, std::vector<std::string> files,
                          std::vector<int64_t> offsets, OpenPieces open) {
  return std::make_shared<FileDataset>(name, std::move(files), std::move(offsets), std::move(open));
}

StatusOr<std::vector<std::string>> FilesInput(const KernelContext& ctx, int i) {
  const Tensor& input = ctx.input(i);
  if (input.rank() > 1) return InvalidArgument("`filenames` must be a scalar or a vector.");
  const auto files = input.flat<std::string>();
  return std::vector<std::string>(files.begin(), files.end());
}

StatusOr<Compression> CompressionInput(const KernelContext& ctx, int i) {
  ASSIGN_OR_RETURN(const std::string name, ScalarInput<std::string>(ctx, i, "compression_type"));
  StatusOr<Compression> compression = ParseCompression(name);
  if (compression.ok()) return compression;
  return InvalidArgument("Unsupported compression_type: ", name, ".");
}

Status CheckBufferSize(const KernelContext& ctx, int i, int64_t min) {
  ASSIGN_OR_RETURN(const int64_t bytes, ScalarInput<int64_t>(ctx, i, "buffer_size"));
  if (bytes >= min) return OkStatus();
  return InvalidArgument("`buffer_size` must be >= 0 (0 == default)");
}

}  // namespace penstock
