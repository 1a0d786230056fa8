// SPDX-License-Identifier: Apache-2.0
#include "client/examples/language_model_data.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/input.h"
#include "core/op/gradient.h"
#include "core/op/private_attrs.h"

namespace penstock::examples {
namespace {

constexpr size_t kTestEvery = 20;
// The maximum number of groups of texts with similar length.
constexpr size_t kBuckets = 16;

// Shuffles `values`. Unlike std::shuffle, gives the same order with every standard library.
template <class T>
void Shuffle(std::vector<T>& values, std::mt19937_64& random) {
  for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random() % i]);
}

void AddTexts(const std::string& file, int64_t length_max, std::vector<std::string>* texts) {
  for (string_view text : absl::StrSplit(file, "\n%\n")) {
    absl::ConsumeSuffix(&text, "\n%");
    absl::ConsumeSuffix(&text, "\n");
    while (!text.empty()) {
      texts->emplace_back(text.substr(0, length_max));
      text.remove_prefix(std::min<size_t>(text.size(), length_max));
    }
  }
}

// Returns the lengths of the texts, including the zero that ends each.
std::vector<size_t> Lengths(const std::vector<std::string>& texts) {
  std::vector<size_t> lengths;
  for (const std::string& text : texts) lengths.push_back(text.size() + 1);
  return lengths;
}

// Returns length boundaries that put about the same number of texts into each bucket.
std::vector<int64_t> Boundaries(const std::vector<std::string>& texts) {
  std::vector<size_t> lengths = Lengths(texts);
  std::sort(lengths.begin(), lengths.end());
  std::vector<int64_t> boundaries;
  for (size_t i = 1; i < kBuckets; ++i) {
    const auto length = static_cast<int64_t>(lengths[i * lengths.size() / kBuckets]);
    if (boundaries.empty() || length > boundaries.back()) boundaries.push_back(length);
  }
  return boundaries;
}

}  // namespace

StatusOr<Texts> ReadTexts(Env& env, const std::string& directory, int64_t length_max) {
  StatusOr<std::vector<std::string>> names = env.ListDirectory(directory);
  if (!names.ok()) {
    return NotFound("no texts in ", directory, ": install the package fortunes, or say --data_dir");
  }
  std::sort(names->begin(), names->end());
  std::vector<std::string> all;
  for (const std::string& name : *names) {
    if (absl::EndsWith(name, ".dat") || absl::EndsWith(name, ".u8")) continue;
    const StatusOr<std::string> file = env.ReadFile(StrCat(directory, "/", name));
    if (!file.ok() || absl::StrContains(*file, string_view("\0", 1))) continue;
    AddTexts(*file, length_max, &all);
  }
  Texts texts;
  for (size_t i = 0; i < all.size(); ++i) {
    (i % kTestEvery == 0 ? texts.test : texts.train).push_back(std::move(all[i]));
  }
  if (texts.train.empty()) return InvalidArgument("there is no text in ", directory);
  return texts;
}

TextBatch MakeBatch(const std::vector<std::string>& texts, size_t begin, size_t end) {
  CHECK(begin < end && end <= texts.size());
  const auto batch_size = static_cast<int64_t>(end - begin);
  size_t longest = 0;
  for (size_t i = begin; i < end; ++i) longest = std::max(longest, texts[i].size());
  const int64_t time = static_cast<int64_t>(longest) + 1;
  TextBatch batch{Tensor(DType::kUint8, {batch_size, time}),
                  Tensor(DType::kUint8, {batch_size, time}), Tensor(DType::kInt32, {batch_size})};
  auto* inputs = batch.inputs.mutable_data<uint8_t>();
  auto* targets = batch.targets.mutable_data<uint8_t>();
  std::memset(inputs, 0, batch.inputs.bytes());
  std::memset(targets, 0, batch.targets.bytes());
  for (int64_t row = 0; row < batch_size; ++row) {
    const std::string& text = texts[begin + row];
    std::memcpy(inputs + row * time + 1, text.data(), text.size());
    std::memcpy(targets + row * time, text.data(), text.size());
    batch.lengths.mutable_data<int32_t>()[row] = static_cast<int32_t>(text.size()) + 1;
  }
  return batch;
}

Output QueuedBatch::padding() const {
  const Output zero = Constant(*lengths.sink, Tensor::Scalar<int32_t>(0));
  const Output used = Sum(lengths, zero), all = Call("Size", {inputs});
  return 1 - Cast(used, DType::kFloat) / Cast(all, DType::kFloat);
}

QueuedBatch QueueTexts(client::QueueRunners& runners, const std::vector<std::string>& texts,
                       int32_t batch_size, int64_t seed) {
  client::Program& program = runners.program();
  const Output queue = client::StringInputProducer(runners, texts, {.seed = seed});
  const Output text =
      Call("QueueDequeueV2", {queue},
           {{"component_types", std::vector<DType>{DType::kString}},
            {kOutputShapesAttr, std::vector<PartialShape>{PartialShape::Scalar()}}});
  const Output characters = Call("DecodeRaw", {text}, {{"out_type", DType::kUint8}});
  const Output end = Constant(program, Tensor::Vector<uint8_t>({0}));
  const Output axis = Constant(program, Tensor::Scalar<int32_t>(0));
  const auto join = [&](const Outputs& parts) { return Call("ConcatV2", {parts, axis}); };
  const Output targets = join({characters, end});
  const auto batch = client::BucketBySequenceLength(
      runners, Call("Size", {targets}), {join({end, characters}), targets}, batch_size,
      Boundaries(texts), {.capacity = 4 * batch_size});
  return {batch.tensors[0], batch.tensors[1], batch.lengths};
}

double UngroupedPadding(const std::vector<std::string>& texts, int64_t batch_size) {
  std::vector<size_t> steps = Lengths(texts);
  std::mt19937_64 random;
  Shuffle(steps, random);
  double sum = 0;
  const int64_t batches = static_cast<int64_t>(steps.size()) / batch_size;
  for (auto batch = steps.begin(); batch < steps.begin() + batches * batch_size;
       batch += batch_size) {
    const double used = std::accumulate(batch, batch + batch_size, 0.0);
    sum +=
        1 - used / static_cast<double>(*std::max_element(batch, batch + batch_size) * batch_size);
  }
  return sum / static_cast<double>(batches);
}

}  // namespace penstock::examples
