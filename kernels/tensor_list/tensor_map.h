// SPDX-License-Identifier: Apache-2.0
//
// TensorMapValue: a map from tensors to tensors, as the value of a variant. Keys are equal if their
// types, shapes and bytes are. Keys and values may be of any types, also mixed, but no key is a
// variant or a handle.
//
// Thread safety: any number of threads may read it; only its sole owner may change it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/op/kernel.h"
#include "kernels/math/accumulate.h"

namespace penstock {

class TensorMapValue final : public ArithmeticVariant {
 public:
  static constexpr char kTypeName[] = "tensorflow::TensorMap";

  const char* TypeName() const override { return kTypeName; }
  std::string ToString() const override;
  // Encodes as TensorFlow does: `tensors` are the keys, each followed by its value.
  Status Encode(std::string* metadata, std::vector<Tensor>* tensors) const override;
  static StatusOr<Variant> Decode(const std::string& metadata, const std::vector<Tensor>& tensors);
  // Returns an empty map, because a key without a value stands for zeros.
  StatusOr<Variant> ZerosLike(KernelContext& ctx) const override;
  // Returns a map with the keys of both maps; the values of a key that is in both are added.
  // InvalidArgument if `other` is no map.
  StatusOr<Variant> Plus(KernelContext& ctx, const VariantValue& other) const override;

  int64_t size() const { return static_cast<int64_t>(entries_.size()); }
  // Adds an entry; if the key exists, replaces its value. InvalidArgument if the key is a variant
  // or a handle.
  Status Insert(const Tensor& key, Tensor value);
  // Returns the value of a key, or null if the key does not exist.
  const Tensor* Find(const Tensor& key) const;
  // Removes a key and its value. Returns whether the key existed.
  bool Erase(const Tensor& key);
  // Returns the keys in the order of their bytes.
  std::vector<Tensor> Keys() const;

 private:
  struct Entry {
    Tensor key, value;
  };
  std::map<std::string, Entry> entries_;  // by the bytes of the key
};

// Returns the map in input i, which lives as long as the input. InvalidArgument unless the input is
// a scalar that holds a map.
StatusOr<const TensorMapValue*> MapInput(KernelContext& ctx, int i);

// A map that a kernel may change, and outputs.
struct OwnMap {
  Tensor handle;        // the output
  TensorMapValue* map;  // in `handle`, and shared by no other tensor
};
// Takes the map in input i: the map itself if nothing else holds it, else a copy. InvalidArgument
// if the input is no map.
StatusOr<OwnMap> TakeMap(KernelContext& ctx, int i);

}  // namespace penstock
