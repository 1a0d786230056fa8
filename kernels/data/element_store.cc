// SPDX-License-Identifier: Apache-2.0
#include "kernels/data/element_store.h"

#include <deque>
#include <iterator>
#include <map>
#include <utility>

namespace penstock {
namespace {

class FifoStore final : public ElementStore {
 public:
  int64_t size() const override { return static_cast<int64_t>(elements_.size()); }
  void Put(Element element) override { elements_.push_back(std::move(element)); }
  Element Take() override {
    Element first = std::move(elements_.front());
    elements_.pop_front();
    return first;
  }
  void PutBack(std::vector<Element> elements) override {
    elements_.insert(elements_.begin(), std::make_move_iterator(elements.begin()),
                     std::make_move_iterator(elements.end()));
  }

 private:
  std::deque<Element> elements_;
};

// A store that draws at random. Its order is TensorFlow's for the same seeds and calls.
class RandomStore final : public ElementStore {
 public:
  explicit RandomStore(PhiloxNumbers numbers) : numbers_(numbers) {}
  int64_t size() const override { return static_cast<int64_t>(elements_.size()); }
  void Put(Element element) override { elements_.push_back(std::move(element)); }
  Element Take() override {
    std::swap(elements_[numbers_() % elements_.size()], elements_.back());
    Element taken = std::move(elements_.back());
    elements_.pop_back();
    return taken;
  }
  void PutBack(std::vector<Element> elements) override {
    for (Element& element : elements) Put(std::move(element));
  }

 private:
  PhiloxNumbers numbers_;
  std::vector<Element> elements_;
};

class PriorityStore final : public ElementStore {
 public:
  int64_t size() const override { return static_cast<int64_t>(elements_.size()); }
  void Put(Element element) override { Insert(last_++, std::move(element)); }
  Element Take() override {
    Element first = std::move(elements_.begin()->second);
    elements_.erase(elements_.begin());
    return first;
  }
  void PutBack(std::vector<Element> elements) override {
    for (auto it = elements.rbegin(); it != elements.rend(); ++it) Insert(--first_, std::move(*it));
  }

 private:
  void Insert(int64_t number, Element element) {
    const int64_t priority = element[0].scalar<int64_t>();
    elements_.emplace(std::pair(priority, number), std::move(element));
  }

  std::map<std::pair<int64_t, int64_t>, Element> elements_;  // by priority and sequence number
  // The sequence numbers given so far: [first_, last_).
  int64_t first_ = 0, last_ = 0;
};

}  // namespace

std::unique_ptr<ElementStore> NewFifoStore() { return std::make_unique<FifoStore>(); }
std::unique_ptr<ElementStore> NewRandomStore(PhiloxNumbers numbers) {
  return std::make_unique<RandomStore>(numbers);
}
std::unique_ptr<ElementStore> NewPriorityStore() { return std::make_unique<PriorityStore>(); }

}  // namespace penstock
