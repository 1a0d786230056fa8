// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

namespace penstock {
namespace {

constexpr size_t kStateBytes = 4096;
constexpr size_t kRingsAt = kStateBytes;
constexpr size_t kCommandsAt = kRingsAt + SharedSegment::kTensorRingBytes;
constexpr size_t kArenaAt = kCommandsAt + SharedSegment::kCommandRingBytes;
constexpr size_t kSegmentBytes = kArenaAt + SharedSegment::kArenaBytes;
// With these seals no process can change the memory's length, or remove the seals. If one end could
// shorten the memory, accesses of the other end would kill it with SIGBUS.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
static_assert(sizeof(SharedState) <= kStateBytes);
static_assert(kArenaAt % 4096 == 0);

Status NoMemory(const char* what) {
  const bool descriptors = errno == EMFILE || errno == ENFILE;
  return ResourceExhausted("shared memory for tensors: ", what, ": ", std::strerror(errno),
                           descriptors ? "; raise the limit on descriptors (ulimit -n)"
                                       : "; raise the limits on memory (ulimit -v, a container's)");
}

}  // namespace

StatusOr<std::shared_ptr<SharedSegment>> SharedSegment::Map(UniqueFd fd) {
  void* const base = mmap(nullptr, kSegmentBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (base == MAP_FAILED) return NoMemory("mmap");
  // Keeps the mapping out of forked children, which must not write to memory that this process
  // shares with its peers.
  madvise(base, kSegmentBytes, MADV_DONTFORK);
  return std::shared_ptr<SharedSegment>(new SharedSegment(std::move(fd), static_cast<char*>(base)));
}

StatusOr<std::shared_ptr<SharedSegment>> SharedSegment::Create() {
  UniqueFd fd(memfd_create("penstock-tensors", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return NoMemory("memfd_create");
  if (ftruncate(fd.get(), static_cast<off_t>(kSegmentBytes)) != 0) return NoMemory("ftruncate");
  if (fallocate(fd.get(), 0, 0, static_cast<off_t>(kArenaAt)) != 0) return NoMemory("fallocate");
  if (fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return NoMemory("sealing");
  ASSIGN_OR_RETURN(std::shared_ptr<SharedSegment> segment, Map(std::move(fd)));
  new (segment->base_) SharedState;
  return segment;
}

StatusOr<std::shared_ptr<SharedSegment>> SharedSegment::Open(UniqueFd fd) {
  struct stat found = {};
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(fd.get(), &found) != 0 ||
      found.st_size != static_cast<off_t>(kSegmentBytes)) {
    return DataLoss("the shared memory is not a sealed segment of ", kSegmentBytes, " bytes");
  }
  ASSIGN_OR_RETURN(std::shared_ptr<SharedSegment> segment, Map(std::move(fd)));
  segment->CloseFd();
  return segment;
}

SharedSegment::~SharedSegment() { munmap(base_, kSegmentBytes); }

RingMemory SharedSegment::tensors() {
  return {&state().tensors, base_ + kRingsAt, kTensorRingBytes};
}
RingMemory SharedSegment::commands() {
  return {&state().commands, base_ + kCommandsAt, kCommandRingBytes};
}
char* SharedSegment::arena() { return base_ + kArenaAt; }

bool SharedSegment::Reserve(const char* part, size_t bytes) {
  const size_t begin = static_cast<size_t>(part - arena());
  MutexLock lock(mu_);
  for (size_t chunk = begin / kChunkBytes; chunk * kChunkBytes < begin + bytes; ++chunk) {
    if (reserved_[chunk]) continue;
    const off_t from = static_cast<off_t>(kArenaAt + chunk * kChunkBytes);
    if (fallocate(fd_.get(), 0, from, static_cast<off_t>(kChunkBytes)) != 0) return false;
    reserved_[chunk] = true;
  }
  return true;
}

bool SharedSegment::Discard(char* part, size_t bytes) {
  const size_t begin = static_cast<size_t>(part - arena());
  MutexLock lock(mu_);
  for (size_t chunk = begin / kChunkBytes; chunk * kChunkBytes < begin + bytes; ++chunk) {
    reserved_[chunk] = false;
  }
  return madvise(part, bytes, MADV_REMOVE) == 0;
}

}  // namespace penstock
