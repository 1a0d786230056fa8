// SPDX-License-Identifier: Apache-2.0
//
// Describes the elements of a wait-for graph in words.
#pragma once

#include <string>

#include "distributed/insight/wait_graph.h"

namespace penstock {

// Returns "FIFOQueue 'input' on /job:ps/task:0 (10 of 10 elements)".
std::string ResourceText(const WaitGraph& graph, const wire::ResourceName& name);
// Returns "'dequeue' (QueueDequeueV2) waits, for 12 s, for an element of FIFOQueue
// 'input' ...".
std::string WaitText(const WaitGraph& graph, const WaitGraph::Wait& wait);
// Returns which node would end a wait, and what holds that node up: "'enqueue' of step 7
// in /job:worker/task:0 would fill it, but comes after 'dequeue_1'".
std::string WayText(const WaitGraph& graph, const WaitGraph::Wait& wait, const WaitGraph::Way& way);
// Returns a description of what a step does in one task.
std::string PartText(const WaitGraph& graph, const std::string& task, const wire::PartReport& part);

}  // namespace penstock
