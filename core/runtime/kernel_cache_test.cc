// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/kernel_cache.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

class Nothing : public Kernel {
  Status Compute(KernelContext&) override { return OkStatus(); }
};

TEST(KernelCache, SharesKernelsOfStatefulOpsByNodeAndDevice) {
  const Registry registry({{.name = "Draw", .attrs = {{"seed", 0}}, .stateful = true},
                           {.name = "Pure"},
                           {.name = "_Own", .stateful = true}},
                          {{.op = "Draw", .device = "CPU", .make = Make<Nothing>},
                           {.op = "Pure", .device = "CPU", .make = Make<Nothing>},
                           {.op = "_Own", .device = "CPU", .make = Make<Nothing>}});
  KernelCache cache;
  const auto get = [&](const std::string& op, const std::string& name, int seed = 0,
                       const std::string& device = "/device:CPU:0") {
    const Attrs attrs = {{"seed", seed}};
    const std::vector<EdgeType> none;
    auto kernel = cache.Get(registry, "CPU",
                            {.name = name,
                             .op = *registry.FindOp(op),
                             .attrs = attrs,
                             .device = device,
                             .input_types = none,
                             .output_types = none});
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    return *kernel;
  };
  const auto first = get("Draw", "a");
  EXPECT_EQ(get("Draw", "a"), first);
  EXPECT_NE(get("Draw", "b"), first);
  EXPECT_NE(get("Draw", "a", 0, "/device:CPU:1"), first);
  EXPECT_NE(get("Pure", "p"), get("Pure", "p"));
  EXPECT_NE(get("_Own", "o"), get("_Own", "o"));
  // Another node of the same name replaces the first one.
  const auto other = get("Draw", "a", 7);
  EXPECT_NE(other, first);
  EXPECT_EQ(get("Draw", "a", 7), other);
}

}  // namespace
}  // namespace penstock
