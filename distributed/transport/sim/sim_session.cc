// SPDX-License-Identifier: Apache-2.0
//
// A client's session on a simulated network: each call takes a message there and one back.
#include <utility>

#include "distributed/transport/sim/sim_network.h"

namespace penstock {
namespace {

class SimSession final : public SessionInterface {
 public:
  SimSession(SimNetwork& network, std::string client, std::string master,
             std::unique_ptr<SessionInterface> session)
      : network_(network),
        client_(std::move(client)),
        master_(std::move(master)),
        session_(std::move(session)) {}

  Status Extend(const Graph& graph) override {
    return Call("Extend", [&] { return session_->Extend(graph); });
  }
  Status Run(const RunOptions& options, const Feeds& feeds, const std::vector<std::string>& fetches,
             const std::vector<std::string>& targets, std::vector<Tensor>* outputs,
             RunMetadata* metadata) override {
    return Call("Run",
                [&] { return session_->Run(options, feeds, fetches, targets, outputs, metadata); });
  }
  StatusOr<CallableId> MakeCallable(const CallableSpec& spec) override {
    return Call("MakeCallable", [&] { return session_->MakeCallable(spec); });
  }
  Status RunCallable(CallableId callable, const RunOptions& options, absl::Span<const Tensor> feeds,
                     std::vector<Tensor>* outputs, RunMetadata* metadata) override {
    return Call("RunCallable",
                [&] { return session_->RunCallable(callable, options, feeds, outputs, metadata); });
  }
  Status ReleaseCallable(CallableId callable) override {
    return Call("ReleaseCallable", [&] { return session_->ReleaseCallable(callable); });
  }
  StatusOr<std::string> SetUpPartialRun(const CallableSpec& spec) override {
    return Call("SetUpPartialRun", [&] { return session_->SetUpPartialRun(spec); });
  }
  Status RunPartial(const std::string& handle, const RunOptions& options, const Feeds& feeds,
                    const std::vector<std::string>& fetches,
                    std::vector<Tensor>* outputs) override {
    return Call("RunPartial",
                [&] { return session_->RunPartial(handle, options, feeds, fetches, outputs); });
  }
  StatusOr<std::vector<DeviceInfo>> ListDevices() override {
    return Call("ListDevices", [&] { return session_->ListDevices(); });
  }
  Status Close() override {
    return Call("Close", [&] { return session_->Close(); });
  }

 private:
  template <class Serve>
  auto Call(const std::string& what, Serve serve) -> decltype(serve()) {
    network_.Travel(client_, master_, what);
    auto result = serve();
    network_.Travel(master_, client_, what + (result.ok() ? " ok" : " error"));
    return result;
  }

  SimNetwork& network_;
  const std::string client_, master_;
  const std::unique_ptr<SessionInterface> session_;
};

}  // namespace

std::unique_ptr<SessionInterface> NewSimSession(SimNetwork& network, const std::string& client,
                                                const std::string& master,
                                                std::unique_ptr<SessionInterface> session) {
  return std::make_unique<SimSession>(network, client, master, std::move(session));
}

}  // namespace penstock
