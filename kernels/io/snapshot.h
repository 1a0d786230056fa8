// SPDX-License-Identifier: Apache-2.0
//
// Snapshot: the values of many variables at one point in time, kept from the step that reads them
// to the step that writes them to files.
//
// If a snapshot shares a variable's buffer, the next update copies the whole buffer. If the
// variable is a large table, and an update changes only a few rows, this copy delays the update for
// a long time. So CopyAhead copies large variables piece by piece while updates go on, and Cut
// copies only the rows that have changed since (ChangeWatch). Variables whose updates change all
// elements are shared, because such an update computes its new value into a new buffer instead of
// copying the old one (Variable::UpdateAll).
//
// Each call names its save. A saver makes the calls of one save in order; a new save replaces an
// unfinished one. Thread-safe. Never waits.
//
// Actions in a StateLog, all without values: "copy", "cut", "keep", "take".
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
  // Called before each piece is copied. If it returns an error, copying ends with that error.
  using Check = absl::FunctionRef<Status()>;

  const char* TypeName() const override { return "Snapshot"; }
  std::string DebugString() const override { return "Snapshot of variables"; }
  const char* OpaqueReason() const override { return "it lives within one save"; }

  // Copies the variables' values while updates go on. A second call for the same save copies the
  // rows that have changed since the first. Calls `check` before each piece. FailedPrecondition if
  // a variable is not initialized.
  Status CopyAhead(const std::string& save, const Variables& variables, Check check,
                   const UpdateOrigin& origin);
  // Returns the current values of `variables`: the copies of those that were copied ahead, and the
  // shared buffers of the others. FailedPrecondition if a variable is not initialized.
  StatusOr<std::vector<Tensor>> Cut(const std::string& save, const Variables& variables,
                                    const UpdateOrigin& origin);
  // Stores the values until Take is called.
  void Keep(const std::string& save, std::vector<Tensor> values, const UpdateOrigin& origin);
  // Returns the values that Keep stored. FailedPrecondition if Keep was not called for this save,
  // or another save has started since.
  StatusOr<std::vector<Tensor>> Take(const std::string& save, const UpdateOrigin& origin);

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
  std::vector<Part> parts_ ABSL_GUARDED_BY(mu_);  // variables that were copied ahead
  std::optional<std::vector<Tensor>> kept_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock
