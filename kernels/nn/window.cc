// SPDX-License-Identifier: Apache-2.0
#include "kernels/nn/window.h"

#include <algorithm>

#include "absl/strings/str_join.h"

namespace penstock {
namespace {

template <class T>
Status Copy(const Attrs& attrs, string_view name, T* value) {
  const auto it = attrs.find(name);
  if (it == attrs.end() || it->second.get<EmptyList>() != nullptr) return OkStatus();
  const T* found = it->second.get<T>();
  if (found == nullptr) {
    return InvalidArgument("attribute '", name, "' is of kind ", it->second.kind());
  }
  *value = *found;
  return OkStatus();
}

}  // namespace

Status CheckSpatial(const char* what, const std::vector<int64_t>& v, int rank) {
  const auto positive = [](int64_t n) { return n >= 1 && n <= (int64_t{1} << 31); };
  if (v.size() != static_cast<size_t>(rank) || !std::all_of(v.begin(), v.end(), positive)) {
    return InvalidArgument("attribute '", what, "' must be ", rank, " positive numbers, is [",
                           absl::StrJoin(v, ","), "]");
  }
  if (v.front() != 1 || v.back() != 1) {
    return Unimplemented("attribute '", what, "' is [", absl::StrJoin(v, ","),
                         "]: windows over the batch or the channels are not supported");
  }
  return OkStatus();
}

StatusOr<WindowAttrs> WindowAttrs::From(const Attrs& attrs, bool need_strides, std::string format) {
  RETURN_IF_ERROR(Copy(attrs, "data_format", &format));
  WindowAttrs w{.padding = "VALID", .rank = static_cast<int>(format.size())};
  w.dilations.assign(w.rank, 1);
  RETURN_IF_ERROR(Copy(attrs, "strides", &w.strides));
  RETURN_IF_ERROR(Copy(attrs, "dilations", &w.dilations));
  RETURN_IF_ERROR(Copy(attrs, "padding", &w.padding));
  RETURN_IF_ERROR(Copy(attrs, "explicit_paddings", &w.explicit_paddings));
  if (format != "NHWC" && format != "NDHWC") {
    return Unimplemented("data_format ", format, " is not supported on the CPU: use ",
                         w.rank == 5 ? "NDHWC" : "NHWC");
  }
  if (need_strides) RETURN_IF_ERROR(CheckSpatial("strides", w.strides, w.rank));
  RETURN_IF_ERROR(CheckSpatial("dilations", w.dilations, w.rank));
  const std::vector<int64_t>& pads = w.explicit_paddings;
  if (w.padding == "EXPLICIT") {
    const auto sane = [](int64_t n) { return n >= 0 && n <= (int64_t{1} << 31); };
    if (pads.size() != 2u * w.rank || !std::all_of(pads.begin(), pads.end(), sane) ||
        pads[0] != 0 || pads[1] != 0 || pads[pads.size() - 2] != 0 || pads.back() != 0) {
      return InvalidArgument("attribute 'explicit_paddings' must be ", 2 * w.rank,
                             " numbers >= 0 with none for ", "batch and channels, is [",
                             absl::StrJoin(pads, ","), "]");
    }
  } else if (!pads.empty()) {
    return InvalidArgument("attribute 'explicit_paddings' needs padding EXPLICIT, not ", w.padding);
  }
  return w;
}

StatusOr<Window> WindowAttrs::MakeWindow(int dim, int64_t in, int64_t size) const {
  Window w{.in = in, .size = size, .stride = strides[dim], .dilation = dilations[dim]};
  if (size < 1) return InvalidArgument("a window has size ", size, ", must be at least 1");
  if (in > (int64_t{1} << 31) || size > (int64_t{1} << 31)) {
    return InvalidArgument("an image of size ", in, " with a window of ", size, " is too large");
  }
  const int64_t reach = (size - 1) * w.dilation + 1;  // elements from the first tap to the last
  if (padding == "SAME") {
    w.out = (in + w.stride - 1) / w.stride;
    const int64_t needed = std::max<int64_t>((w.out - 1) * w.stride + reach - in, 0);
    w.pad_before = needed / 2;
    w.pad_after = needed - w.pad_before;
    return w;
  }
  if (padding == "EXPLICIT") {
    w.pad_before = explicit_paddings[2 * dim];
    w.pad_after = explicit_paddings[2 * dim + 1];
  }
  const int64_t room = in + w.pad_before + w.pad_after - reach;
  if (room < 0) {
    return InvalidArgument("Computed output size would be negative: a window of ", reach,
                           " does not fit into ", in, " elements with ", w.pad_before, "+",
                           w.pad_after, " of padding (dimension ", dim, ")");
  }
  w.out = room / w.stride + 1;
  return w;
}

StatusOr<int64_t> WindowOutput(const WindowAttrs& attrs, int dim, int64_t in, int64_t size) {
  if (in < 0 || (size < 0 && attrs.padding != "SAME")) return PartialShape::kUnknown;
  ASSIGN_OR_RETURN(const Window window, attrs.MakeWindow(dim, in, std::max<int64_t>(size, 1)));
  return window.out;
}

}  // namespace penstock
