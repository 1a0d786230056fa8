// SPDX-License-Identifier: Apache-2.0
#include "tools/penstock/op_page.h"

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tools/penstock/op_facts.h"

namespace penstock {
namespace {

constexpr char kHead[] = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Penstock: ops</title>
<style>
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 60em; padding: 0 1em;
       color: #222; background: #fff; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin: 0; }
input { font: inherit; width: 100%; padding: .4em; box-sizing: border-box; }
section { border-top: 1px solid #ddd; padding: 1em 0; }
table { border-collapse: collapse; margin: .5em 0; }
td { padding: .1em 1.2em .1em 0; vertical-align: top; }
td.name, td.type { font-family: ui-monospace, monospace; font-size: .9em; }
td.what { color: #666; } td.type { word-break: break-word; }
p { white-space: pre-wrap; margin: .5em 0; } .note { color: #666; font-weight: normal; }
</style>
</head>
<body>
<h1>Ops</h1>
)";

// A script that hides the sections whose names do not contain the typed text. (An address that ends
// in "#MatMul" opens the page at that op without this script.)
constexpr char kFilter[] = R"(<script>
const field = document.querySelector("input"), count = document.querySelector("#count");
const sections = [...document.querySelectorAll("section")];
field.addEventListener("input", () => {
  const wanted = field.value.trim().toLowerCase();
  let shown = 0;
  for (const section of sections) {
    section.hidden = !section.id.toLowerCase().includes(wanted);
    if (!section.hidden) ++shown;
  }
  count.textContent = shown + " ops";
});
</script>
</body>
</html>
)";

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

// Adds rows to the table; the first one has the heading `what`.
void AddRows(const char* what, const std::vector<OpFact>& facts, std::string* page) {
  for (const OpFact& fact : facts) {
    StrAppend(page, "<tr><td class=\"what\">", what, "</td><td class=\"name\">", Escaped(fact.name),
              "</td><td class=\"type\">", Escaped(fact.type), "</td><td>", Escaped(fact.doc),
              "</td></tr>\n");
    what = "";
  }
}

std::vector<OpFact> KernelFacts(const OpFacts& facts) {
  std::vector<OpFact> rows;
  for (const auto& [device, types] : facts.kernels) {
    rows.push_back({device, absl::StrJoin(types, " "), ""});
  }
  return rows;
}

void AddOp(const Registry& registry, const OpDef& op, std::string* page) {
  const OpFacts facts = FactsOf(registry, op);
  StrAppend(page, "<section id=\"", Escaped(op.name), "\"><h2>", Escaped(op.name),
            "<span class=\"note\">", op.stateful ? " stateful" : "",
            facts.gradient ? " has a gradient" : "", "</span></h2>\n");
  StrAppend(page, "<p>", Escaped(op.doc), "</p>\n<table>\n");
  AddRows("inputs", facts.inputs, page);
  AddRows("outputs", facts.outputs, page);
  AddRows("attributes", facts.attributes, page);
  AddRows("kernels", KernelFacts(facts), page);
  StrAppend(page, "</table></section>\n");
}

}  // namespace

std::string OpPage(const Registry& registry, const std::vector<const OpDef*>& ops) {
  std::string page = kHead;
  StrAppend(&page,
            "<p><input type=\"search\" placeholder=\"part of a name: pool\" autofocus></p>\n");
  StrAppend(&page, "<p class=\"note\" id=\"count\">", ops.size(), " ops</p>\n");
  for (const OpDef* op : ops) AddOp(registry, *op, &page);
  return StrCat(page, kFilter);
}

}  // namespace penstock
