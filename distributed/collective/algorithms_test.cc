// SPDX-License-Identifier: Apache-2.0
#include "distributed/collective/algorithms.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "distributed/collective/merge.h"
#include "distributed/collective/testing/memory_network.h"
#include "gtest/gtest.h"

namespace penstock::collective {
namespace {

// Runs closures at once, on the caller's thread.
class InlineScheduler final : public Scheduler {
 public:
  int num_threads() const override { return 1; }
  void Schedule(Closure closure) override { std::move(closure)(); }
  Scheduler& files() override { return *this; }
  std::unique_ptr<Thread> StartThread(const std::string&, Closure) override { return nullptr; }
  bool Spin(SpinHabit&, std::chrono::nanoseconds, absl::FunctionRef<bool()> ready) override {
    return ready();
  }

 private:
  void Split(int64_t total, double, Range fn) override { fn(0, total); }
  bool Wait(Condition&, Mutex&, int64_t) override { return false; }
  void Notify(Condition&) override {}
};

struct Peers {
  Peers(int count, uint64_t seed) : network(count, seed), ended(count) {}

  Services services(int peer) { return {.link = &network.link(peer), .threads = &threads}; }
  Done done(int peer) {
    return Done([this, peer](Status status) {
      EXPECT_FALSE(ended[peer].has_value());
      ended[peer] = std::move(status);
    });
  }
  void ExpectAllEnded() {
    for (size_t i = 0; i < ended.size(); ++i) {
      ASSERT_TRUE(ended[i].has_value()) << "peer " << i << " still waits";
      EXPECT_TRUE(ended[i]->ok()) << *ended[i];
    }
    EXPECT_EQ(network.waiting(), 0);
    EXPECT_EQ(network.left_over(), 0);
  }

  MemoryNetwork network;
  InlineScheduler threads;
  std::vector<std::optional<Status>> ended;
};

// Returns small random integers, so that products of eight of them are exact in most types.
Tensor Numbers(std::mt19937_64& random, DType dtype, int64_t count) {
  Tensor tensor(dtype, Shape({count}));
  for (int64_t i = 0; i < count; ++i) {
    const int value = static_cast<int>(random() % 5) - 2;
    switch (dtype) {
      case DType::kFloat:
        tensor.mutable_data<float>()[i] = static_cast<float>(value);
        break;
      case DType::kDouble:
        tensor.mutable_data<double>()[i] = value;
        break;
      case DType::kHalf:
        tensor.mutable_data<half>()[i] = half(static_cast<float>(value));
        break;
      case DType::kBfloat16:
        tensor.mutable_data<bfloat16>()[i] = bfloat16(static_cast<float>(value));
        break;
      case DType::kInt32:
        tensor.mutable_data<int32_t>()[i] = value;
        break;
      default:
        tensor.mutable_data<int64_t>()[i] = value;
    }
  }
  return tensor;
}

double At(const Tensor& t, int64_t i) {
  switch (t.dtype()) {
    case DType::kFloat:
      return t.data<float>()[i];
    case DType::kDouble:
      return t.data<double>()[i];
    case DType::kHalf:
      return static_cast<float>(t.data<half>()[i]);
    case DType::kBfloat16:
      return static_cast<float>(t.data<bfloat16>()[i]);
    case DType::kInt32:
      return t.data<int32_t>()[i];
    default:
      return static_cast<double>(t.data<int64_t>()[i]);
  }
}

double Model(MergeOp op, const std::vector<Tensor>& inputs, int64_t i) {
  double value = At(inputs[0], i);
  for (size_t p = 1; p < inputs.size(); ++p) {
    const double next = At(inputs[p], i);
    if (op == MergeOp::kAdd) value += next;
    if (op == MergeOp::kMul) value *= next;
    if (op == MergeOp::kMin) value = std::min(value, next);
    if (op == MergeOp::kMax) value = std::max(value, next);
  }
  return value;
}

constexpr DType kTypes[] = {DType::kFloat,    DType::kDouble, DType::kHalf,
                            DType::kBfloat16, DType::kInt32,  DType::kInt64};
constexpr MergeOp kOps[] = {MergeOp::kAdd, MergeOp::kMul, MergeOp::kMin, MergeOp::kMax};

std::vector<Tensor> AllReduce(bool ring, const Reduction& reduction,
                              const std::vector<Tensor>& inputs, uint64_t seed,
                              int64_t* most_sent = nullptr) {
  const int count = static_cast<int>(inputs.size());
  Peers peers(count, seed);
  std::vector<Tensor> outputs;
  for (int p = 0; p < count; ++p) {
    outputs.emplace_back(inputs[0].dtype(), inputs[0].shape());
    if (ring) {
      RingArgs args{.offsets = EvenOffsets(inputs[0].num_elements(), count),
                    .reduction = reduction,
                    .input = inputs[p],
                    .output = outputs[p],
                    .chunk_bytes = 64};
      RunRing(peers.services(p), std::move(args), peers.done(p));
    } else {
      RunDoubling(peers.services(p), reduction, inputs[p], outputs[p], peers.done(p));
    }
  }
  peers.network.Run();
  peers.ExpectAllEnded();
  for (int p = 0; most_sent != nullptr && p < count; ++p) {
    *most_sent = std::max(*most_sent, peers.network.sent_bytes(p));
  }
  return outputs;
}

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() &&
         (a.bytes() == 0 || std::memcmp(a.raw_data(), b.raw_data(), a.bytes()) == 0);
}

TEST(AlgorithmsTest, AllReduceIsTheModel) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 600; ++round) {
    const int count = 1 + static_cast<int>(random() % 8);
    const auto elements = static_cast<int64_t>(random() % 4 == 0 ? random() % 5 : random() % 300);
    const DType dtype = kTypes[random() % std::size(kTypes)];
    const MergeOp op = kOps[random() % std::size(kOps)];
    const bool ring = random() % 2 == 0;
    const bool divide = random() % 2 == 0;
    std::vector<Tensor> inputs;
    for (int p = 0; p < count; ++p) inputs.push_back(Numbers(random, dtype, elements));
    const auto outputs =
        AllReduce(ring, {.merge = op, .divisor = divide ? count : 1}, inputs, random());
    for (const Tensor& output : outputs) {
      ASSERT_TRUE(SameBits(output, outputs[0])) << "the ranks have different bits";
    }
    for (int64_t i = 0; i < elements; ++i) {
      double expected = Model(op, inputs, i);
      if (divide) expected /= count;
      if (divide && (dtype == DType::kInt32 || dtype == DType::kInt64)) {
        expected = std::trunc(expected);
      }
      const double precision =
          dtype == DType::kBfloat16 ? 1e-2 : (dtype == DType::kHalf ? 2e-3 : 1e-6);
      ASSERT_NEAR(At(outputs[0], i), expected, precision * std::max(1.0, std::fabs(expected)))
          << Name(dtype) << " of " << count << " peers, element " << i << " of " << elements
          << (ring ? ", ring" : ", doubling");
    }
  }
}

TEST(AlgorithmsTest, TheOrderOfMessagesChangesNoBit) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<float> floats(-1, 1);
  for (const bool ring : {true, false}) {
    for (int count = 2; count <= 8; ++count) {
      std::vector<Tensor> inputs;
      for (int p = 0; p < count; ++p) {
        inputs.emplace_back(DType::kFloat, Shape({1000}));
        for (float& x : inputs.back().mutable_flat<float>()) x = floats(random);
      }
      const auto first = AllReduce(ring, {}, inputs, 1);
      for (uint64_t seed = 2; seed < 10; ++seed) {
        const auto again = AllReduce(ring, {}, inputs, seed);
        for (const Tensor& output : again) ASSERT_TRUE(SameBits(output, first[0]));
      }
    }
  }
}

TEST(AlgorithmsTest, ARingSendsTwiceAllButOneNthOfTheBytes) {
  std::mt19937_64 random(3);
  for (const int count : {2, 3, 4, 7, 8}) {
    std::vector<Tensor> inputs;
    for (int p = 0; p < count; ++p) inputs.push_back(Numbers(random, DType::kFloat, 840));
    int64_t sent = 0;
    AllReduce(/*ring=*/true, {}, inputs, 1, &sent);
    EXPECT_EQ(sent, 2 * (count - 1) * 840 * 4 / count);
  }
}

TEST(AlgorithmsTest, ReduceScatterAndAllGather) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 200; ++round) {
    const int count = 1 + static_cast<int>(random() % 8);
    std::vector<int64_t> offsets = {0};
    for (int p = 0; p < count; ++p) {
      offsets.push_back(offsets.back() + static_cast<int64_t>(random() % 50));
    }
    std::vector<Tensor> inputs, parts, wholes;
    for (int p = 0; p < count; ++p) {
      inputs.push_back(Numbers(random, DType::kInt32, offsets.back()));
    }
    Peers scatter(count, random()), gather(count, random());
    for (int p = 0; p < count; ++p) {
      parts.emplace_back(DType::kInt32, Shape({offsets[p + 1] - offsets[p]}));
      RingArgs args{.offsets = offsets,
                    .gather = false,
                    .input = inputs[p],
                    .output = parts[p],
                    .chunk_bytes = 64};
      RunRing(scatter.services(p), std::move(args), scatter.done(p));
    }
    scatter.network.Run();
    scatter.ExpectAllEnded();
    for (int p = 0; p < count; ++p) {
      wholes.emplace_back(DType::kInt32, Shape({offsets.back()}));
      RingArgs args{.offsets = offsets,
                    .reduce = false,
                    .input = parts[p],
                    .output = wholes[p],
                    .chunk_bytes = 64};
      RunRing(gather.services(p), std::move(args), gather.done(p));
    }
    gather.network.Run();
    gather.ExpectAllEnded();
    for (const Tensor& whole : wholes) {
      for (int64_t i = 0; i < offsets.back(); ++i) {
        ASSERT_EQ(At(whole, i), Model(MergeOp::kAdd, inputs, i));
      }
    }
  }
}

TEST(AlgorithmsTest, BroadcastReachesAll) {
  std::mt19937_64 random(5);
  for (int count = 1; count <= 9; ++count) {
    for (int source = 0; source < count; ++source) {
      Peers peers(count, random());
      const Tensor value = Numbers(random, DType::kInt64, static_cast<int64_t>(random() % 100));
      std::vector<Tensor> outputs;
      for (int p = 0; p < count; ++p) {
        outputs.emplace_back(DType::kInt64, value.shape());
        BroadcastArgs args{.is_source = p == source, .chunk_bytes = 64};
        (p == source ? args.input : args.output) = p == source ? value : outputs[p];
        RunBroadcast(peers.services(p), std::move(args), peers.done(p));
      }
      peers.network.Run();
      peers.ExpectAllEnded();
      for (int p = 0; p < count; ++p) {
        if (p == source) continue;
        EXPECT_TRUE(SameBits(outputs[p], value)) << p << " of " << count;
      }
    }
  }
}

TEST(AlgorithmsTest, ABrokenLinkEndsEveryPeerOnce) {
  for (const bool ring : {true, false}) {
    Peers peers(4, 6);
    std::mt19937_64 random(6);
    std::vector<Tensor> outputs;
    for (int p = 0; p < 3; ++p) {  // the last message never comes
      outputs.emplace_back(DType::kFloat, Shape({500}));
      const Tensor input = Numbers(random, DType::kFloat, 500);
      if (ring) {
        RunRing(peers.services(p),
                {.offsets = EvenOffsets(500, 4), .input = input, .output = outputs[p]},
                peers.done(p));
      } else {
        RunDoubling(peers.services(p), {}, input, outputs[p], peers.done(p));
      }
    }
    peers.network.Run();
    peers.network.Break(Unavailable("lost peer 3"));
    for (int p = 0; p < 3; ++p) {
      ASSERT_TRUE(peers.ended[p].has_value());
      // A peer whose messages the others do not need may have ended before.
      if (peers.ended[p]->ok()) continue;
      EXPECT_EQ(*peers.ended[p], Unavailable("lost peer 3"));
    }
    EXPECT_FALSE(peers.ended[2]->ok());
  }
}

TEST(AlgorithmsTest, PeersThatDisagreeAreToldSo) {
  Peers peers(2, 7);
  std::mt19937_64 random(7);
  for (int p = 0; p < 2; ++p) {
    const Tensor input = Numbers(random, DType::kFloat, 10 + p);
    RunDoubling(peers.services(p), {}, input, Tensor(DType::kFloat, input.shape()), peers.done(p));
  }
  peers.network.Run();
  for (const auto& ended : peers.ended) {
    ASSERT_TRUE(ended.has_value());
    EXPECT_TRUE(absl::IsInvalidArgument(*ended)) << *ended;
  }
}

TEST(AlgorithmsTest, IntegersWrapAroundAndAreCutOff) {
  const int32_t a[] = {2'147'483'647, -7}, b[] = {1, 0};
  int32_t sum[2];
  Merge(MergeOp::kAdd, DType::kInt32, 2, a, b, sum);
  EXPECT_EQ(sum[0], -2'147'483'647 - 1);
  Divide(DType::kInt32, 2, 2, sum);
  EXPECT_EQ(sum[1], -3);
  EXPECT_FALSE(CheckMergeable(DType::kString).ok());
  EXPECT_FALSE(CheckMergeable(DType::kBool).ok());
}

}  // namespace
}  // namespace penstock::collective
