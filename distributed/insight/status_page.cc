// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/status_page.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "distributed/insight/explain.h"
#include "distributed/insight/status_tables.h"
#include "distributed/insight/words.h"

namespace penstock {
namespace {

using absl::StrAppend;
using absl::StrCat;

// Cells with more characters may be broken into lines.
constexpr size_t kLongCell = 28;

constexpr char kHead[] = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="refresh" content="5">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Penstock</title>
<style>
:root { color-scheme: light dark; --text: #222; --quiet: #666; --line: #ddd; --page: #fff;
        --bad: #b00; --good: #070; --link: #04c; }
@media (prefers-color-scheme: dark) {
  :root { --text: #ddd; --quiet: #999; --line: #3a3a3a; --page: #161616;
          --bad: #ff8a80; --good: #7bd88f; --link: #8ab4f8; }
}
body { font: 15px/1.4 system-ui, sans-serif; margin: 2em; color: var(--text);
       background: var(--page); }
h1 { font-size: 1.4em; overflow-wrap: anywhere; } h2 { font-size: 1.1em; margin-top: 1.6em; }
a { color: var(--link); }
table { border-collapse: collapse; }
th, td { padding: .2em .9em .2em 0; text-align: left; vertical-align: top;
         border-bottom: 1px solid var(--line); }
th { color: var(--quiet); font-weight: normal; white-space: nowrap; }
td { font-family: ui-monospace, monospace; font-size: .92em; white-space: nowrap; }
td.long { white-space: normal; overflow-wrap: break-word; max-width: 32em; min-width: 16em; }
th:first-child, td:first-child { position: sticky; left: 0; background: var(--page); }
tr.lost td { color: var(--bad); }
li, pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.well { color: var(--good); } .stuck { color: var(--bad); }
div.wide { overflow-x: auto; }
@media (max-width: 40em) {
  body { margin: 1em; }
  ol { padding-left: 1.4em; }
  td.long { max-width: 14em; min-width: 8em; }
}
</style>
</head>
<body>
)";

// Escapes names, which may contain any characters, so that browsers show them as text.
std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

void AddRow(const std::vector<std::string>& cells, const char* tag, std::string* page) {
  const bool lost = cells.size() > 2 && absl::StartsWith(cells[2], "does not answer");
  StrAppend(page, lost ? "<tr class=\"lost\">" : "<tr>");
  for (const std::string& cell : cells) {
    const char* const class_attribute = cell.size() > kLongCell ? " class=\"long\"" : "";
    StrAppend(page, "<", tag, class_attribute, ">", Escaped(cell), "</", tag, ">");
  }
  StrAppend(page, "</tr>\n");
}

void AddFindings(const wire::ClusterReport& cluster, std::string* page) {
  const Explanation explanation = Explain(cluster);
  StrAppend(page, "<h2>Why is it stuck?</h2>\n");
  if (explanation.findings.empty()) {
    StrAppend(page, "<p class=\"well\">Nothing is stuck.</p>\n");
    return;
  }
  StrAppend(page, "<ol class=\"stuck\">\n");
  for (const std::string& finding : explanation.findings) {
    StrAppend(page, "<li>", Escaped(finding), "</li>\n");
  }
  StrAppend(page, "</ol>\n");
}

}  // namespace

std::string StatusPage(const wire::ClusterReport& cluster) {
  std::string page = kHead;
  StrAppend(&page, "<h1>Penstock: ", Escaped(ShortTask(cluster.asked())), "</h1>\n<p>",
            Escaped(StatusLine(cluster)), "</p>\n");
  AddFindings(cluster, &page);
  for (const StatusTable& table : StatusTables(cluster)) {
    StrAppend(&page, "<h2>", Escaped(table.title), "</h2>\n<div class=\"wide\"><table>\n");
    AddRow(table.header, "th", &page);
    for (const auto& row : table.rows) AddRow(row, "td", &page);
    StrAppend(&page, "</table></div>\n");
  }
  StrAppend(&page,
            "<p><a href=\"metrics\">/metrics</a> of this task, for Prometheus; "
            "<a href=\"status.json\">/status.json</a> of the cluster</p>\n</body>\n</html>\n");
  return page;
}

}  // namespace penstock
