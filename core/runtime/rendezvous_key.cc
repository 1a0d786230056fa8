// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "absl/strings/numbers.h"
#include "core/op/device_name.h"
#include "core/runtime/rendezvous.h"

namespace penstock {
namespace {

// FNV-1a over the bytes, then the finaliser of MurmurHash3: stable across processes, and
// distributed well enough for a power-of-two table.
class Hasher {
 public:
  void Add(string_view text) {
    for (const char c : text) Mix(static_cast<unsigned char>(c));
    Mix(0x100);  // marks the end of a field; no byte has this value
  }
  void Add(uint64_t number) {
    for (int i = 0; i < 8; ++i) Mix(number >> (8 * i) & 0xff);
  }
  uint64_t Finish() const { return Spread(state_); }
  static uint64_t Spread(uint64_t h) {
    h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 33;
  }

 private:
  void Mix(uint64_t unit) { state_ = (state_ ^ unit) * 0x100000001b3u; }
  uint64_t state_ = 0xcbf29ce484222325u;
};

bool ParseHex16(string_view text, uint64_t* value) {
  if (text.size() != 16) return false;
  *value = 0;
  for (const char c : text) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return false;
    *value = *value << 4 | static_cast<uint64_t>(digit);
  }
  return true;
}

bool IsFullDeviceName(string_view text) {
  const StatusOr<DeviceName> name = DeviceName::Parse(text);
  return name.ok() && name->full();
}

// Moves the text before the first `separator` from `rest` to `part`, and drops the separator.
// Returns false if there is none.
bool TakeFirst(string_view* rest, char separator, string_view* part) {
  const size_t at = rest->find(separator);
  if (at == string_view::npos) return false;
  *part = rest->substr(0, at);
  rest->remove_prefix(at + 1);
  return true;
}

}  // namespace

uint64_t RendezvousKey::Hash() const {
  Hasher hasher;
  hasher.Add(src_device);
  hasher.Add(src_incarnation);
  hasher.Add(dst_device);
  hasher.Add(tensor);
  hasher.Add(frame);
  hasher.Add(iteration);
  return hasher.Finish();
}

std::string RendezvousKey::ToString() const {
  char incarnation[17];
  std::snprintf(incarnation, sizeof(incarnation), "%016llx",
                static_cast<unsigned long long>(src_incarnation));
  return StrCat(src_device, ";", incarnation, ";", dst_device, ";", tensor, ";", frame, ":",
                iteration);
}

StatusOr<RendezvousKey> RendezvousKey::Parse(string_view text) {
  const auto wrong = [text](string_view what) {
    return InvalidArgument("rendezvous key '", text.substr(0, 512), "': ", what);
  };
  string_view rest = text, src, incarnation, dst;
  if (!TakeFirst(&rest, ';', &src) || !TakeFirst(&rest, ';', &incarnation) ||
      !TakeFirst(&rest, ';', &dst)) {
    return wrong("expected src;incarnation;dst;tensor;frame:iteration");
  }
  const size_t tensor_end = rest.rfind(';');
  if (tensor_end == string_view::npos) return wrong("no ';' after the tensor's name");
  const string_view tensor = rest.substr(0, tensor_end);
  string_view iteration = rest.substr(tensor_end + 1), frame;

  RendezvousKey key;
  if (!IsFullDeviceName(src)) return wrong("the source is not a full device name");
  if (!ParseHex16(incarnation, &key.src_incarnation)) {
    return wrong("the incarnation is not 16 lower-case hexadecimal digits");
  }
  if (!IsFullDeviceName(dst)) return wrong("the destination is not a full device name");
  if (tensor.empty()) return wrong("the tensor has no name");
  if (!TakeFirst(&iteration, ':', &frame) || !absl::SimpleAtoi(frame, &key.frame) ||
      !absl::SimpleAtoi(iteration, &key.iteration)) {
    return wrong("frame:iteration are not two numbers");
  }
  key.src_device = std::string(src);
  key.dst_device = std::string(dst);
  key.tensor = std::string(tensor);
  return key;
}

HashedKey::HashedKey(RendezvousKey key) : HashedKey(nullptr, 0, key.frame, key.iteration) {
  auto edge = std::make_shared<const Edge>(EdgeOf(std::move(key)));
  const uint64_t hash = edge->key.Hash();
  *this = HashedKey(std::move(edge), hash, frame_, iteration_);
}

HashedKey::Edge HashedKey::EdgeOf(RendezvousKey key) {
  key.frame = key.iteration = 0;
  StatusOr<TaskName> consumer = TaskName::OfDevice(key.dst_device);
  Edge edge{.key = std::move(key)};
  if (consumer.ok()) edge.consumer = *std::move(consumer);
  return edge;
}

HashedKey::HashedKey(std::shared_ptr<const Edge> edge, uint64_t edge_hash, uint64_t frame,
                     uint64_t iteration)
    : edge_(std::move(edge)),
      edge_hash_(edge_hash),
      frame_(frame),
      iteration_(iteration),
      hash_(frame == 0 && iteration == 0
                ? edge_hash
                : Hasher::Spread(Hasher::Spread(edge_hash ^ frame) + iteration)) {}

HashedKey HashedKey::In(uint64_t frame, uint64_t iteration) const {
  return HashedKey(edge_, edge_hash_, frame, iteration);
}

std::string HashedKey::ToString() const {
  RendezvousKey key = edge_->key;
  key.frame = frame_;
  key.iteration = iteration_;
  return key.ToString();
}

}  // namespace penstock
