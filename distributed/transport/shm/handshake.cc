// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/shm/handshake.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "absl/strings/strip.h"
#include "core/base/env.h"
#include "distributed/transport/shm/unix_socket.h"

namespace penstock {
namespace {

constexpr uint32_t kMagic = 0x6d687370;  // "pshm"
constexpr size_t kTextMax = 2048;

// The fields of both messages; a text follows.
struct Fields {
  uint32_t magic;
  uint32_t version;
  uint64_t incarnation;  // used by Hello only
  int64_t code;          // used by Welcome only
};

std::string Bytes(Fields fields, string_view text) {
  fields.magic = kMagic;
  fields.version = kShmVersion;
  std::string bytes(reinterpret_cast<const char*>(&fields), sizeof(fields));
  const string_view cut = text.substr(0, kTextMax);
  return bytes.append(cut.data(), cut.size());
}

StatusOr<Fields> ParseFields(string_view bytes) {
  Fields fields = {};
  if (bytes.size() < sizeof(fields))
    return DataLoss("its greeting has only ", bytes.size(), " bytes");
  std::memcpy(&fields, bytes.data(), sizeof(fields));
  if (fields.magic != kMagic) return DataLoss("its first message is not a greeting");
  if (fields.version != kShmVersion) {
    return FailedPrecondition("it speaks version ", fields.version,
                              " of the shared memory transport, this task ", kShmVersion);
  }
  return fields;
}

}  // namespace

StatusOr<HostIdentity> HostIdentity::Own() {
  const StatusOr<std::string> boot_id = Env::Real().ReadFile("/proc/sys/kernel/random/boot_id");
  struct stat network = {};
  if (!boot_id.ok() || stat("/proc/self/ns/net", &network) != 0) {
    return FailedPrecondition("/proc does not say which host this is: mount it");
  }
  return HostIdentity{std::string(absl::StripAsciiWhitespace(*boot_id)), network.st_ino};
}

Status HostIdentity::Compare(const HostIdentity& other) const {
  if (other.boot_id != boot_id) {
    return FailedPrecondition("it is on another host (boot id ", other.boot_id, ", here ", boot_id,
                              ")");
  }
  if (other.network_namespace != network_namespace) {
    return FailedPrecondition("it is in another network namespace of this host (",
                              other.network_namespace, ", here ", network_namespace, ")");
  }
  return OkStatus();
}

Status CheckUser(int socket) {
  ASSIGN_OR_RETURN(const uid_t peer, PeerUser(socket));
  if (peer == geteuid()) return OkStatus();
  return FailedPrecondition("its process belongs to user ", peer, ", this one to user ", geteuid(),
                            ": run both as one user");
}

std::string Hello::ToBytes() const { return Bytes({.incarnation = incarnation}, consumer); }

StatusOr<Hello> Hello::Parse(string_view bytes) {
  ASSIGN_OR_RETURN(const Fields fields, ParseFields(bytes));
  if (bytes.size() == sizeof(fields)) return InvalidArgument("a consumer without a name");
  return Hello{std::string(bytes.substr(sizeof(fields))), fields.incarnation};
}

std::string WelcomeBytes(const Status& status) {
  return Bytes({.code = static_cast<int64_t>(status.code())}, status.message());
}

Status ParseWelcome(string_view bytes) {
  ASSIGN_OR_RETURN(const Fields fields, ParseFields(bytes));
  if (fields.code == 0) return OkStatus();
  const bool known = fields.code > 0 && fields.code <= 16;  // gRPC's canonical codes
  return Status(known ? static_cast<StatusCode>(fields.code) : StatusCode::kUnknown,
                bytes.substr(sizeof(fields)));
}

}  // namespace penstock
