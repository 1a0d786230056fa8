// SPDX-License-Identifier: Apache-2.0
#include "client/examples/fashion_mnist_data.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <utility>

#include "client/examples/idx.h"

namespace penstock::examples {
namespace {

constexpr int kSide = 28;
constexpr int kClasses = 10;

StatusOr<Tensor> ReadPart(Env& env, const std::string& directory, const std::string& name) {
  const std::string plain = StrCat(directory, "/", name);
  if (env.FileExists(plain)) return ReadIdx(env, plain);
  StatusOr<Tensor> packed = ReadIdx(env, plain + ".gz");
  if (absl::IsNotFound(packed.status())) {
    return NotFound("no ", name, "[.gz] in ", directory,
                    ": install the package dataset-fashion-mnist, or say --data_dir");
  }
  return packed;
}

StatusOr<Pictures> ReadPictures(Env& env, const std::string& directory, const std::string& part) {
  Pictures pictures;
  ASSIGN_OR_RETURN(pictures.images, ReadPart(env, directory, part + "-images-idx3-ubyte"));
  ASSIGN_OR_RETURN(pictures.labels, ReadPart(env, directory, part + "-labels-idx1-ubyte"));
  if (pictures.labels.rank() != 1 ||
      pictures.images.shape() != Shape({pictures.size(), kSide, kSide})) {
    return InvalidArgument(directory, ": ", part, " images are ",
                           pictures.images.shape().ToString(), " and labels ",
                           pictures.labels.shape().ToString(), ", expected [n,28,28] and [n]");
  }
  for (const uint8_t label : pictures.labels.flat<uint8_t>()) {
    if (label >= kClasses) {
      return InvalidArgument(directory, ": ", part, " has the label ", int{label},
                             ", expected 0 to 9");
    }
  }
  return pictures;
}

}  // namespace

StatusOr<FashionMnist> ReadFashionMnist(Env& env, const std::string& directory) {
  FashionMnist data;
  ASSIGN_OR_RETURN(data.train, ReadPictures(env, directory, "train"));
  ASSIGN_OR_RETURN(data.test, ReadPictures(env, directory, "t10k"));
  return data;
}

Batches::Batches(Pictures pictures, int64_t batch_size, uint64_t seed)
    : pictures_(std::move(pictures)),
      batch_size_(batch_size),
      seed_(seed),
      order_(pictures_.size()) {
  CHECK(batch_size > 0 && batch_size <= pictures_.size());
}

// Sets order_ to the random order of `epoch`. Unlike std::shuffle, gives the same order with every
// standard library.
void Batches::Shuffle(int64_t epoch) {
  std::seed_seq seed{seed_, static_cast<uint64_t>(epoch)};
  std::mt19937_64 random(seed);
  std::iota(order_.begin(), order_.end(), 0);
  for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random() % i]);
  epoch_ = epoch;
}

Pictures Batches::Get(int64_t number) {
  const int64_t batches_per_epoch = pictures_.size() / batch_size_;
  const int64_t epoch = number / batches_per_epoch;
  if (epoch != epoch_) Shuffle(epoch);
  const int64_t first = number % batches_per_epoch * batch_size_;
  Pictures batch{Tensor(DType::kUint8, {batch_size_, kSide, kSide}),
                 Tensor(DType::kUint8, {batch_size_})};
  constexpr int64_t kPixels = kSide * kSide;
  for (int64_t i = 0; i < batch_size_; ++i) {
    const int64_t from = order_[first + i];
    std::memcpy(batch.images.mutable_data<uint8_t>() + i * kPixels,
                pictures_.images.data<uint8_t>() + from * kPixels, kPixels);
    batch.labels.mutable_data<uint8_t>()[i] = pictures_.labels.data<uint8_t>()[from];
  }
  return batch;
}

}  // namespace penstock::examples
