// SPDX-License-Identifier: Apache-2.0
#include "tools/penstock/op_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Registry WithOneOp() {
  return Registry({{.name = "Clip",
                    .doc = "y = x where x < limit & \"more\".",
                    .inputs = {{"x", "T", "What is clipped."}},
                    .outputs = {{"y", "T"}},
                    .types = {{"T", {DType::kFloat, DType::kDouble}}},
                    .attrs = {{"limit", AttrValue(2.5f)}}}},
                  {});
}

std::string Page() {
  const Registry registry = WithOneOp();
  return OpPage(registry, registry.ops());
}

TEST(OpPage, SaysWhatTheRegistryKnows) {
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("<section id=\"Clip\">"));
  EXPECT_THAT(page, HasSubstr("<td>What is clipped.</td>"));
  EXPECT_THAT(page, HasSubstr("type: float double"));
  EXPECT_THAT(page, HasSubstr("= 2.5"));
  EXPECT_THAT(page, HasSubstr("1 ops"));
}

TEST(OpPage, TextsAreNeverMarkup) {
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("x &lt; limit &amp; &quot;more&quot;."));
  EXPECT_THAT(page, Not(HasSubstr("x < limit")));
}

TEST(OpPage, RefersToNothingOutside) { EXPECT_THAT(Page(), Not(HasSubstr("http"))); }

}  // namespace
}  // namespace penstock
