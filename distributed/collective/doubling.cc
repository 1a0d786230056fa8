// SPDX-License-Identifier: Apache-2.0
//
// All-reduce by recursive doubling: in round k a peer exchanges its sum with the peer whose number
// differs in bit k. If the number of peers is not a power of two, the first peers form pairs before
// the rounds: the odd peer of each pair sends its tensor to the even one, takes no part in the
// rounds, and receives the result at the end.
#include <cstring>
#include <memory>
#include <utility>

#include "distributed/collective/algorithms.h"
#include "distributed/collective/merge.h"

namespace penstock::collective {
namespace {

enum Phase : uint32_t { kLend = 0, kExchange = 1, kReturn = 2 };

int LargestPowerOfTwo(int at_most) {
  int power = 1;
  while (2 * power <= at_most) power *= 2;
  return power;
}

class Doubling : public std::enable_shared_from_this<Doubling> {
 public:
  Doubling(const Services& services, const Reduction& reduction, Tensor input, Tensor output,
           Done done)
      : services_(services),
        reduction_(reduction),
        rank_(services.link->rank()),
        players_(LargestPowerOfTwo(services.link->size())),
        pairs_(services.link->size() - players_),
        sum_(std::move(input)),
        output_(std::move(output)),
        done_(std::move(done)) {}

  void Start() {
    const Status known = CheckMergeable(sum_.dtype());
    if (!known.ok()) return End(known);
    if (rank_ >= 2 * pairs_) return Round(0);
    const int partner = rank_ ^ 1;
    if (rank_ % 2 == 1) {
      services_.link->Send(partner, {.phase = kLend}, sum_);
      return Recv(partner, {.phase = kReturn}, [](Doubling& self, Tensor result) {
        self.sum_ = std::move(result);
        self.Finish();
      });
    }
    Recv(partner, {.phase = kLend}, [](Doubling& self, Tensor lent) {
      const Status merged = self.Add(self.sum_, lent);
      if (!merged.ok()) return self.End(merged);
      self.Round(0);
    });
  }

 private:
  // Returns the number of this peer among those that exchange sums ("players").
  int player() const { return rank_ < 2 * pairs_ ? rank_ / 2 : rank_ - pairs_; }
  int PeerOf(int player) const { return player < pairs_ ? 2 * player : player + pairs_; }

  void Round(int k) {
    if (1 << k == players_) return DivideAndFinish();
    const int other = player() ^ (1 << k);
    const Tag tag{.phase = kExchange, .segment = static_cast<uint32_t>(k)};
    services_.link->Send(PeerOf(other), tag, sum_);
    Recv(PeerOf(other), tag, [k, other](Doubling& self, Tensor theirs) {
      const bool first = self.player() < other;
      const Tensor own = self.sum_;  // the peer's own sum, being sent
      const Status merged = first ? self.Add(own, theirs) : self.Add(theirs, own);
      if (!merged.ok()) return self.End(merged);
      self.Round(k + 1);
    });
  }

  // Computes sum_ = a + b, in new memory.
  Status Add(const Tensor& a, const Tensor& b) {
    ASSIGN_OR_RETURN(Tensor sum, Tensor::Make(CpuAllocator(), output_.dtype(), output_.shape()));
    Merge(reduction_.merge, sum.dtype(), sum.num_elements(), a.raw_data(), b.raw_data(),
          sum.mutable_raw_data());
    sum_ = std::move(sum);
    return OkStatus();
  }

  // Divides the sum, sends the result to the odd peer of this peer's pair, and ends the algorithm.
  void DivideAndFinish() {
    if (reduction_.divisor > 1) {
      CopyOut();
      Divide(output_.dtype(), output_.num_elements(), reduction_.divisor,
             output_.mutable_raw_data());
      sum_ = output_;
    }
    if (rank_ < 2 * pairs_) services_.link->Send(rank_ ^ 1, {.phase = kReturn}, sum_);
    Finish();
  }

  void CopyOut() {
    if (output_.bytes() == 0 || sum_.raw_data() == output_.raw_data()) return;
    std::memcpy(output_.mutable_raw_data(), sum_.raw_data(), output_.bytes());
  }
  void Finish() {
    CopyOut();
    End(OkStatus());
  }
  void End(const Status& status) { std::move(done_)(status); }

  template <class F>
  void Recv(int peer, Tag tag, F then) {
    services_.link->Recv(
        peer, tag, [self = shared_from_this(), peer, then](StatusOr<Tensor> received) {
          Status status = received.status();
          if (status.ok()) {
            status =
                CheckReceived(*received, self->output_.dtype(), self->output_.num_elements(), peer);
          }
          if (!status.ok()) return self->End(status);
          then(*self, *std::move(received));
        });
  }

  const Services services_;
  const Reduction reduction_;
  const int rank_;
  const int players_;  // the number of peers that exchange sums
  const int pairs_;    // the first 2 * pairs_ peers form pairs
  Tensor sum_;
  Tensor output_;
  Done done_;
};

}  // namespace

void RunDoubling(const Services& services, const Reduction& reduction, Tensor input, Tensor output,
                 Done done) {
  std::make_shared<Doubling>(services, reduction, std::move(input), std::move(output),
                             std::move(done))
      ->Start();
}

}  // namespace penstock::collective
