// SPDX-License-Identifier: Apache-2.0
//
// WindowDataset: each element consists of datasets, one per component, that hold several elements
// of the input.
#include <deque>
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "kernels/dataset/dataset_kernel.h"
#include "kernels/dataset/elements_dataset.h"

namespace penstock {
namespace {

struct Windows {
  int64_t size, shift, stride;
  bool drop_remainder;

  // Returns the number of input elements from the first to the last element of a window.
  int64_t span() const { return (size - 1) * stride + 1; }
};

ElementSpec SpecOf(const ElementSpec& input) {
  return {.types = std::vector<DType>(input.types.size(), DType::kVariant),
          .shapes = std::vector<PartialShape>(input.types.size(), PartialShape::Scalar())};
}

class WindowDataset final : public Dataset {
 public:
  WindowDataset(DatasetPtr input, const Windows& windows)
      : Dataset(SpecOf(input->spec()), {input}), windows_(windows) {}
  const char* Name() const override { return "Window"; }
  int64_t Cardinality() const override {
    const int64_t elements = input().Cardinality();
    if (elements < 0) return elements;
    if (!windows_.drop_remainder) {
      return elements / windows_.shift + (elements % windows_.shift != 0);
    }
    return elements < windows_.span() ? 0 : (elements - windows_.span()) / windows_.shift + 1;
  }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    ASSIGN_OR_RETURN(IteratorPtr input, this->input().NewIterator(ctx));
    return std::make_unique<Iterator>(Self(this), std::move(input));
  }

 private:
  class Iterator final : public UnaryIterator {
   public:
    Iterator(std::shared_ptr<const WindowDataset> dataset, IteratorPtr input)
        : UnaryIterator(std::move(input)), dataset_(std::move(dataset)) {}

    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      const Windows& windows = dataset_->windows_;
      RETURN_IF_ERROR(Skip(ctx));
      while (!ended_ && static_cast<int64_t>(buffer_.size()) < windows.span()) {
        if (ctx.cancellation->cancelled()) return ctx.cancellation->status();
        Element next;
        bool at_end = false;
        RETURN_IF_ERROR(input_->GetNext(ctx, &next, &at_end));
        ended_ = at_end;
        if (at_end) break;
        // The input may be the results of a function that do not match its declared types.
        if (next.size() != dataset_->spec().types.size()) {
          return InvalidArgument("an element of the input has ", next.size(),
                                 " components, declared are ", dataset_->spec().types.size());
        }
        buffer_.push_back(std::move(next));
      }
      const bool whole = static_cast<int64_t>(buffer_.size()) >= windows.span();
      *end = buffer_.empty() || (!whole && windows.drop_remainder);
      if (*end) return OkStatus();
      MakeWindow(element);
      const auto held = static_cast<int64_t>(buffer_.size());
      skip_ = std::max<int64_t>(0, windows.shift - held);
      buffer_.erase(buffer_.begin(), buffer_.begin() + std::min(held, windows.shift));
      return OkStatus();
    }

    Status Save(const IteratorContext& ctx, StateWriter* writer) override {
      writer->Label("Window");
      writer->Int(ended_);
      writer->Int(skip_);
      writer->Int(static_cast<int64_t>(buffer_.size()));
      for (const Element& element : buffer_) writer->Values(element);
      return UnaryIterator::Save(ctx, writer);
    }
    Status Restore(const IteratorContext& ctx, StateReader* reader) override {
      RETURN_IF_ERROR(reader->Label("Window"));
      ASSIGN_OR_RETURN(ended_, reader->Int(0, 1));
      // A larger number to skip would keep GetNext reading an infinite input for ever.
      ASSIGN_OR_RETURN(skip_, reader->Int(0, dataset_->windows_.shift - 1));
      ASSIGN_OR_RETURN(const int64_t held, reader->Int(0, dataset_->windows_.span()));
      for (int64_t i = 0; i < held; ++i) {
        ASSIGN_OR_RETURN(Element element, reader->ElementOf(dataset_->input().spec()));
        buffer_.push_back(std::move(element));
      }
      return UnaryIterator::Restore(ctx, reader);
    }

   private:
    // Skips the elements between two windows.
    Status Skip(const IteratorContext& ctx) {
      for (; skip_ > 0 && !ended_; --skip_) {
        if (ctx.cancellation->cancelled()) return ctx.cancellation->status();
        Element skipped;
        bool at_end = false;
        RETURN_IF_ERROR(input_->GetNext(ctx, &skipped, &at_end));
        ended_ = at_end;
      }
      return OkStatus();
    }

    void MakeWindow(Element* element) const {
      const Windows& windows = dataset_->windows_;
      const ElementSpec& spec = dataset_->input().spec();
      const auto held = static_cast<int64_t>(buffer_.size());
      element->clear();
      for (size_t component = 0; component < spec.types.size(); ++component) {
        std::vector<Element> elements;
        for (int64_t i = 0; i < held; i += windows.stride) {
          elements.push_back({buffer_[i][component]});
        }
        element->push_back(
            ElementsTensor({.types = {spec.types[component]}, .shapes = {spec.shapes[component]}},
                           std::move(elements)));
      }
    }

    const std::shared_ptr<const WindowDataset> dataset_;
    std::deque<Element> buffer_;  // elements from the start of the next window
    bool ended_ = false;
    int64_t skip_ = 0;  // elements to skip before the next window
  };

  const Windows windows_;
};

class WindowKernel final : public DatasetKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    constexpr int64_t kSpanMax = int64_t{1} << 31;
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    Windows windows{};
    ASSIGN_OR_RETURN(windows.size, ScalarInput<int64_t>(ctx, 1, "size"));
    ASSIGN_OR_RETURN(windows.shift, ScalarInput<int64_t>(ctx, 2, "shift"));
    ASSIGN_OR_RETURN(windows.stride, ScalarInput<int64_t>(ctx, 3, "stride"));
    ASSIGN_OR_RETURN(windows.drop_remainder, ScalarInput<bool>(ctx, 4, "drop_remainder"));
    if (windows.size <= 0) return InvalidArgument("Window size must be greater than zero.");
    if (windows.shift <= 0) return InvalidArgument("Window shift must be greater than zero.");
    if (windows.stride <= 0) return InvalidArgument("Window stride must be greater than zero.");
    // A window of more than kSpanMax elements could never be completed, because no memory holds so
    // many elements.
    windows.size = std::min(windows.size, kSpanMax);
    windows.stride = std::min(windows.stride, kSpanMax);
    return std::make_shared<WindowDataset>(std::move(input), windows);
  }
};

OP(WindowDataset) {
  return DatasetOp{
      .doc =
          "Groups elements into windows: each element of the result is a dataset of `size` "
          "elements of the input.",
      .inputs = {{"input_dataset", "variant"},
                 {"size", "int64"},
                 {"shift", "int64"},
                 {"stride", "int64"},
                 {"drop_remainder", "bool"}}};
}
KERNEL_ANY_TYPE(WindowDataset, WindowKernel);

}  // namespace
}  // namespace penstock
