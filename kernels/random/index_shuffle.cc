// SPDX-License-Identifier: Apache-2.0
//
// RandomIndexShuffle: where an index comes to lie in a random order of [0, max_index]. The order is
// never stored: a block cipher permutes the indices.
//
// J. Black, P. Rogaway: Ciphers with Arbitrary Finite Domains. CT-RSA 2002 (cycle walking).
// R. Beaulieu et al.: The SIMON and SPECK Families of Lightweight Block Ciphers. 2013.
#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>

#include "core/op/gradient.h"
#include "core/op/long_loop.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

using Key = std::array<uint32_t, 3>;
constexpr int64_t kMaxRounds = 1024;

// SIMON for blocks of two words of `bits` bits each, 8 <= bits <= 32, and keys of three words. The
// constants of the key schedule are TensorFlow's.
class Simon {
 public:
  Simon(int bits, const Key& key, int64_t rounds)
      : bits_(bits), mask_((uint64_t{1} << bits) - 1), rounds_(rounds) {
    for (int i = 0; i < 3; ++i) key_[i] = key[i] & mask_;
  }

  uint64_t operator()(uint64_t block) const {
    uint64_t left = block >> bits_ & mask_, right = block & mask_;
    std::array<uint64_t, 3> key = key_;
    uint64_t z = 0x7369f885192c0ef5 & mask_;
    for (int64_t round = 0; round < rounds_; ++round) {
      left ^= Mix(right) ^ key[0];
      std::swap(left, right);
      const uint64_t next =
          (0xfffffffc & mask_) ^ (z & 1) ^ key[0] ^ Right(key[2], 3) ^ Right(key[2], 4);
      key = {key[1], key[2], next};
      z >>= 1;
    }
    return left << bits_ | right;
  }

 private:
  uint64_t Left(uint64_t x, int n) const { return (x << n | x >> (bits_ - n)) & mask_; }
  uint64_t Right(uint64_t x, int n) const { return (x >> n | x << (bits_ - n)) & mask_; }
  uint64_t Mix(uint64_t x) const { return (Left(x, 1) & Left(x, 8)) ^ Left(x, 2); }

  const int bits_;
  const uint64_t mask_;
  const int64_t rounds_;
  std::array<uint64_t, 3> key_;
};

// Returns the number of bits of a block for the indices up to `max_index`.
int BlockBits(uint64_t max_index) {
  if (max_index == 0) return 16;
  const int digits = static_cast<int>(std::ceil(std::log2(static_cast<double>(max_index))));
  return std::max(digits + digits % 2, 16);
}

// Returns the number of encryptions for an index, on average.
double EncryptionsPerIndex(uint64_t max_index) {
  return std::ldexp(1, BlockBits(max_index)) / (static_cast<double>(max_index) + 1);
}

// Encrypts until the result is an index. Ends, because the cipher's cycle leads back to `index`.
// If max_index is a power of 4, index max_index is not a block, and takes the place of index 0, as
// in TensorFlow. REQUIRES: index <= max_index.
uint64_t ShuffledIndex(uint64_t index, const Key& key, uint64_t max_index, int64_t rounds) {
  if (max_index == 0) return 0;
  const Simon cipher(BlockBits(max_index) / 2, key, rounds);
  do {
    index = cipher(index);
  } while (index > max_index);
  return index;
}

// Returns the element of an integer tensor, as the 64 bits to which C++ converts it.
uint64_t BitsAt(const Tensor& tensor, int64_t i) {
  switch (tensor.dtype()) {
    case DType::kInt32:
      return static_cast<uint64_t>(int64_t{tensor.data<int32_t>()[i]});
    case DType::kUint32:
      return tensor.data<uint32_t>()[i];
    case DType::kInt64:
      return static_cast<uint64_t>(tensor.data<int64_t>()[i]);
    default:
      return tensor.data<uint64_t>()[i];
  }
}

// InvalidArgument unless `tensor` has rank `rank`, or one more and `count` rows.
Status CheckRows(const Tensor& tensor, int rank, int64_t count, const char* name) {
  if (tensor.rank() == rank || (tensor.rank() == rank + 1 && tensor.dim(0) == count)) {
    return OkStatus();
  }
  return InvalidArgument(name, " must have rank ", rank, ", or rank ", rank + 1, " with ", count,
                         " rows; its shape is ", tensor.shape().ToString());
}

template <class T>
bool IsNegative(T value) {
  if constexpr (std::is_signed_v<T>) return value < 0;
  return false;
}

template <class T>
class IndexShuffleKernel final : public Kernel {
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("rounds", &rounds_));
    if (rounds_ < 4 || rounds_ > kMaxRounds || rounds_ % 2 != 0) {
      return InvalidArgument("attribute 'rounds' must be an even number in [4, ", kMaxRounds,
                             "], is ", rounds_);
    }
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor &index = ctx.input(0), &seed = ctx.input(1), &max_index = ctx.input(2);
    const int64_t count =
        std::max({index.num_elements(), max_index.num_elements(), seed.num_elements() / 3});
    RETURN_IF_ERROR(CheckRows(index, 0, count, "index"));
    RETURN_IF_ERROR(CheckRows(seed, 1, count, "seed"));
    RETURN_IF_ERROR(CheckRows(max_index, 0, count, "max_index"));
    if (seed.dim(seed.rank() - 1) != 3) {
      return InvalidArgument("seed must be a vector of size [3] or a matrix of size [", count,
                             ", 3], its shape is ", seed.shape().ToString());
    }
    RETURN_IF_ERROR(CheckIndices(index, max_index, count));
    double encryptions = 1;
    for (int64_t i = 0; i < max_index.num_elements(); ++i) {
      encryptions = std::max(encryptions, EncryptionsPerIndex(BitsAt(max_index, i)));
    }
    const bool scalar = index.rank() == 0 && seed.rank() == 1 && max_index.rank() == 0;
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, scalar ? Shape() : Shape({count}), &output));
    T* const out = output->mutable_data<T>();
    const double cost = 20 * static_cast<double>(rounds_) * encryptions;
    return LongLoop(ctx.step(), count, cost, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = seed.rank() == 1 ? 0 : 3 * i;
        Key key;
        for (int k = 0; k < 3; ++k) key[k] = static_cast<uint32_t>(BitsAt(seed, row + k));
        out[i] = static_cast<T>(ShuffledIndex(BitsAt(index, index.rank() == 0 ? 0 : i), key,
                                              BitsAt(max_index, max_index.rank() == 0 ? 0 : i),
                                              rounds_));
      }
    });
  }

  static Status CheckIndices(const Tensor& index, const Tensor& max_index, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const T value = index.data<T>()[index.rank() == 0 ? 0 : i];
      const T limit = max_index.data<T>()[max_index.rank() == 0 ? 0 : i];
      if (value > limit || IsNegative(value)) {
        return InvalidArgument("max_index must be >= index, and index >= 0; index is ", value,
                               ", max_index is ", limit);
      }
    }
    return OkStatus();
  }

  int64_t rounds_ = 4;
};

Status IndexShuffleShape(ShapeScope& s) {
  PartialShape shape = PartialShape::UnknownOfRank(1);
  bool known = true, scalar = true;
  for (int i : {0, 1, 2}) {
    const PartialShape& input = s.input(i);
    const int rank = i == 1 ? 1 : 0;
    if (!input.known_rank()) {
      known = false;
    } else if (input.rank() == rank + 1) {
      scalar = false;
      if (input.dim(0) >= 0) shape.set_dim(0, input.dim(0));
    } else if (input.rank() != rank) {
      return InvalidArgument("input ", i, " must have rank ", rank, " or ", rank + 1,
                             ", has shape ", input.ToString());
    }
  }
  if (!scalar) {
    s.set_output(0, std::move(shape));
  } else if (known) {
    s.set_output(0, PartialShape::Scalar());
  }
  return OkStatus();
}

OP(RandomIndexShuffle) {
  return {
      .doc =
          "Returns where `index` comes to lie in a random order of the numbers [0, max_index], a "
          "function of the seed of three numbers. Each input may be a vector of such values. "
          "`rounds` is an even number in [4, 1024]; a larger one mixes the order better.",
      .inputs = {{"index", "dtype"}, {"seed", "Tseed"}, {"max_index", "dtype"}},
      .outputs = {{"output", "dtype"}},
      .types = {{"dtype", {DType::kInt32, DType::kUint32, DType::kInt64, DType::kUint64}},
                {"Tseed", {DType::kInt32, DType::kUint32, DType::kInt64, DType::kUint64}}},
      .attrs = {{"rounds", 4}},
      .shape = IndexShuffleShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{3}, {0, 5, 9}}}, {{{3}, {1, 2, 3}}}, {{.values = {9}}}}},
                   {.inputs = {{{.values = {2}}}, {{{3}, {1, 2, 3}}}, {{.values = {9}}}}}},
  };
}
KERNEL_BY("dtype", RandomIndexShuffle, IndexShuffleKernel, int32_t, uint32_t, int64_t, uint64_t);

}  // namespace
}  // namespace penstock
