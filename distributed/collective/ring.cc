// SPDX-License-Identifier: Apache-2.0
//
// The ring algorithm. Each chunk of each segment travels along the ring independently: it starts
// at the peer where its segment starts, and each peer merges or copies it and sends it on. So
// chunks overlap, and there is no barrier between peers.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "distributed/collective/algorithms.h"
#include "distributed/collective/merge.h"
#include "distributed/collective/outstanding.h"

namespace penstock::collective {
namespace {

enum RingPhase : uint32_t { kReduce = 0, kGather = 1 };

class Ring : public std::enable_shared_from_this<Ring> {
 public:
  Ring(const Services& services, RingArgs args, Done done)
      : services_(services),
        args_(std::move(args)),
        rank_(services.link->rank()),
        size_(services.link->size()),
        dtype_(args_.output.dtype()),
        outstanding_(std::move(done)) {}

  void Start() {
    Status status = Prepare();
    if (status.ok() && size_ > 1) {
      ForEachPiece([this](const Piece& piece) { Expect(piece); });
      ForEachPiece([this](const Piece& piece) { Begin(piece); });
    } else if (status.ok()) {
      Copy(args_.input, 0, args_.input.num_elements(), 0);
    }
    outstanding_.End(status);
  }

 private:
  struct Piece {
    int segment;
    uint32_t chunk;
    int64_t begin, end;  // position in elements, in the entire tensor
    int64_t count() const { return end - begin; }
  };

  int64_t Bytes(int64_t elements) const { return elements * static_cast<int64_t>(SizeOf(dtype_)); }
  int next() const { return (rank_ + 1) % size_; }
  int previous() const { return (rank_ + size_ - 1) % size_; }
  // Returns the number of hops from the start of a segment's chain to this peer.
  int Position(const Piece& piece, RingPhase phase) const {
    const int begin = phase == kReduce ? piece.segment + 1 : piece.segment;
    return (rank_ + 2 * size_ - begin) % size_;
  }
  bool IsLast(const Piece& piece, RingPhase phase) const {
    return Position(piece, phase) == size_ - 1;
  }
  static Tag TagOf(const Piece& piece, RingPhase phase) {
    return {.phase = phase, .segment = static_cast<uint32_t>(piece.segment), .chunk = piece.chunk};
  }
  // InInput and InOutput return the position in the input, or in the output, of an element of the
  // entire tensor.
  int64_t InInput(int64_t element) const {
    return args_.reduce ? element : element - args_.offsets[rank_];
  }
  int64_t InOutput(int64_t element) const {
    return args_.gather ? element : element - args_.offsets[rank_];
  }

  Status Prepare() {
    CHECK(static_cast<int>(args_.offsets.size()) == size_ + 1 && (args_.reduce || args_.gather));
    if (args_.reduce) RETURN_IF_ERROR(CheckMergeable(dtype_));
    if (size_ > static_cast<int>(Tag::kSegmentMax)) {
      return InvalidArgument("a ring has at most ", Tag::kSegmentMax, " peers, not ", size_);
    }
    int64_t longest = 1;
    for (int i = 0; i < size_; ++i) {
      longest = std::max(longest, args_.offsets[i + 1] - args_.offsets[i]);
    }
    const int64_t least = longest / Tag::kChunkMax + 1;
    chunk_ = std::max<int64_t>(least, args_.chunk_bytes / static_cast<int64_t>(SizeOf(dtype_)));
    // Partial sums are written to the output, or to a separate tensor if the output is too small.
    work_ = args_.output;
    if (args_.gather || size_ < 3) return OkStatus();
    ASSIGN_OR_RETURN(work_, Tensor::Make(CpuAllocator(), dtype_, Shape({args_.offsets.back()})));
    return OkStatus();
  }

  template <class F>
  void ForEachPiece(F call) const {
    // Segments that start at this peer come first, because the others wait for them.
    for (int i = 0; i < size_; ++i) {
      const int segment = (rank_ + size_ - 1 - i + size_) % size_;
      uint32_t chunk = 0;
      const int64_t end = args_.offsets[segment + 1];
      for (int64_t at = args_.offsets[segment]; at < end; at += chunk_) {
        call(Piece{segment, chunk++, at, std::min(end, at + chunk_)});
      }
    }
  }

  // Calls Recv for the messages of a piece.
  void Expect(const Piece& piece) {
    for (const RingPhase phase : {kReduce, kGather}) {
      if (phase == kReduce ? !args_.reduce : !args_.gather) continue;
      if (Position(piece, phase) == 0) continue;
      outstanding_.Add(1);
      services_.link->Recv(previous(), TagOf(piece, phase),
                           [self = shared_from_this(), piece, phase](StatusOr<Tensor> received) {
                             self->Arrived(piece, phase, std::move(received));
                           });
    }
  }

  // Sends the first message of a piece, if its chain starts at this peer.
  void Begin(const Piece& piece) {
    const RingPhase first = args_.reduce ? kReduce : kGather;
    if (Position(piece, first) != 0) return;
    outstanding_.Add(1);
    RunHeavy(*services_.threads, Bytes(piece.count()), [self = shared_from_this(), piece, first] {
      const int64_t from = self->InInput(piece.begin);
      services(self).link->Send(self->next(), TagOf(piece, first),
                                self->args_.input.Slice(from, from + piece.count()));
      if (first == kGather) self->Copy(self->args_.input, from, piece.count(), piece.begin);
      self->outstanding_.End(OkStatus());
    });
  }
  static const Services& services(const std::shared_ptr<Ring>& self) { return self->services_; }

  void Arrived(const Piece& piece, RingPhase phase, StatusOr<Tensor> received) {
    Status status = received.status();
    if (status.ok()) status = CheckReceived(*received, dtype_, piece.count(), previous());
    if (!status.ok() || outstanding_.failed()) return outstanding_.End(status);
    RunHeavy(*services_.threads, Bytes(piece.count()),
             [self = shared_from_this(), piece, phase, value = *std::move(received)]() mutable {
               if (phase == kReduce) {
                 self->Reduce(piece, value);
               } else {
                 self->Gather(piece, std::move(value));
               }
               self->outstanding_.End(OkStatus());
             });
  }

  void Reduce(const Piece& piece, const Tensor& received) {
    const bool last = IsLast(piece, kReduce);
    Tensor& to = last ? args_.output : work_;
    const int64_t at = last ? InOutput(piece.begin) : piece.begin;
    char* const sum = static_cast<char*>(to.mutable_raw_data()) + Bytes(at);
    const char* const own =
        static_cast<const char*>(args_.input.raw_data()) + Bytes(InInput(piece.begin));
    Merge(args_.reduction.merge, dtype_, piece.count(), received.raw_data(), own, sum);
    if (last && args_.reduction.divisor > 1) {
      Divide(dtype_, piece.count(), args_.reduction.divisor, sum);
    }
    if (last && !args_.gather) return;
    services_.link->Send(next(), TagOf(piece, last ? kGather : kReduce),
                         to.Slice(at, at + piece.count()));
  }

  void Gather(const Piece& piece, Tensor received) {
    Copy(received, 0, piece.count(), piece.begin);
    if (!IsLast(piece, kGather)) {
      services_.link->Send(next(), TagOf(piece, kGather), std::move(received));
    }
  }

  // Copies elements of `from` to their place in the output.
  void Copy(const Tensor& from, int64_t begin, int64_t count, int64_t element) {
    if (count == 0) return;
    std::memcpy(static_cast<char*>(args_.output.mutable_raw_data()) + Bytes(InOutput(element)),
                static_cast<const char*>(from.raw_data()) + Bytes(begin), Bytes(count));
  }

  const Services services_;
  RingArgs args_;
  const int rank_, size_;
  const DType dtype_;
  int64_t chunk_ = 1;  // elements
  Tensor work_;
  Outstanding outstanding_;
};

}  // namespace

void RunRing(const Services& services, RingArgs args, Done done) {
  std::make_shared<Ring>(services, std::move(args), std::move(done))->Start();
}

}  // namespace penstock::collective
