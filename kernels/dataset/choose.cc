// SPDX-License-Identifier: Apache-2.0
//
// Datasets that drop elements: UniqueDataset, SamplingDataset, IgnoreErrorsDataset; and
// AssertCardinalityDataset.
#include <memory>
#include <set>
#include <utility>

#include "core/op/registry.h"
#include "kernels/dataset/dataset_kernel.h"
#include "kernels/dataset/seeds.h"

namespace penstock {
namespace {

// A dataset of those elements of its input that a Chooser selects. A Chooser is a class with the
// functions Status Next(ctx, input, element, end), Save and Restore; its constructor takes the
// dataset's Options.
template <class Chooser>
class ChoosingDataset final : public Dataset {
 public:
  using Options = typename Chooser::Options;
  ChoosingDataset(DatasetPtr input, Options options)
      : Dataset(input->spec(), {input}), options_(std::move(options)) {}
  const char* Name() const override { return Chooser::kName; }
  int64_t Cardinality() const override { return Chooser::Cardinality(options_); }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    ASSIGN_OR_RETURN(IteratorPtr input, this->input().NewIterator(ctx));
    return std::make_unique<Iterator>(std::move(input), options_);
  }

 private:
  class Iterator final : public UnaryIterator {
   public:
    Iterator(IteratorPtr input, const Options& options)
        : UnaryIterator(std::move(input)), chooser_(options) {}
    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      return chooser_.Next(ctx, *input_, element, end);
    }
    Status Save(const IteratorContext& ctx, StateWriter* writer) override {
      writer->Label(Chooser::kName);
      chooser_.Save(writer);
      return UnaryIterator::Save(ctx, writer);
    }
    Status Restore(const IteratorContext& ctx, StateReader* reader) override {
      RETURN_IF_ERROR(reader->Label(Chooser::kName));
      RETURN_IF_ERROR(chooser_.Restore(reader));
      return UnaryIterator::Restore(ctx, reader);
    }

   private:
    Chooser chooser_;
  };

  const Options options_;
};

// Selects the first of several equal elements.
class UniqueChooser {
 public:
  struct Options {};
  static constexpr char kName[] = "Unique";
  static int64_t Cardinality(const Options&) { return kUnknownCardinality; }
  explicit UniqueChooser(const Options&) {}
  static bool IsKey(DType dtype) {
    return dtype == DType::kInt32 || dtype == DType::kInt64 || dtype == DType::kString;
  }

  Status Next(const IteratorContext& ctx, DatasetIterator& input, Element* element, bool* end) {
    do {
      if (ctx.cancellation->cancelled()) return ctx.cancellation->status();
      RETURN_IF_ERROR(input.GetNext(ctx, element, end));
      if (*end) return OkStatus();
      if (element->size() != 1 || !IsKey(element->front().dtype())) {
        return InvalidArgument("UniqueDataset takes one component of int32, int64 or string");
      }
    } while (!seen_.insert(KeyOf(element->front())).second);
    return OkStatus();
  }
  void Save(StateWriter* writer) const {
    writer->Int(static_cast<int64_t>(seen_.size()));
    for (const std::string& key : seen_) writer->Text(key);
  }
  Status Restore(StateReader* reader) {
    ASSIGN_OR_RETURN(const int64_t count, reader->Int());
    for (int64_t i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(std::string key, reader->Text());
      seen_.insert(std::move(key));
    }
    return OkStatus();
  }

 private:
  // Returns strings that are equal only for equal tensors.
  static std::string KeyOf(const Tensor& value) {
    std::string key = value.shape().ToString();
    if (value.dtype() != DType::kString) {
      key.append(static_cast<const char*>(value.raw_data()), value.bytes());
      return key;
    }
    for (const std::string& text : value.flat<std::string>()) {
      StrAppend(&key, text.size(), ":", text);
    }
    return key;
  }

  std::set<std::string> seen_;
};

class UniqueKernel final : public DatasetKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    const std::vector<DType>& types = input->spec().types;
    if (types.size() != 1) {
      return InvalidArgument("UniqueDataset only supports inputs with a single component.");
    }
    if (!UniqueChooser::IsKey(types[0])) {
      return InvalidArgument("UniqueDataset only supports inputs with a single `tf.int32`, ",
                             "`tf.int64`, or `tf.string` component.");
    }
    return std::make_shared<ChoosingDataset<UniqueChooser>>(std::move(input),
                                                            UniqueChooser::Options());
  }
};

// Selects each element with probability `rate`.
class SamplingChooser {
 public:
  struct Options {
    float rate;
    Seeds seeds;
  };
  static constexpr char kName[] = "Sampling";
  static int64_t Cardinality(const Options&) { return kUnknownCardinality; }
  explicit SamplingChooser(const Options& options)
      : rate_(options.rate), seeds_(options.seeds), numbers_(seeds_.Stream()) {}

  Status Next(const IteratorContext& ctx, DatasetIterator& input, Element* element, bool* end) {
    do {
      if (ctx.cancellation->cancelled()) return ctx.cancellation->status();
      RETURN_IF_ERROR(input.GetNext(ctx, element, end));
      if (*end) return OkStatus();
    } while (Number() >= rate_);
    return OkStatus();
  }
  void Save(StateWriter* writer) const {
    writer->Int(seeds_.seed);
    writer->Int(seeds_.seed2);
    writer->Int(drawn_);
  }
  Status Restore(StateReader* reader) {
    ASSIGN_OR_RETURN(seeds_.seed, reader->AnyInt());
    ASSIGN_OR_RETURN(seeds_.seed2, reader->AnyInt());
    ASSIGN_OR_RETURN(drawn_, reader->Int());
    numbers_ = PhiloxNumbers(seeds_.Stream(), static_cast<uint64_t>(drawn_));
    return OkStatus();
  }

 private:
  // Returns a number in [0, 1), from the same bits as TensorFlow.
  float Number() {
    ++drawn_;
    constexpr uint32_t kMantissa = (1u << 23) - 1;
    return static_cast<float>(numbers_() & kMantissa) / static_cast<float>(kMantissa + 1);
  }

  const float rate_;
  Seeds seeds_;
  PhiloxNumbers numbers_;
  int64_t drawn_ = 0;
};

class SamplingKernel final : public DatasetKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    SamplingChooser::Options options{};
    ASSIGN_OR_RETURN(options.rate, ScalarInput<float>(ctx, 1, "rate"));
    ASSIGN_OR_RETURN(options.seeds.seed, ScalarInput<int64_t>(ctx, 2, "seed"));
    ASSIGN_OR_RETURN(options.seeds.seed2, ScalarInput<int64_t>(ctx, 3, "seed2"));
    if (options.seeds.seed == 0 && options.seeds.seed2 == 0) {
      Env& env = *ctx.step().env;
      options.seeds = {static_cast<int64_t>(env.RandomU64()),
                       static_cast<int64_t>(env.RandomU64())};
    }
    return std::make_shared<ChoosingDataset<SamplingChooser>>(std::move(input), options);
  }
};

// Selects the elements that can be computed, and skips errors.
class IgnoreErrorsChooser {
 public:
  struct Options {
    int64_t cardinality;
  };
  static constexpr char kName[] = "IgnoreErrors";
  static int64_t Cardinality(const Options& options) { return options.cardinality; }
  explicit IgnoreErrorsChooser(const Options&) {}

  Status Next(const IteratorContext& ctx, DatasetIterator& input, Element* element, bool* end) {
    Status status;
    do {
      if (ctx.cancellation->cancelled()) return ctx.cancellation->status();
      status = input.GetNext(ctx, element, end);
    } while (!status.ok());
    return OkStatus();
  }
  void Save(StateWriter*) const {}
  Status Restore(StateReader*) { return OkStatus(); }
};

class IgnoreErrorsKernel final : public DatasetKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    // The cardinality is unknown because errors drop elements, unless the input is infinite.
    const int64_t all = input->Cardinality();
    return std::make_shared<ChoosingDataset<IgnoreErrorsChooser>>(
        std::move(input),
        IgnoreErrorsChooser::Options{all == kInfiniteCardinality ? all : kUnknownCardinality});
  }
};

// Passes on all elements. Returns an error if their number is not the number that the program
// asserts.
class AssertedChooser {
 public:
  struct Options {
    int64_t cardinality;
  };
  static constexpr char kName[] = "AssertCardinality";
  static int64_t Cardinality(const Options& options) { return options.cardinality; }
  explicit AssertedChooser(const Options& options) : wanted_(options.cardinality) {}

  Status Next(const IteratorContext& ctx, DatasetIterator& input, Element* element, bool* end) {
    RETURN_IF_ERROR(input.GetNext(ctx, element, end));
    if (!*end) ++given_;
    const bool wrong = *end ? given_ != wanted_ : wanted_ >= 0 && given_ > wanted_;
    if (!wrong || wanted_ == kUnknownCardinality) return OkStatus();
    return FailedPrecondition("Input dataset was expected to contain ", Elements(),
                              *end ? " but contained only " : " but contained at least ", given_,
                              given_ == 1 ? " element." : " elements.");
  }
  void Save(StateWriter* writer) const { writer->Int(given_); }
  Status Restore(StateReader* reader) {
    ASSIGN_OR_RETURN(given_, reader->Int());
    return OkStatus();
  }

 private:
  std::string Elements() const {
    if (wanted_ == kInfiniteCardinality) return "an infinite number of elements";
    return StrCat(wanted_, wanted_ == 1 ? " element" : " elements");
  }

  const int64_t wanted_;
  int64_t given_ = 0;
};

class AssertCardinalityKernel final : public DatasetKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    ASSIGN_OR_RETURN(const int64_t cardinality, ScalarInput<int64_t>(ctx, 1, "cardinality"));
    return std::make_shared<ChoosingDataset<AssertedChooser>>(
        std::move(input), AssertedChooser::Options{cardinality});
  }
};

DatasetOp ChoosingOp(const char* doc, std::vector<ArgDef> more = {}, bool metadata = false) {
  DatasetOp op{.doc = doc, .inputs = {{"input_dataset", "variant"}}, .metadata = metadata};
  op.inputs.insert(op.inputs.end(), more.begin(), more.end());
  return op;
}

DatasetOp IgnoreErrorsOp() {
  DatasetOp op =
      ChoosingOp("The elements of a dataset, without the elements whose computation fails.");
  op.attrs = {TypesAttr("output_types", 1), {"output_shapes", ShapeList{}}, {"log_warning", false}};
  op.spec = false;
  return op;
}

constexpr char kUniqueDoc[] = "The distinct elements of a dataset: of equal elements, the first.";

OP(UniqueDataset) { return ChoosingOp(kUniqueDoc, {}, true); }
OP(ExperimentalUniqueDataset) { return ChoosingOp(kUniqueDoc); }
OP(SamplingDataset) {
  return ChoosingOp("Samples a dataset: keeps each element with probability `rate`.",
                    {{"rate", "float"}, {"seed", "int64"}, {"seed2", "int64"}});
}
OP(IgnoreErrorsDataset) { return IgnoreErrorsOp(); }
OP(ExperimentalIgnoreErrorsDataset) { return IgnoreErrorsOp(); }
OP(AssertCardinalityDataset) {
  return ChoosingOp(
      "The same dataset. Iterating it ends with an error if the number of its elements is not "
      "`cardinality`.",
      {{"cardinality", "int64"}});
}

KERNEL_ANY_TYPE(UniqueDataset, UniqueKernel);
KERNEL_ANY_TYPE(ExperimentalUniqueDataset, UniqueKernel);
KERNEL_ANY_TYPE(SamplingDataset, SamplingKernel);
KERNEL_ANY_TYPE(IgnoreErrorsDataset, IgnoreErrorsKernel);
KERNEL_ANY_TYPE(ExperimentalIgnoreErrorsDataset, IgnoreErrorsKernel);
KERNEL_ANY_TYPE(AssertCardinalityDataset, AssertCardinalityKernel);

}  // namespace
}  // namespace penstock
