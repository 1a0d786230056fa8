// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/timeline_label.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace penstock {
namespace {

std::string TransferLabel(const NodeStats& stats) {
  const NodeStats::Transfer& transfer = *stats.transfer;
  const int64_t bytes = stats.outputs.empty() ? 0 : stats.outputs[0].bytes;
  return StrCat("[", bytes, "B] ", transfer.edge, " from ", transfer.from, " to ", transfer.to);
}

void ParseTransfer(string_view label, NodeStats* stats) {
  const size_t bracket = label.find("] "), from = label.find(" from ");
  if (bracket == string_view::npos || from == string_view::npos || from < bracket + 2) return;
  const size_t to = label.find(" to ", from + 6);
  if (to == string_view::npos) return;
  stats->transfer = {.edge = std::string(label.substr(bracket + 2, from - bracket - 2)),
                     .from = std::string(label.substr(from + 6, to - from - 6)),
                     .to = std::string(label.substr(to + 4))};
}

NodeStats::Input ParseInput(string_view text) {
  if (absl::ConsumePrefix(&text, "^")) {
    return {.node = std::string(text), .output = NodeStats::Input::kControl};
  }
  NodeStats::Input input;
  const size_t colon = text.find(':');
  if (colon != string_view::npos && absl::SimpleAtoi(text.substr(colon + 1), &input.output)) {
    text = text.substr(0, colon);
  }
  input.node = std::string(text);
  return input;
}

}  // namespace

std::string TimelineLabel(const NodeStats& stats) {
  if (stats.op.empty()) return stats.transfer.has_value() ? TransferLabel(stats) : stats.node;
  std::string label = StrCat(stats.node, " = ", stats.op, "(");
  string_view separator = "";
  const auto add = [&](const auto&... parts) {
    StrAppend(&label, separator, parts...);
    separator = ", ";
  };
  for (const NodeStats::Input& input : stats.inputs) {
    if (input.output > 0) add(input.node, ":", input.output);
    if (input.output == 0) add(input.node);
  }
  if (stats.transfer.has_value()) add(stats.transfer->edge, " @", stats.transfer->to);
  for (const NodeStats::Input& input : stats.inputs) {
    if (input.output == NodeStats::Input::kControl) add("^", input.node);
  }
  return label + ")";
}

void ParseTimelineLabel(string_view label, NodeStats* stats) {
  if (stats->node == kTransferStats) return ParseTransfer(label, stats);
  const size_t equals = label.find(" = ");
  const size_t open = label.find('(', equals == string_view::npos ? 0 : equals);
  if (equals == string_view::npos || open == string_view::npos) return;
  stats->op = std::string(label.substr(equals + 3, open - equals - 3));
  const string_view arguments = absl::StripSuffix(label.substr(open + 1), ")");
  for (const string_view argument : absl::StrSplit(arguments, ", ", absl::SkipEmpty())) {
    const size_t at = argument.find(" @");
    if (at == string_view::npos) {
      stats->inputs.push_back(ParseInput(argument));
    } else {
      stats->transfer = {.edge = std::string(argument.substr(0, at)),
                         .from = "",
                         .to = std::string(argument.substr(at + 2))};
    }
  }
}

}  // namespace penstock
