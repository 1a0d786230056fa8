// SPDX-License-Identifier: Apache-2.0
#include "kernels/dataset/file_cache.h"

#include <memory>
#include <utility>

#include "kernels/dataset/cache_file.h"

namespace penstock {
namespace {

class FileCacheDataset final : public Dataset {
 public:
  FileCacheDataset(DatasetPtr input, std::string filename)
      : Dataset(input->spec(), {input}), filename_(std::move(filename)) {}
  const char* Name() const override { return "FileCache"; }
  int64_t Cardinality() const override { return input().Cardinality(); }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext&) const override {
    return std::make_unique<Iterator>(Self(this));
  }

 private:
  // kInput: the iterator reads the input, and writes the cache unless it was restored.
  enum Source : int64_t { kUndecided, kInput, kFile, kEnded };

  class Iterator final : public DatasetIterator {
   public:
    explicit Iterator(std::shared_ptr<const FileCacheDataset> dataset)
        : dataset_(std::move(dataset)) {}

    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      // After an error of the file, the next elements are not known, so every call returns the
      // error.
      RETURN_IF_ERROR(file_error_);
      *end = false;
      if (source_ == kUndecided) RETURN_IF_ERROR(Start(ctx));
      if (source_ == kInput) return FromInput(ctx, element, end);
      if (source_ == kFile) {
        if (ctx.cancellation->cancelled()) return ctx.cancellation->status();
        file_error_ = reader_->Read(element, end);
        RETURN_IF_ERROR(file_error_);
        if (*end) End();
        return OkStatus();
      }
      *end = true;
      return OkStatus();
    }

    // The state of an iterator that writes the cache is the state of its input. The restored
    // iterator reads the input to its end without writing the cache; the next iteration writes it.
    Status Save(const IteratorContext& ctx, StateWriter* writer) override {
      RETURN_IF_ERROR(file_error_);
      writer->Label("FileCache");
      writer->Int(source_);
      if (source_ == kInput) return input_->Save(ctx, writer);
      if (source_ == kFile) {
        writer->Int(reader_->position().offset);
        writer->Int(reader_->position().elements);
      }
      return OkStatus();
    }
    Status Restore(const IteratorContext& ctx, StateReader* reader) override {
      RETURN_IF_ERROR(reader->Label("FileCache"));
      ASSIGN_OR_RETURN(const int64_t source, reader->Int(kUndecided, kEnded));
      if (source == kInput) {
        ASSIGN_OR_RETURN(input_, dataset_->input().NewIterator(ctx));
        RETURN_IF_ERROR(input_->Restore(ctx, reader));
      } else if (source == kFile) {
        CacheReader::Position position;
        ASSIGN_OR_RETURN(position.offset, reader->Int());
        ASSIGN_OR_RETURN(position.elements, reader->Int());
        RETURN_IF_ERROR(OpenFile(ctx, position));
      }
      source_ = static_cast<Source>(source);
      return OkStatus();
    }

   private:
    Status OpenFile(const IteratorContext& ctx, const CacheReader::Position& position) {
      ASSIGN_OR_RETURN(
          reader_, CacheReader::Open(*ctx.env, dataset_->filename_, dataset_->spec(), position));
      return OkStatus();
    }

    Status Start(const IteratorContext& ctx) {
      const std::string& filename = dataset_->filename_;
      if (CacheExists(*ctx.env, filename)) {
        RETURN_IF_ERROR(OpenFile(ctx, {}));
        source_ = kFile;
        return OkStatus();
      }
      ASSIGN_OR_RETURN(input_, dataset_->input().NewIterator(ctx));
      ASSIGN_OR_RETURN(writer_, CacheWriter::Create(*ctx.env, filename, dataset_->spec()));
      source_ = kInput;
      return OkStatus();
    }

    Status FromInput(const IteratorContext& ctx, Element* element, bool* end) {
      RETURN_IF_ERROR(input_->GetNext(ctx, element, end));
      if (writer_ != nullptr) {
        file_error_ = *end ? writer_->Finish() : writer_->Write(*element);
        if (!file_error_.ok()) writer_ = nullptr;
      }
      if (*end) End();
      return file_error_;
    }

    void End() {
      source_ = kEnded;
      input_ = nullptr;
      reader_ = nullptr;
      writer_ = nullptr;
    }

    const std::shared_ptr<const FileCacheDataset> dataset_;
    Source source_ = kUndecided;
    IteratorPtr input_;                    // for kInput
    std::unique_ptr<CacheWriter> writer_;  // for kInput; null if the cache is not written
    std::unique_ptr<CacheReader> reader_;  // for kFile
    Status file_error_;
  };

  const std::string filename_;
};

}  // namespace

DatasetPtr NewFileCacheDataset(DatasetPtr input, std::string filename) {
  return std::make_shared<FileCacheDataset>(std::move(input), std::move(filename));
}

}  // namespace penstock
