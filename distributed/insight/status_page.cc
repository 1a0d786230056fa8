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

constexpr char kHead[] = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="refresh" content="5">
<meta name="viewport" content="width=device-width">
<title>Penstock</title>
<style>
body { font: 15px/1.4 system-ui, sans-serif; margin: 2em; color: #222; background: #fff; }
h1 { font-size: 1.4em; } h2 { font-size: 1.1em; margin-top: 1.6em; }
table { border-collapse: collapse; }
th, td { padding: .2em .9em .2em 0; text-align: left; border-bottom: 1px solid #ddd; }
th { color: #666; font-weight: normal; }
td { font-family: ui-monospace, monospace; font-size: .92em; white-space: nowrap; }
tr.lost td { color: #b00; }
li, pre { white-space: pre-wrap; }
.well { color: #070; } .stuck { color: #b00; }
div.wide { overflow-x: auto; }
</style>
</head>
<body>
)";

// Names come from programs: they are text, never markup.
std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

void AddRow(const std::vector<std::string>& cells, const char* tag, std::string* page) {
  const bool lost = cells.size() > 2 && absl::StartsWith(cells[2], "does not answer");
  StrAppend(page, lost ? "<tr class=\"lost\">" : "<tr>");
  for (const std::string& cell : cells) {
    StrAppend(page, "<", tag, ">", Escaped(cell), "</", tag, ">");
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
