// SPDX-License-Identifier: Apache-2.0
#include "tools/penstock/timeline.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "core/base/status.h"

namespace penstock {
namespace {

constexpr double kLeft = 330, kWidth = 1200, kRow = 22, kTop = 40;
constexpr int kTransfers = -1;  // stands for the lane of incoming transfers

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

// Returns a hue that is the same for names that are equal up to their last "_" or "/".
int HueOf(const std::string& node) {
  int hue = 0;
  for (const char c : node.substr(0, node.find_last_of("_/"))) hue = (hue * 31 + c) % 360;
  return hue;
}

class Drawing {
 public:
  explicit Drawing(const PlacementReport& report)
      : report_(report), scale_(kWidth / std::max(report.step_ns, 1.0)) {
    for (const PlacementReport::Run& run : report.runs) rows_[{run.device, run.lane}] = 0;
    for (const PlacementReport::Transfer& t : report.transfers) rows_[{t.to, kTransfers}] = 0;
    double y = kTop;
    for (auto& [row, top] : rows_) {
      top = y;
      y += kRow;
    }
    height_ = y + 10;
  }

  std::string Svg() {
    absl::StrAppendFormat(&svg_,
                          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
                          "height=\"%.0f\" font-family=\"sans-serif\" font-size=\"11\">\n"
                          "<text x=\"8\" y=\"18\" font-size=\"14\">predicted step: %.1f us, at "
                          "least %.1f us wherever nodes run</text>\n",
                          kLeft + kWidth + 20, height_, report_.step_ns / 1e3,
                          report_.least_ns / 1e3);
    for (const auto& [row, top] : rows_) DrawRow(row.first, row.second, top);
    for (const PlacementReport::Run& run : report_.runs) {
      Box(rows_[{run.device, run.lane}], run.start_ns, run.end_ns,
          absl::StrFormat("hsl(%d,60%%,70%%)", HueOf(run.node)), run.node, "");
    }
    for (const PlacementReport::Transfer& sent : report_.transfers) {
      Box(rows_[{sent.to, kTransfers}], sent.start_ns, sent.end_ns, "#999", sent.node,
          absl::StrFormat(", %.0f bytes from %s", sent.bytes, report_.devices[sent.from]));
    }
    svg_ += "</svg>\n";
    return std::move(svg_);
  }

 private:
  void DrawRow(int device, int lane, double top) {
    const std::string what = lane == kTransfers ? " receives" : StrCat(" #", lane);
    absl::StrAppendFormat(&svg_,
                          "<text x=\"8\" y=\"%.1f\">%s%s</text><line x1=\"%.1f\" x2=\"%.1f\" "
                          "y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n",
                          top + 15, Escaped(report_.devices[device]), what, kLeft, kLeft + kWidth,
                          top + kRow - 1, top + kRow - 1);
  }

  void Box(double top, double start_ns, double end_ns, const std::string& fill,
           const std::string& name, const std::string& more) {
    const double x = kLeft + start_ns * scale_;
    const double width = std::max((end_ns - start_ns) * scale_, 0.5);
    absl::StrAppendFormat(&svg_,
                          "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" "
                          "fill=\"%s\"><title>%s: %.2f to %.2f us%s</title></rect>\n",
                          x, top + 2, width, kRow - 5, fill, Escaped(name), start_ns / 1e3,
                          end_ns / 1e3, Escaped(more));
    if (width < 7.0 * static_cast<double>(name.size())) return;
    absl::StrAppendFormat(&svg_, "<text x=\"%.2f\" y=\"%.1f\" pointer-events=\"none\">%s</text>\n",
                          x + 3, top + 14, Escaped(name));
  }

  const PlacementReport& report_;
  const double scale_;
  std::map<std::pair<int, int>, double> rows_;  // y position of each (device, lane)
  double height_ = 0;
  std::string svg_;
};

}  // namespace

std::string TimelineSvg(const PlacementReport& report) { return Drawing(report).Svg(); }

}  // namespace penstock
