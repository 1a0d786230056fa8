// SPDX-License-Identifier: Apache-2.0
//
// FaultPoint: a named place in the code at which a simulation may make the code misbehave.
//
//   const FaultPoint kNoSync(FaultPoint::kBug, "checkpoint/no-sync", "data are not synced");
//   ...
//   if (!kNoSync.Fires()) status = file->Sync();
//
// A mishap (kMishap) is a fault that the code has to survive, such as a lost answer or a batch that
// is cut short. A bug (kBug) makes the code violate its contract, and the simulator's checks have
// to detect that. A Chooser decides which points fire; only the simulator sets one. Without a
// Chooser no point fires, and Fires() costs a load and a branch. Code that runs for every op has no
// fault points.
//
// Points have static storage duration. Thread-safe except for SetChooser.
#pragma once

#include <atomic>
#include <vector>

namespace penstock {

class FaultPoint {
 public:
  enum Kind { kMishap, kBug };
  class Chooser {
   public:
    virtual ~Chooser() = default;
    virtual bool Choose(const FaultPoint& point) = 0;
  };

  // `what` describes for people what happens if the point fires.
  FaultPoint(Kind kind, const char* name, const char* what)
      : kind_(kind), name_(name), what_(what), next_(last_) {
    last_ = this;
  }
  FaultPoint(const FaultPoint&) = delete;

  bool Fires() const {
    Chooser* const chooser = chooser_.load(std::memory_order_relaxed);
    return chooser != nullptr && chooser->Choose(*this);
  }

  Kind kind() const { return kind_; }
  const char* name() const { return name_; }
  const char* what() const { return what_; }

  // Returns all fault points that are linked into this program.
  static std::vector<const FaultPoint*> All() {
    std::vector<const FaultPoint*> all;
    for (const FaultPoint* point = last_; point != nullptr; point = point->next_) {
      all.push_back(point);
    }
    return all;
  }
  // `chooser` is borrowed; null: no point fires. Only for simulators, while no other thread runs.
  static void SetChooser(Chooser* chooser) { chooser_.store(chooser); }

 private:
  static inline std::atomic<Chooser*> chooser_{nullptr};
  static inline const FaultPoint* last_ = nullptr;

  const Kind kind_;
  const char* const name_;
  const char* const what_;
  const FaultPoint* const next_;
};

}  // namespace penstock
