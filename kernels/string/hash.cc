// SPDX-License-Identifier: Apache-2.0
//
// StringToHashBucket, StringToHashBucketFast, StringToHashBucketStrong: map each string to the
// number of a bucket. Trained models depend on these numbers, so the hash functions must always be
// TensorFlow's: MurmurHash64A, FarmHash's Fingerprint64, SipHash-2-4.
#include <farmhash.h>
#include <highwayhash/sip_hash.h>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/string/murmur.h"
#include "kernels/string/strings.h"

namespace penstock {
namespace {

template <class Hash>
Status Buckets(KernelContext& ctx, int64_t count, Hash hash) {
  return MapStrings<int64_t>(ctx, [&](const std::string& text, int64_t* bucket) {
    *bucket = static_cast<int64_t>(hash(text) % static_cast<uint64_t>(count));
    return OkStatus();
  });
}

class HashBucketKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("num_buckets", &count_); }

 protected:
  int64_t count_ = 1;
};

class MurmurKernel final : public HashBucketKernel {
 public:
  Status Compute(KernelContext& ctx) override { return Buckets(ctx, count_, Murmur64); }
};

class FarmKernel final : public HashBucketKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    return Buckets(ctx, count_, [](const std::string& text) {
      return util::Fingerprint64(text.data(), text.size());
    });
  }
};

class SipKernel final : public HashBucketKernel {
 public:
  Status Init(const KernelInit& node) override {
    std::vector<int64_t> key;
    RETURN_IF_ERROR(node.Attr("key", &key));
    if (key.size() != 2) return InvalidArgument("Key must have 2 elements, has ", key.size());
    for (int i : {0, 1}) key_[i] = static_cast<highwayhash::HH_U64>(key[i]);
    return HashBucketKernel::Init(node);
  }
  Status Compute(KernelContext& ctx) override {
    return Buckets(ctx, count_, [this](const std::string& text) {
      return highwayhash::SipHash(key_, text.data(), text.size());
    });
  }

 private:
  highwayhash::HH_U64 key_[2] = {};
};

OpDef HashBucketOp(const char* doc, const char* input) {
  return {
      .doc = doc,
      .inputs = {{input, "string"}},
      .outputs = {{"output", "int64"}},
      .attrs = {{"num_buckets", Ints{.min = 1}}},
      .shape = SameShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 3}}}}, .attrs = {{"num_buckets", 7}}}},
  };
}

OpDef StrongOp() {
  OpDef op = HashBucketOp("Each string's SipHash-2-4 under `key`, modulo num_buckets.", "input");
  op.attrs.push_back({"key", IntList{}});
  op.examples[0].attrs["key"] = std::vector<int64_t>{1, 2};
  return op;
}

}  // namespace

OP(StringToHashBucket) {
  return HashBucketOp("Each string's MurmurHash64A modulo num_buckets.", "string_tensor");
}

OP(StringToHashBucketFast) {
  return HashBucketOp("Each string's FarmHash Fingerprint64 modulo num_buckets.", "input");
}

OP(StringToHashBucketStrong) { return StrongOp(); }
KERNEL_ANY_TYPE(StringToHashBucket, MurmurKernel);
KERNEL_ANY_TYPE(StringToHashBucketFast, FarmKernel);
KERNEL_ANY_TYPE(StringToHashBucketStrong, SipKernel);

}  // namespace penstock
