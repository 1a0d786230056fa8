// SPDX-License-Identifier: Apache-2.0
//
// Snapshot: the values of many variables at one moment, kept from the step that takes them to the
// step that writes them.
//
// A value that is shared makes the next update of its variable copy it whole: for a large table, of
// which an update changes a few rows, a long pause. So large variables are copied ahead, piece by
// piece, while updates go on; at the moment of the snapshot only what has changed meanwhile is
// copied again (ChangeWatch). A variable that an update changes as a whole is shared: its update
// reads and writes all of it anyway.
//
// Each call names the save that it is for: those of one save come in order; a later save takes the
// place of one that was given up. Thread-safe. Never waits.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/mutex.h"
#include "core/op/change_watch.h"
#include "core/op/resource.h"
#include "core/op/variable.h"

namespace penstock {

class Snapshot final : public Resource {
 public:
  using Variables = std::vector<std::shared_ptr<Variable>>;
  // Not OK: the copying ends with this.
  using Check = absl::FunctionRef<Status()>;

  const char* TypeName() const override { return "Snapshot"; }
  std::string DebugString() const override { return "Snapshot of variables"; }
  // An empty one is as good in another store: the save is begun again there.
  const char* OpaqueReason() const override { return nullptr; }

  // Copies the variables' values while updates go on; called again for the same save, what has
  // changed since. Asks `check` before each piece.
  Status CopyAhead(const std::string& save, const Variables& variables, Check check);
  // Returns the values of `variables` as they are now: copies of those that were copied ahead.
  StatusOr<std::vector<Tensor>> Cut(const std::string& save, const Variables& variables);
  // Keeps what was cut.
  void Keep(const std::string& save, std::vector<Tensor> values);
  // Hands over what was kept. FailedPrecondition if nothing was for this save, or another save has
  // come after it.
  StatusOr<std::vector<Tensor>> Take(const std::string& save);

 private:
  // A variable and its copy.
  struct Part {
    std::shared_ptr<Variable> variable;
    Tensor copy;
    std::unique_ptr<ChangeWatch> watch;
  };
  static StatusOr<std::vector<Part>> CopyWhole(const Variables& variables, Check check);
  static StatusOr<std::optional<Part>> Begin(std::shared_ptr<Variable> variable);
  static Status Copy(Part& part, Check check);
  static Status CopyChanges(Part& part, Check check);
  static void BringUpToDate(Part& part, const Tensor& value);

  Mutex mu_;
  std::string save_ ABSL_GUARDED_BY(mu_);
  std::vector<Part> parts_ ABSL_GUARDED_BY(mu_);  // copied ahead
  std::optional<std::vector<Tensor>> kept_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock
