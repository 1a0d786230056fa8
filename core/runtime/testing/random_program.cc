// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/testing/random_program.h"

#include <random>
#include <utility>

namespace penstock {
namespace {

using Statement = RandomProgram::Statement;
using Block = RandomProgram::Block;
constexpr int kFeeds = 2;

class Generator {
 public:
  Generator(uint32_t seed, RandomProgram::Kinds kinds) : random_(seed), kinds_(kinds) {}

  Block Make(int values, int depth) {
    Block block;
    for (int n = 2 + Below(depth == 0 ? 6 : 4); n > 0; --n) {
      Statement s = Make1(values, depth);
      values += s.kind == Statement::kFor ? static_cast<int>(s.inputs.size()) - 1 : 1;
      block.push_back(std::move(s));
    }
    return block;
  }
  int Below(int n) { return static_cast<int>(random_() % n); }

  static int Results(const Block& block) {
    int n = 0;
    for (const Statement& s : block) {
      n += s.kind == Statement::kFor ? static_cast<int>(s.inputs.size()) - 1 : 1;
    }
    return n;
  }

 private:
  Statement Make1(int values, int depth) {
    const int choice = depth >= 3 ? 99 : Below(100);
    if (choice < 25) return MakeCond(values, depth);
    if (choice < 50) return MakeFor(values, depth);
    Statement s{.op = "TestSum"};
    for (int n = Below(4); n > 0; --n) s.inputs.push_back(Below(values));
    s.attrs["plus"] = s.plus = Below(10);
    const int kind = Below(100);
    if (kind < kinds_.expensive) {
      s.op = "TestSpin";
      s.attrs["micros"] = Below(3) == 0 ? 10 : 0;
      s.attrs["declared"] = Below(2) == 0;
    } else if (kind < kinds_.expensive + kinds_.async) {
      s.op = "TestAsync";
      s.attrs["inline"] = Below(2) == 0;
    }
    return s;
  }

  Statement MakeCond(int values, int depth) {
    Statement s{.kind = Statement::kCond, .inputs = {Below(values)}};
    for (int i = 0; i < 2; ++i) {
      s.blocks.push_back(Make(values, depth + 1));
      s.results.push_back({Below(values + Results(s.blocks.back()))});
    }
    return s;
  }

  Statement MakeFor(int values, int depth) {
    Statement s{.kind = Statement::kFor, .inputs = {Below(values)}, .number = ++loops_};
    const int carried = 1 + Below(3);
    for (int i = 0; i < carried; ++i) s.inputs.push_back(Below(values));
    s.parallel_iterations = 1 + Below(4);
    const int inside = values + 1 + carried;
    s.blocks.push_back(Make(inside, depth + 1));
    s.results.emplace_back();
    const int all = inside + Results(s.blocks[0]);
    for (int i = 0; i < carried; ++i) s.results[0].push_back(Below(all));
    return s;
  }

  std::mt19937 random_;
  const RandomProgram::Kinds kinds_;
  int loops_ = 0;
};

int64_t Add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

void Interpret(const Block& block, std::vector<int64_t>* values) {
  for (const Statement& s : block) {
    std::vector<int64_t>& v = *values;
    if (s.kind == Statement::kSum) {
      int64_t sum = s.plus;
      for (const int i : s.inputs) sum = Add(sum, v[i]);
      v.push_back(sum);
    } else if (s.kind == Statement::kCond) {
      const int taken = (v[s.inputs[0]] & 1) != 0 ? 0 : 1;
      std::vector<int64_t> inside = v;
      Interpret(s.blocks[taken], &inside);
      v.push_back(inside[s.results[taken][0]]);
    } else {
      std::vector<int64_t> carried;
      for (size_t i = 1; i < s.inputs.size(); ++i) carried.push_back(v[s.inputs[i]]);
      for (int64_t i = 0; i < (v[s.inputs[0]] & 3); ++i) {
        std::vector<int64_t> inside = v;
        inside.push_back(i);
        inside.insert(inside.end(), carried.begin(), carried.end());
        Interpret(s.blocks[0], &inside);
        for (size_t c = 0; c < carried.size(); ++c) carried[c] = inside[s.results[0][c]];
      }
      v.insert(v.end(), carried.begin(), carried.end());
    }
  }
}

void BuildBlock(const Block& block, FlowBuilder& b, FlowBuilder::Values* values) {
  for (const Statement& s : block) {
    FlowBuilder::Values& v = *values;
    FlowBuilder::Values inputs;
    for (const int i : s.inputs) inputs.push_back(v[i]);
    if (s.kind == Statement::kSum) {
      v.push_back(b.Sum(s.op, inputs, s.attrs));
    } else if (s.kind == Statement::kCond) {
      const auto branch = [&](int i) {
        return [&, i] {
          FlowBuilder::Values inside = v;
          BuildBlock(s.blocks[i], b, &inside);
          return inside[s.results[i][0]];
        };
      };
      v.push_back(b.Cond(b.Call("TestOdd", inputs), branch(0), branch(1)));
    } else {
      const Endpoint limit = b.Call("TestLow", {inputs[0]});
      inputs.erase(inputs.begin());
      const auto results = b.For({StrCat("loop", s.number), s.parallel_iterations}, limit, inputs,
                                 [&](const FlowBuilder::Values& carried) {
                                   FlowBuilder::Values inside = v, next;
                                   inside.insert(inside.end(), carried.begin(), carried.end());
                                   BuildBlock(s.blocks[0], b, &inside);
                                   for (const int r : s.results[0]) next.push_back(inside[r]);
                                   return next;
                                 });
      v.insert(v.end(), results.begin(), results.end());
    }
  }
}

}  // namespace

RandomProgram::RandomProgram(uint32_t seed, Kinds kinds)
    : block_(Generator(seed, kinds).Make(kFeeds, 0)) {}

int RandomProgram::num_fetches() const { return Generator::Results(block_); }

Graph RandomProgram::Build(FlowBuilder::FeedForm form) const {
  FlowBuilder b(form);
  FlowBuilder::Values values;
  for (int i = 0; i < kFeeds; ++i) values.push_back(b.Feed(i));
  BuildBlock(block_, b, &values);
  for (size_t i = kFeeds; i < values.size(); ++i) {
    b.Fetch(values[i], static_cast<int>(i - kFeeds));
  }
  return b.Take();
}

std::vector<int64_t> RandomProgram::Expected(std::vector<int64_t> feeds) const {
  Interpret(block_, &feeds);
  return {feeds.begin() + kFeeds, feeds.end()};
}

}  // namespace penstock
