// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes datasets that a client's graph describes. The input is a FunctionDefLibrary; its function
// "main" has no arguments and returns a dataset. Reads elements, saves the iterator, and continues
// from the state. Graphs that read or write files are left out. A graph may ask for elements that
// are never found: then the cancellation must end the call.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/callable/callable.h"
#include "core/op/registry.h"
#include "kernels/dataset/dataset.h"
#include "proto/tensorflow/graph.pb.h"
#include "tests/fuzz/fuzz_target.h"

namespace penstock {
namespace {

constexpr int kElementsRead = 16;
constexpr int64_t kReadNanos = 100'000'000;
constexpr int kNodesMax = 1000;

bool MayRun(const tensorflow::FunctionDefLibrary& library) {
  int nodes = 0;
  for (const tensorflow::FunctionDef& function : library.function()) {
    nodes += function.node_def_size();
    for (const tensorflow::NodeDef& node : function.node_def()) {
      const StatusOr<const OpDef*> op = Registry::Global().GetOp(node.op());
      if (op.ok() && (*op)->acts_outside) return false;
    }
  }
  return nodes <= kNodesMax;
}

// Cancels the work on a dataset after kReadNanos.
class Watch {
 public:
  Watch() : done_(Scheduler::Real(), "the end of the work on a dataset") {
    thread_ = Scheduler::Real().StartThread("watch", [this] {
      MutexLock lock(mu_);
      const auto ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return ended_; };
      if (done_.WaitUntil(mu_, Env::Real().NowNanos() + kReadNanos, ended)) return;
      lock.Unlock();
      cancellation.Cancel(DeadlineExceeded("the time for the dataset is over"));
    });
  }
  ~Watch() {
    {
      MutexLock lock(mu_);
      ended_ = true;
    }
    done_.NotifyAll();
    thread_ = nullptr;
  }
  Cancellation cancellation;

 private:
  Mutex mu_;
  Condition done_;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  std::unique_ptr<Thread> thread_;
};

void ReadElements(const IteratorContext& ctx, DatasetIterator& iterator) {
  for (int i = 0; i < kElementsRead && !ctx.cancellation->cancelled(); ++i) {
    Element element;
    bool end = false;
    if (iterator.GetNext(ctx, &element, &end).ok() && end) return;
    for (const Tensor& component : element) (void)component.ToString(10);
  }
}

Status Iterate(const Dataset& dataset, ResourceStore& resources, Cancellation& cancellation) {
  const IteratorContext ctx{.threads = &Scheduler::Real(),
                            .env = &Env::Real(),
                            .resources = &resources,
                            .cancellation = &cancellation};
  (void)dataset.Cardinality();
  StateWriter writer;
  {
    ASSIGN_OR_RETURN(const IteratorPtr iterator, dataset.NewIterator(ctx));
    ReadElements(ctx, *iterator);
    RETURN_IF_ERROR(iterator->Save(ctx, &writer));
  }
  ASSIGN_OR_RETURN(const IteratorPtr restored, dataset.NewIterator(ctx));
  StateReader reader(writer.Take());
  RETURN_IF_ERROR(restored->Restore(ctx, &reader));
  ReadElements(ctx, *restored);
  return OkStatus();
}

Status Run(const std::string& library) {
  const FunctionName main{.name = "main", .attrs = std::make_shared<Attrs>()};
  ASSIGN_OR_RETURN(const auto callable,
                   Callable::Make({.library = library,
                                   .function = main,
                                   .device = "/job:localhost/replica:0/task:0/device:CPU:0",
                                   .threads = &Scheduler::Real(),
                                   .env = &Env::Real()}));
  if (callable->waits()) return OkStatus();
  ASSIGN_OR_RETURN(const auto call, callable->NewCall());
  ResourceStore resources;
  Watch watch;
  std::vector<Tensor> results;
  RETURN_IF_ERROR(
      call->Run({.resources = &resources, .cancellation = &watch.cancellation}, {}, &results));
  if (results.empty()) return OkStatus();
  ASSIGN_OR_RETURN(const DatasetPtr dataset, DatasetOf(results[0]));
  return Iterate(*dataset, resources, watch.cancellation);
}

void Fuzz(const uint8_t* data, size_t size) {
  tensorflow::FunctionDefLibrary library;
  if (!library.ParseFromArray(data, static_cast<int>(size)) || !MayRun(library)) return;
  (void)Run(library.SerializeAsString());
}

}  // namespace
}  // namespace penstock

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  penstock::Fuzz(data, size);
  return 0;
}
