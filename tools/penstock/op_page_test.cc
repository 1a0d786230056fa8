// SPDX-License-Identifier: Apache-2.0
#include "tools/penstock/op_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Registry WithTwoOps() {
  return Registry({{.name = "Clip",
                    .doc = "y = x where x < limit & \"more\".",
                    .inputs = {{"x", "T", "What is clipped."}},
                    .outputs = {{"y", "T"}},
                    .types = {{"T", {DType::kFloat, DType::kDouble}}},
                    .attrs = {{"limit", AttrValue(2.5f)},
                              {"times", Ints{.min = 1}},
                              {"mode", OneOf{{"SAME", "VALID"}}}}},
                   {.name = "Drop", .types = {{"T", {}}}}},
                  {});
}

std::string Page() {
  const Registry registry = WithTwoOps();
  return OpPage(registry, registry.ops());
}

TEST(OpPage, SaysWhatTheRegistryKnows) {
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("<section id=\"Clip\">"));
  EXPECT_THAT(page, HasSubstr("<td>What is clipped.</td>"));
  EXPECT_THAT(page, HasSubstr("type: float double"));
  EXPECT_THAT(page, HasSubstr("type: any type"));
  EXPECT_THAT(page, HasSubstr("float = 2.5"));
  EXPECT_THAT(page, HasSubstr("int &gt;= 1, required"));
  EXPECT_THAT(page, HasSubstr("{&#39;SAME&#39;, &#39;VALID&#39;}, required"));
  EXPECT_THAT(page, HasSubstr("2 ops"));
}

TEST(OpPage, TextsAreNeverMarkup) {
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("x &lt; limit &amp; &quot;more&quot;."));
  EXPECT_THAT(page, Not(HasSubstr("x < limit")));
}

TEST(OpPage, RefersToNothingOutside) {
  for (const char* reference : {"http", "src=", "href=", "url(", "@import"}) {
    EXPECT_THAT(Page(), Not(HasSubstr(reference)));
  }
}

}  // namespace
}  // namespace penstock
