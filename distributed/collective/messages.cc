// SPDX-License-Identifier: Apache-2.0
#include "distributed/collective/messages.h"

#include <charconv>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/types/span.h"
#include "core/op/device_name.h"

namespace penstock::collective {
namespace {

constexpr char kJoin[] = "join", kLeave[] = "leave";
constexpr int64_t kRanksMax = 4095;  // the kernels have the same limit

std::string ListOf(const std::vector<uint64_t>& numbers) {
  std::string list;
  for (const uint64_t n : numbers) StrAppend(&list, list.empty() ? "" : ",", n);
  return list;
}

// Reads fields in order, and remembers the first error.
class Reader {
 public:
  explicit Reader(absl::Span<const std::string> fields) : fields_(fields) {}

  std::string Text() {
    if (next_ < fields_.size()) return fields_[next_++];
    Fail("too few fields");
    return "";
  }
  template <class T>
  T Number() {
    return NumberOf<T>(Text());
  }
  std::vector<uint64_t> List() {
    const std::string text = Text();
    std::vector<uint64_t> numbers;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find(',', at), text.size());
      numbers.push_back(NumberOf<uint64_t>(text.substr(at, end - at)));
      at = end + 1;
    }
    return numbers;
  }
  GroupKey Group() {
    GroupKey group{.key = Number<int64_t>(), .size = Number<int64_t>()};
    if (group.size < 1 || group.size > kRanksMax) Fail(StrCat(group.size, " ranks"));
    return group;
  }
  Status End() {
    if (next_ != fields_.size()) Fail("too many fields");
    return status_;
  }
  void Fail(const std::string& what) {
    if (status_.ok()) status_ = InvalidArgument("a message about a collective's ranks: ", what);
  }

 private:
  template <class T>
  T NumberOf(const std::string& text) {
    T number = 0;
    if (!absl::SimpleAtoi(text, &number)) Fail(StrCat("'", text, "' is no number"));
    return number;
  }

  const absl::Span<const std::string> fields_;
  size_t next_ = 0;
  Status status_;
};

StatusOr<Message> ParseJoin(Reader& reader) {
  Join join;
  join.group = reader.Group();
  join.device = reader.Text();
  join.session = reader.Text();
  join.nonce = reader.Number<uint64_t>();
  RETURN_IF_ERROR(reader.End());
  return Message(std::move(join));
}

StatusOr<Message> ParseLeave(Reader& reader) {
  Leave leave;
  leave.group = reader.Group();
  leave.nonces = reader.List();
  leave.formed = reader.Number<uint64_t>();
  leave.completed = reader.List();
  const int code = reader.Number<int>();
  const std::string why = reader.Text();
  if (code < 1 || code > 16) reader.Fail(StrCat("code ", code));
  RETURN_IF_ERROR(reader.End());
  leave.why = Status(static_cast<StatusCode>(code), why);
  return Message(std::move(leave));
}

}  // namespace

std::string GroupKey::ToString() const { return StrCat("group ", key, " of ", size, " ranks"); }

Tensor ToTensor(const Message& message) {
  std::vector<std::string> fields;
  if (const Join* join = std::get_if<Join>(&message)) {
    fields = {kJoin,        StrCat(join->group.key), StrCat(join->group.size),
              join->device, join->session,           StrCat(join->nonce)};
  } else {
    const Leave& leave = std::get<Leave>(message);
    fields = {kLeave,
              StrCat(leave.group.key),
              StrCat(leave.group.size),
              ListOf(leave.nonces),
              StrCat(leave.formed),
              ListOf(leave.completed),
              StrCat(static_cast<int>(leave.why.code())),
              std::string(leave.why.message())};
  }
  return Tensor::Vector<std::string>(fields);
}

StatusOr<Message> ParseMessage(const Tensor& tensor) {
  if (tensor.dtype() != DType::kString || tensor.rank() != 1) {
    return InvalidArgument("a message about a collective's ranks: not a vector of strings");
  }
  Reader reader(tensor.flat<std::string>());
  const std::string kind = reader.Text();
  if (kind == kJoin) return ParseJoin(reader);
  if (kind == kLeave) return ParseLeave(reader);
  return InvalidArgument("a message about a collective's ranks: of unknown kind '", kind, "'");
}

}  // namespace penstock::collective
