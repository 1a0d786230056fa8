// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/logged_store.h"

#include <utility>

#include "core/base/check.h"
#include "core/op/variable.h"

namespace penstock {
namespace {

// Removes the shapes of a queue's elements from a ref handle. OpRunner passes the elements of a
// handle to shape functions as its handle data. A ref handle is a tensor of two strings, which the
// functions would mistake for the queue's elements.
Tensor WithoutElementShape(const Tensor& input) {
  if (input.dtype() != DType::kResource) return input;
  ResourceHandle handle = input.scalar<ResourceHandle>();
  for (auto& element : handle.elements) element.shape = PartialShape();
  return Tensor::Scalar(handle);
}

std::vector<Tensor> RunOn(const std::shared_ptr<ResourceStore>& store, const std::string& op,
                          const OpCall& call) {
  OpRunner run(op, store);
  if (call.in_step) run.StepResources(store);
  for (const Tensor& input : call.inputs) run.In(WithoutElementShape(input));
  if (!call.list.empty()) run.InList(call.list);
  for (const auto& [name, value] : call.attrs) run.Attr(name, value);
  auto outputs = run.Run();
  CHECK(outputs.ok(), op, ": ", outputs.status().ToString());
  return *std::move(outputs);
}

}  // namespace

LoggedStore::LoggedStore() { CHECK_OK(store_->AttachLog(log_.get())); }

std::vector<Tensor> LoggedStore::Run(const std::string& op, const OpCall& call) const {
  return RunOn(store_, op, call);
}

std::vector<Tensor> LoggedStore::Watch(const std::string& op, const OpCall& call) {
  const std::string before = TextOf(*store_);
  const Versions versions = VersionsOf(call);
  const size_t records = log_->entries().size();
  std::vector<Tensor> outputs = Run(op, call);
  CheckRecords(op, records, before);
  CheckVersions(op, records, versions);
  return outputs;
}

std::vector<Tensor> LoggedStore::WatchChange(const std::string& op, const OpCall& call) {
  const Versions before = VersionsOf(call);
  std::vector<Tensor> outputs = Watch(op, call);
  for (const auto& [resource, version] : before) {
    if (resource->version() > version) return outputs;
  }
  faults_.push_back(StrCat(op, " changes a resource, but no version rises"));
  return outputs;
}

LoggedStore::Versions LoggedStore::VersionsOf(const OpCall& call) const {
  Versions versions;
  for (const auto& [container, name] : store_->List()) {
    const std::shared_ptr<Resource> resource = *store_->Lookup(container, name);
    versions[resource] = resource->version();
  }
  for (const Tensor& input : call.inputs) {
    if (input.dtype() != DType::kResource || input.num_elements() != 1) continue;
    const auto& resource = input.scalar<ResourceHandle>().resource;
    if (resource != nullptr) versions[resource] = resource->version();
  }
  return versions;
}

void LoggedStore::CheckVersions(const std::string& op, size_t records, const Versions& before) {
  std::map<std::string, int64_t> recorded;
  const auto entries = log_->entries();
  for (size_t i = records; i < entries.size(); ++i) {
    for (const auto& part : entries[i].parts) {
      if (part.action == kRemoveAction) continue;
      int64_t& changes = recorded[StrCat(part.container, "/", part.name)];
      changes += part.action == kCreateAction ? part.version : 1;
    }
  }
  for (const auto& [container, name] : store_->List()) {
    const std::shared_ptr<Resource> resource = *store_->Lookup(container, name);
    const auto found = before.find(resource);
    const int64_t first = found == before.end() ? 0 : found->second;
    const int64_t versions = resource->version() - first;
    const int64_t seen = recorded[StrCat(container, "/", name)];
    if (versions == seen) continue;
    faults_.push_back(StrCat(op, " raises the version of '", name, "' by ", versions,
                             ", the log sees ", seen, " changes"));
  }
}

void LoggedStore::CheckRecords(const std::string& op, size_t records, const std::string& before) {
  watched_.insert(op);
  const auto entries = log_->entries();
  const std::string after = TextOf(*store_);
  if (after != before && entries.size() == records) {
    faults_.push_back(StrCat(op, " changes what the log does not see:\n", before, "\n", after));
  }
  for (size_t i = records; i < entries.size(); ++i) {
    const RecordingLog::Entry& entry = entries[i];
    if (entry.node == op && entry.step_id == 1 && !entry.device.empty()) continue;
    // any op may drop the last copy of a lock, which makes this record
    if (entry.parts[0].action == "unlock") continue;
    faults_.push_back(StrCat(op, " makes a record of no origin: ", RecordingLog::Text(entry)));
  }
}

int64_t VersionOf(const Tensor& handle) {
  return handle.scalar<ResourceHandle>().resource->version();
}

std::string TextOf(const ResourceStore& store) {
  std::string text;
  for (const auto& [container, name] : store.List()) {
    const std::shared_ptr<Resource> resource = *store.Lookup(container, name);
    StrAppend(&text, container, "/", name, ": ", resource->DebugString());
    const auto* variable = dynamic_cast<const Variable*>(resource.get());
    if (variable != nullptr && variable->initialized()) {
      const Tensor value = *variable->Read();
      // Adds all bits, because the last bits may differ although the decimal texts are equal.
      StrAppend(&text, " ",
                IsPlain(value.dtype())
                    ? std::string(static_cast<const char*>(value.raw_data()), value.bytes())
                    : value.ToString(1000));
    }
    StrAppend(&text, "\n");
  }
  return text;
}

Tensor HandleOf(const std::string& name, const std::string& type, bool ref) {
  ResourceHandle handle{.container = kDefaultContainer, .name = name, .type = type};
  if (ref) handle.elements = {{DType::kString, PartialShape({2})}};
  return Tensor::Scalar(handle);
}

}  // namespace penstock
