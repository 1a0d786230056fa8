// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/wait_text.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "distributed/insight/words.h"

namespace penstock {
namespace {

using absl::StrAppend;
using absl::StrCat;

constexpr size_t kWaitsShownMax = 10;

std::string DeviceText(const std::string& device) { return ShortTask(device); }

}  // namespace

std::string ResourceText(const WaitGraph& graph, const wire::ResourceName& name) {
  const wire::ResourceReport* const resource = graph.FindResource(name);
  const std::string task = ShortTask(TaskOfDevice(name.device()));
  if (resource == nullptr) return StrCat("'", name.name(), "' on ", task);
  if (!resource->has_queue()) return StrCat(resource->text(), ", on ", task);
  const wire::QueueReport& queue = resource->queue();
  std::string text = StrCat(resource->type(), " '", name.name(), "' on ", task, " (", queue.size());
  if (queue.capacity() >= 0) StrAppend(&text, " of ", queue.capacity());
  StrAppend(&text, " elements", queue.closed() ? ", closed" : "", ")");
  return text;
}

std::string WaitText(const WaitGraph& graph, const WaitGraph::Wait& wait) {
  const wire::WaitReport& w = *wait.wait;
  std::string text = StrCat("'", w.node(), "' (", w.op(), ")");
  if (w.iteration() > 0) StrAppend(&text, ", in iteration ", w.iteration(), " of its loop,");
  StrAppend(&text, " waits", ForText(w.age_ms()));
  if (!w.from_device().empty()) {
    const std::string task = TaskOfDevice(w.from_device());
    StrAppend(&text, ", for the tensor '", w.tensor(), "' from ",
              DeviceText(task == wait.task ? w.from_device() : task));
    if (wait.missing == WaitGraph::Missing::kTaskSilent)
      StrAppend(&text, ", which does not answer");
    if (wait.missing == WaitGraph::Missing::kNotRunning) {
      StrAppend(&text, ", which does not run this step");
    }
    return text;
  }
  if (!w.tensor().empty()) return StrCat(text, ", for the client to feed '", w.tensor(), "'");
  if (!w.has_resource()) return text;
  const char* const what = w.kind() == wire::UseReport::TAKE  ? ", for an element of "
                           : w.kind() == wire::UseReport::PUT ? ", for room in "
                                                              : ", for ";
  return StrCat(text, what, ResourceText(graph, w.resource()),
                wait.is_unservable() ? ", which nobody ends" : "");
}

std::string WayText(const WaitGraph& graph, const WaitGraph::Wait& wait,
                    const WaitGraph::Way& way) {
  std::string text;
  if (way.use == nullptr) {
    text = StrCat("that tensor is sent by ", StepText(way.step_id), " in ", ShortTask(way.task));
  } else {
    const char* const effect = way.use->kind() == wire::UseReport::PUT    ? " would fill it"
                               : way.use->kind() == wire::UseReport::TAKE ? " would make room"
                                                                          : " has locked it";
    text = StrCat("'", way.use->node(), "' of ", StepText(way.step_id), " in ", ShortTask(way.task),
                  effect);
  }
  if (way.open) return text;
  std::vector<std::string> behind;
  for (const size_t i : way.behind) {
    behind.push_back(StrCat("'", graph.waits()[i].wait->node(), "'"));
  }
  if (behind.empty()) return text;
  return StrCat(text, ", but ", way.use == nullptr ? "perhaps " : "", "comes after ",
                absl::StrJoin(behind, ", "));
}

std::string PartText(const WaitGraph& graph, const std::string& task,
                     const wire::PartReport& part) {
  std::vector<std::string> lines;
  for (const WaitGraph::Wait& wait : graph.waits()) {
    if (wait.part != &part) continue;
    if (lines.size() == kWaitsShownMax) {
      lines.push_back(StrCat(part.wait_size() - static_cast<int>(kWaitsShownMax), " more wait"));
      break;
    }
    lines.push_back(WaitText(graph, wait));
    for (const WaitGraph::Way& way : wait.ways) {
      if (way.use != nullptr) StrAppend(&lines.back(), "; ", WayText(graph, wait, way));
    }
  }
  if (part.computing()) {
    std::string text = lines.empty() ? "computes" : "computes besides";
    for (const wire::LoopReport& loop : part.loop()) {
      StrAppend(&text, ", iteration ", loop.iteration(), " of loop '", loop.name(), "'");
    }
    lines.push_back(std::move(text));
  }
  for (const std::string& consumer : part.unasked_by()) {
    lines.push_back(StrCat("tensors wait for ", ShortTask(consumer), " to ask for them"));
  }
  if (lines.empty()) return "has run; what it sent is on its way";
  return absl::StrJoin(lines, "\n    ");
}

}  // namespace penstock
