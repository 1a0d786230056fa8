// SPDX-License-Identifier: Apache-2.0
#include "kernels/lookup/lookup_table.h"

#include <cstring>

#include "core/base/mutex.h"
#include "core/op/state_replay.h"
#include "kernels/array/elements.h"

namespace penstock {
namespace {

constexpr char kInsertAction[] = "insert", kEraseAction[] = "erase", kImportAction[] = "import",
               kInitializeAction[] = "initialize";

bool StartsWith(const Shape& whole, const Shape& end) {
  return whole.rank() >= end.rank() &&
         whole.dims().subspan(whole.rank() - end.rank()) == end.dims();
}

// Removes the dimensions of one key from the shape of all keys.
Shape KeysShape(const Shape& whole, const Shape& one) {
  return Shape(whole.dims().subspan(0, whole.rank() - one.rank()));
}

// Returns the text of a tensor, without the type if it has one element.
std::string PlainText(const Tensor& tensor) {
  if (tensor.num_elements() != 1) return tensor.ToString();
  const Tensor one = tensor.Reshaped(Shape());
  if (one.dtype() == DType::kString) return one.scalar<std::string>();
  const std::string text = one.ToString();
  return text.substr(text.find(' ') + 1);
}

StatusOr<Shape> Joined(const Shape& a, const Shape& b) {
  Dims dims(a.dims().begin(), a.dims().end());
  dims.insert(dims.end(), b.dims().begin(), b.dims().end());
  return Shape::Make(dims);
}

}  // namespace

const char* LookupTable::TypeOf(Kind kind) {
  switch (kind) {
    case Kind::kHash:
      return "HashTable";
    case Kind::kMutable:
      return "MutableHashTable";
    case Kind::kMutableOfTensors:
      return "MutableHashTableOfTensors";
    case Kind::kDense:
      return "MutableDenseHashTable";
  }
  return "";
}

StatusOr<std::shared_ptr<LookupTable>> LookupTable::Make(std::string name, Spec spec) {
  const bool key_ok = IsInteger(spec.key) || spec.key == DType::kString || spec.key == DType::kBool;
  if (!key_ok) {
    return InvalidArgument("the keys of a table must be integers or strings, not ", Name(spec.key));
  }
  if (!IsPlain(spec.value) && spec.value != DType::kString) {
    return InvalidArgument("a table cannot hold values of type ", Name(spec.value));
  }
  if (spec.kind == Kind::kMutableOfTensors && spec.value_shape.rank() > 1) {
    return InvalidArgument("Default value must be a vector, got shape ",
                           spec.value_shape.ToString());
  }
  if (spec.key_shape.rank() > 1 || (spec.key == DType::kString && spec.key_shape.rank() > 0)) {
    return InvalidArgument("Empty key must be a scalar, or a vector of integers; got shape ",
                           spec.key_shape.ToString());
  }
  if (spec.kind == Kind::kHash && (spec.key_shape.rank() > 0 || spec.value_shape.rank() > 0)) {
    return InvalidArgument("the keys and values of a HashTable are scalars");
  }
  const int64_t buckets = spec.initial_buckets;
  if (buckets <= 0 || (buckets & (buckets - 1)) != 0) {
    return InvalidArgument("initial_num_buckets must be a power of 2, got: ", buckets);
  }
  if (!(spec.max_load > 0 && spec.max_load < 1)) {
    return InvalidArgument("max_load_factor must be between 0 and 1, got: ", spec.max_load);
  }
  auto table = std::make_shared<LookupTable>(std::move(name), std::move(spec));
  const Tensor &empty = table->spec_.empty_key, &deleted = table->spec_.deleted_key;
  if (empty.valid() && deleted.valid()) {
    if (!(empty.shape() == deleted.shape())) {
      return InvalidArgument("Empty and deleted keys must have same shape, got shapes: ",
                             empty.shape().ToString(), " and ", deleted.shape().ToString());
    }
    if (table->KeyAt(empty, 0) == table->KeyAt(deleted, 0)) {
      return InvalidArgument("Empty and deleted keys cannot be equal");
    }
  }
  return table;
}

std::string LookupTable::DebugString() const {
  return StrCat(TypeName(), " '", name_, "' from ", Name(spec_.key), " to ", Name(spec_.value),
                ", ", size(), " entries");
}

StatusOr<int64_t> LookupTable::CountKeys(const Tensor& keys) const {
  if (keys.dtype() != spec_.key) {
    return InvalidArgument("Signature mismatch: keys are ", Name(keys.dtype()), ", table '", name_,
                           "' has keys of ", Name(spec_.key));
  }
  if (!StartsWith(keys.shape(), spec_.key_shape)) {
    return InvalidArgument("keys must have a shape that ends in ", spec_.key_shape.ToString(),
                           ", got ", keys.shape().ToString());
  }
  return KeysShape(keys.shape(), spec_.key_shape).num_elements();
}

Status LookupTable::CheckValues(const Tensor& keys, const Tensor& values) const {
  RETURN_IF_ERROR(CountKeys(keys).status());
  if (values.dtype() != spec_.value) {
    return InvalidArgument("Signature mismatch: values are ", Name(values.dtype()), ", table '",
                           name_, "' has values of ", Name(spec_.value));
  }
  ASSIGN_OR_RETURN(const Shape wanted,
                   Joined(KeysShape(keys.shape(), spec_.key_shape), spec_.value_shape));
  if (values.shape() == wanted) return OkStatus();
  return InvalidArgument("Expected shape ", wanted.ToString(), " for value, got ",
                         values.shape().ToString());
}

bool LookupTable::IsReserved(const std::string& key) const {
  for (const Tensor* reserved : {&spec_.empty_key, &spec_.deleted_key}) {
    if (reserved->valid() && KeyAt(*reserved, 0) == key) return true;
  }
  return false;
}

Status LookupTable::CheckAllowed(const std::string& key) const {
  if (!IsReserved(key)) return OkStatus();
  const bool empty = KeyAt(spec_.empty_key, 0) == key;
  return InvalidArgument("Using the ", empty ? "empty_key" : "deleted_key",
                         " as a table key is not allowed");
}

std::string LookupTable::KeyAt(const Tensor& keys, int64_t i) const {
  if (keys.dtype() == DType::kString) return keys.data<std::string>()[i];
  const size_t size = SizeOf(keys.dtype()) * spec_.key_shape.num_elements();
  return std::string(static_cast<const char*>(keys.raw_data()) + i * size, size);
}

void LookupTable::Put(const Tensor& keys, int64_t i, const Tensor& values) {
  const int64_t n = spec_.value_shape.num_elements();
  std::string key = KeyAt(keys, i);
  const auto [it, added] = rows_.try_emplace(key, static_cast<int64_t>(keys_.size()));
  if (added && spec_.kind == Kind::kDense) it->second = buckets_.Take(HashOf(key), it->second);
  const int64_t row = it->second;
  const bool strings = spec_.value == DType::kString;
  const size_t size = SizeOf(spec_.value) * n;
  if (row < static_cast<int64_t>(keys_.size())) {
    keys_[row] = std::move(key);
  } else {
    keys_.push_back(std::move(key));
    if (strings) {
      strings_.resize(strings_.size() + n);
    } else {
      bytes_.resize(bytes_.size() + size);
    }
  }
  if (strings) {
    std::copy_n(values.data<std::string>() + i * n, n, strings_.begin() + row * n);
  } else {
    std::memcpy(bytes_.data() + row * size, static_cast<const char*>(values.raw_data()) + i * size,
                size);
  }
}

void LookupTable::Erase(const std::string& key) {
  const auto it = rows_.find(key);
  if (it == rows_.end()) return;
  const int64_t row = it->second;
  rows_.erase(it);
  if (spec_.kind == Kind::kDense) {
    buckets_.Remove(row);
  } else {
    DropRow(row);
  }
}

void LookupTable::DropRow(int64_t row) {
  const int64_t last = static_cast<int64_t>(keys_.size()) - 1;
  const int64_t n = spec_.value_shape.num_elements();
  if (row != last) {
    keys_[row] = std::move(keys_[last]);
    rows_[keys_[row]] = row;
  }
  keys_.pop_back();
  if (spec_.value == DType::kString) {
    if (row != last) {
      std::move(strings_.begin() + last * n, strings_.end(), strings_.begin() + row * n);
    }
    strings_.resize(last * n);
  } else {
    const size_t size = SizeOf(spec_.value) * n;
    if (row != last) std::memcpy(bytes_.data() + row * size, bytes_.data() + last * size, size);
    bytes_.resize(last * size);
  }
}

void LookupTable::Clear() {
  rows_.clear();
  buckets_.Reset(spec_.initial_buckets);
  keys_.clear();
  strings_.clear();
  bytes_.clear();
}

void LookupTable::CopyRow(int64_t row, Tensor* values, int64_t i) const {
  const int64_t n = spec_.value_shape.num_elements();
  if (spec_.value == DType::kString) {
    std::copy_n(strings_.begin() + row * n, n, values->mutable_data<std::string>() + i * n);
  } else {
    const size_t size = SizeOf(spec_.value) * n;
    std::memcpy(static_cast<char*>(values->mutable_raw_data()) + i * size,
                bytes_.data() + row * size, size);
  }
}

void LookupTable::CopyKey(const std::string& key, Tensor* keys, int64_t i) const {
  if (spec_.key == DType::kString) {
    keys->mutable_data<std::string>()[i] = key;
  } else {
    std::memcpy(static_cast<char*>(keys->mutable_raw_data()) + i * key.size(), key.data(),
                key.size());
  }
}

StatusOr<Tensor> LookupTable::Find(const Tensor& keys, const Tensor& default_value,
                                   Allocator& allocator) const {
  ASSIGN_OR_RETURN(const int64_t count, CountKeys(keys));
  if (default_value.dtype() != spec_.value) {
    return InvalidArgument("Signature mismatch: default_value is ", Name(default_value.dtype()),
                           ", table '", name_, "' has values of ", Name(spec_.value));
  }
  ASSIGN_OR_RETURN(const Shape shape,
                   Joined(KeysShape(keys.shape(), spec_.key_shape), spec_.value_shape));
  const bool each = default_value.shape() == shape;
  if (!each && !(default_value.shape() == spec_.value_shape)) {
    return InvalidArgument("Expected shape ", spec_.value_shape.ToString(), " or ",
                           shape.ToString(), " for default value, got ",
                           default_value.shape().ToString());
  }
  ASSIGN_OR_RETURN(Tensor values, Tensor::Make(allocator, spec_.value, shape));
  const int64_t n = spec_.value_shape.num_elements();
  ReaderMutexLock lock(mu_);
  if (spec_.kind == Kind::kHash && !initialized_) {
    return FailedPrecondition("Table not initialized.");
  }
  for (int64_t i = 0; i < count; ++i) {
    const std::string key = KeyAt(keys, i);
    RETURN_IF_ERROR(CheckAllowed(key));
    const auto it = rows_.find(key);
    if (it != rows_.end()) {
      CopyRow(it->second, &values, i);
    } else {
      CopyElements(spec_.value, ElementAt(default_value.raw_data(), spec_.value, each ? i * n : 0),
                   ElementAt(values.mutable_raw_data(), spec_.value, i * n), n);
    }
  }
  return values;
}

Status LookupTable::Insert(const Tensor& keys, const Tensor& values, const UpdateOrigin& origin) {
  if (spec_.kind == Kind::kHash) {
    return Unimplemented("Insert not supported by HashTable '", name_, "': it is filled once");
  }
  RETURN_IF_ERROR(CheckValues(keys, values));
  const int64_t count = *CountKeys(keys);
  for (int64_t i = 0; i < count; ++i) RETURN_IF_ERROR(CheckAllowed(KeyAt(keys, i)));
  WriterMutexLock lock(mu_);
  MakeRoomFor(static_cast<int64_t>(rows_.size()) + count);
  for (int64_t i = 0; i < count; ++i) Put(keys, i, values);
  Changed(origin, kInsertAction, [&] { return std::vector<Tensor>{keys, values}; });
  return OkStatus();
}

Status LookupTable::Remove(const Tensor& keys, const UpdateOrigin& origin) {
  if (spec_.kind == Kind::kHash) {
    return Unimplemented("Remove not supported by HashTable '", name_, "': it is filled once");
  }
  ASSIGN_OR_RETURN(const int64_t count, CountKeys(keys));
  for (int64_t i = 0; i < count; ++i) RETURN_IF_ERROR(CheckAllowed(KeyAt(keys, i)));
  WriterMutexLock lock(mu_);
  for (int64_t i = 0; i < count; ++i) Erase(KeyAt(keys, i));
  Changed(origin, kEraseAction, [&] { return std::vector<Tensor>{keys}; });
  return OkStatus();
}

Status LookupTable::Import(const Tensor& exported_keys, const Tensor& exported_values,
                           const UpdateOrigin& origin) {
  Tensor keys = exported_keys, values = exported_values;
  if (spec_.kind == Kind::kHash) return Initialize(keys, values, origin);
  if (spec_.kind == Kind::kDense) FlattenedToRows(&keys, &values);
  RETURN_IF_ERROR(CheckValues(keys, values));
  const int64_t count = *CountKeys(keys);
  const auto is_entry = [&](int64_t i) { return !IsReserved(KeyAt(keys, i)); };
  int64_t entries = 0;
  for (int64_t i = 0; i < count; ++i) entries += is_entry(i) ? 1 : 0;
  WriterMutexLock lock(mu_);
  Clear();
  // The rows of an exported dense table are its buckets, so the number of rows becomes the number
  // of buckets.
  if (count > 0 && (count & (count - 1)) == 0) buckets_.Reset(count);
  MakeRoomFor(entries);
  for (int64_t i = 0; i < count; ++i) {
    if (is_entry(i)) Put(keys, i, values);
  }
  Changed(origin, kImportAction, [&] { return std::vector<Tensor>{keys, values}; });
  return OkStatus();
}

Status LookupTable::Initialize(const Tensor& keys, const Tensor& values,
                               const UpdateOrigin& origin) {
  if (spec_.kind != Kind::kHash) {
    return InvalidArgument("Table ", name_, " is not initializable: it is a ", TypeName());
  }
  if (keys.rank() != 1) {
    return InvalidArgument("Keys must be a vector, but received shape", keys.shape().ToString());
  }
  if (values.num_elements() != keys.num_elements()) {
    return InvalidArgument("Keys and values must have the same size ", keys.num_elements(), " vs ",
                           values.num_elements());
  }
  RETURN_IF_ERROR(CheckValues(keys, values));
  const int64_t count = keys.dim(0);
  WriterMutexLock lock(mu_);
  if (initialized_) {
    if (count == static_cast<int64_t>(keys_.size())) return OkStatus();
    return FailedPrecondition("Table already initialized.");
  }
  Tensor held(spec_.value, Shape());
  for (int64_t i = 0; i < count; ++i) {
    const auto it = rows_.find(KeyAt(keys, i));
    if (it == rows_.end()) {
      Put(keys, i, values);
      continue;
    }
    CopyRow(it->second, &held, 0);
    const Tensor wanted = values.Slice(i, i + 1).Reshaped(Shape());
    if (held.ToString() != wanted.ToString()) {
      const std::string key = PlainText(keys.Slice(i, i + 1));
      Clear();
      return FailedPrecondition("HashTable has different value for same key. Key ", key, " has ",
                                PlainText(held), " and trying to add value ", PlainText(wanted));
    }
  }
  initialized_ = true;
  Changed(origin, kInitializeAction, [&] { return std::vector<Tensor>{keys, values}; });
  return OkStatus();
}

int64_t LookupTable::size() const {
  ReaderMutexLock lock(mu_);
  return static_cast<int64_t>(rows_.size());
}

Status LookupTable::Export(Tensor* keys, Tensor* values, Allocator& allocator) const {
  ReaderMutexLock lock(mu_);
  if (spec_.kind == Kind::kHash && !initialized_) {
    return FailedPrecondition("Table not initialized.");
  }
  if (spec_.kind == Kind::kDense) return ExportBuckets(keys, values, allocator);
  const Shape rows = {static_cast<int64_t>(keys_.size())};
  ASSIGN_OR_RETURN(const Shape keys_shape, Joined(rows, spec_.key_shape));
  ASSIGN_OR_RETURN(const Shape values_shape, Joined(rows, spec_.value_shape));
  ASSIGN_OR_RETURN(*keys, Tensor::Make(allocator, spec_.key, keys_shape));
  ASSIGN_OR_RETURN(*values, Tensor::Make(allocator, spec_.value, values_shape));
  for (size_t i = 0; i < keys_.size(); ++i) {
    CopyKey(keys_[i], keys, static_cast<int64_t>(i));
    CopyRow(static_cast<int64_t>(i), values, static_cast<int64_t>(i));
  }
  return OkStatus();
}

std::vector<Tensor> LookupTable::Describe() const {
  std::vector<Tensor> values = {Value(static_cast<int64_t>(spec_.kind)),
                                Value(spec_.key),
                                Value(spec_.value),
                                Value(PartialShape(spec_.key_shape)),
                                Value(PartialShape(spec_.value_shape)),
                                Value(spec_.initial_buckets),
                                Tensor::Scalar(spec_.max_load)};
  if (spec_.empty_key.valid()) values.push_back(spec_.empty_key);
  if (spec_.deleted_key.valid()) values.push_back(spec_.deleted_key);
  return values;
}

Status LookupTable::Replay(const ResourceChange& change, const UpdateOrigin& origin) {
  const ReplayValues values(change);
  if (change.action == kEraseAction) {
    RETURN_IF_ERROR(values.Expect(1));
    return Remove(values.Get(0), origin);
  }
  const auto write = change.action == kInsertAction       ? &LookupTable::Insert
                     : change.action == kImportAction     ? &LookupTable::Import
                     : change.action == kInitializeAction ? &LookupTable::Initialize
                                                          : nullptr;
  if (write == nullptr) return values.UnknownAction();
  RETURN_IF_ERROR(values.Expect(2));
  return (this->*write)(values.Get(0), values.Get(1), origin);
}

namespace {

StatusOr<std::shared_ptr<Resource>> MakeTable(const std::string& name, const ReplayValues& values,
                                              Env&) {
  RETURN_IF_ERROR(values.ExpectAtLeast(7));
  LookupTable::Spec spec;
  ASSIGN_OR_RETURN(const int64_t kind, values.Int(0));
  if (kind < 0 || kind > static_cast<int64_t>(LookupTable::Kind::kDense)) {
    return values.Error(StrCat("there is no kind ", kind, " of tables"));
  }
  spec.kind = static_cast<LookupTable::Kind>(kind);
  ASSIGN_OR_RETURN(spec.key, values.Type(1));
  ASSIGN_OR_RETURN(spec.value, values.Type(2));
  ASSIGN_OR_RETURN(const PartialShape key_shape, values.GetShape(3));
  ASSIGN_OR_RETURN(const PartialShape value_shape, values.GetShape(4));
  if (!key_shape.fully_known() || !value_shape.fully_known()) {
    return values.Error("the shapes of keys and values must be known");
  }
  spec.key_shape = key_shape.ToShape();
  spec.value_shape = value_shape.ToShape();
  ASSIGN_OR_RETURN(spec.initial_buckets, values.Int(5));
  const Tensor& max_load = values.Get(6);
  if (max_load.dtype() != DType::kFloat || max_load.rank() != 0) {
    return values.Error("value 6 is no load factor");
  }
  spec.max_load = max_load.scalar<float>();
  for (Tensor* reserved : {&spec.empty_key, &spec.deleted_key}) {
    const size_t i = reserved == &spec.empty_key ? 7 : 8;
    if (values.size() <= i) continue;
    *reserved = values.Get(i);
    if (reserved->dtype() == spec.key && reserved->shape() == spec.key_shape) continue;
    return values.Error(StrCat("value ", i, " is no key"));
  }
  ASSIGN_OR_RETURN(std::shared_ptr<LookupTable> table, LookupTable::Make(name, std::move(spec)));
  return std::shared_ptr<Resource>(std::move(table));
}

const ResourceMakerDeclaration makers[] = {
    {"HashTable", MakeTable},
    {"MutableHashTable", MakeTable},
    {"MutableHashTableOfTensors", MakeTable},
    {"MutableDenseHashTable", MakeTable},
};

}  // namespace

}  // namespace penstock
