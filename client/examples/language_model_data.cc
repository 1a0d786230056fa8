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

namespace penstock::examples {
namespace {

constexpr size_t kTestEvery = 20;
// So many batches are filled from texts that are sorted by length together.
constexpr int64_t kBatchesSorted = 16;

// std::shuffle may differ between libraries; this does not.
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

TextBatches::TextBatches(std::vector<std::string> texts, int64_t batch_size, uint64_t seed)
    : texts_(std::move(texts)), batch_size_(batch_size), seed_(seed), order_(texts_.size()) {
  CHECK(batch_size > 0 && batch_size <= static_cast<int64_t>(texts_.size()));
}

void TextBatches::Arrange(int64_t epoch) {
  std::seed_seq seed{seed_, static_cast<uint64_t>(epoch)};
  std::mt19937_64 random(seed);
  std::iota(order_.begin(), order_.end(), 0);
  Shuffle(order_, random);
  order_.resize(per_epoch() * batch_size_);
  std::vector<std::vector<int64_t>> batches;
  const int64_t chunk = batch_size_ * kBatchesSorted;
  for (int64_t begin = 0; begin < static_cast<int64_t>(order_.size()); begin += chunk) {
    const int64_t end = std::min<int64_t>(begin + chunk, order_.size());
    std::stable_sort(order_.begin() + begin, order_.begin() + end,
                     [this](int64_t a, int64_t b) { return texts_[a].size() < texts_[b].size(); });
    for (int64_t i = begin; i < end; i += batch_size_) {
      batches.emplace_back(order_.begin() + i, order_.begin() + i + batch_size_);
    }
  }
  Shuffle(batches, random);
  order_.clear();
  for (const auto& batch : batches) order_.insert(order_.end(), batch.begin(), batch.end());
  epoch_ = epoch;
}

TextBatch TextBatches::Get(int64_t number) {
  const int64_t epoch = number / per_epoch();
  if (epoch != epoch_) {
    order_.resize(texts_.size());
    Arrange(epoch);
  }
  const int64_t* const rows = order_.data() + number % per_epoch() * batch_size_;
  size_t longest = 0;
  for (int64_t i = 0; i < batch_size_; ++i) longest = std::max(longest, texts_[rows[i]].size());
  const int64_t time = static_cast<int64_t>(longest) + 1;
  TextBatch batch{Tensor(DType::kUint8, {batch_size_, time}),
                  Tensor(DType::kUint8, {batch_size_, time}), Tensor(DType::kInt32, {batch_size_})};
  auto* inputs = batch.inputs.mutable_data<uint8_t>();
  auto* targets = batch.targets.mutable_data<uint8_t>();
  std::memset(inputs, 0, batch.inputs.bytes());
  std::memset(targets, 0, batch.targets.bytes());
  for (int64_t i = 0; i < batch_size_; ++i) {
    const std::string& text = texts_[rows[i]];
    std::memcpy(inputs + i * time + 1, text.data(), text.size());
    std::memcpy(targets + i * time, text.data(), text.size());
    batch.lengths.mutable_data<int32_t>()[i] = static_cast<int32_t>(text.size()) + 1;
    used_ += static_cast<int64_t>(text.size()) + 1;
  }
  steps_ += batch_size_ * time;
  return batch;
}

}  // namespace penstock::examples
