// SPDX-License-Identifier: Apache-2.0
//
// Tests readers with files that fail in unusual ways.
#include "kernels/data/reader.h"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <new>
#include <stdexcept>
#include <utility>

namespace penstock {
namespace {

// A source that has one record, and calls `next` to search for more.
class TestSource final : public RecordSource {
 public:
  explicit TestSource(std::function<SearchResult()> next) : next_(std::move(next)) {}
  StatusOr<SearchResult> Next(Record* record) override {
    if (first_) {
      first_ = false;
      *record = {"key", "value"};
      return SearchResult::kRecord;
    }
    return next_();
  }
  Position position() const override { return {}; }
  Status SkipTo(const Position& position) override { return OkStatus(); }

 private:
  const std::function<SearchResult()> next_;
  bool first_ = true;
};

std::shared_ptr<Queue> Names(int count) {
  QueueSpec spec;
  spec.type = "FIFOQueue";
  spec.types = {DType::kString};
  spec.capacity = count;
  auto queue = std::make_shared<Queue>("names", spec, NewFifoStore());
  const std::vector<Element> names(count, {Tensor::Scalar<std::string>("file")});
  queue->Enqueue(names, nullptr, Done([](const Status& status) { CHECK_OK(status); }));
  return queue;
}

Status ReadOne(Reader& reader, std::shared_ptr<Queue> queue) {
  std::vector<Reader::Record> records;
  std::promise<Status> read;
  reader.Read(std::move(queue), 1, &records, nullptr,
              Done([&](Status status) { read.set_value(std::move(status)); }));
  return read.get_future().get();
}

TEST(Reader, AnExceptionIsTheErrorOfTheStep) {
  const auto reader = std::make_shared<Reader>(
      "TestReader", "r",
      [](Env& env, const std::string& work) {
        return std::make_unique<TestSource>(
            []() -> RecordSource::SearchResult { throw std::bad_alloc(); });
      },
      Env::Real(), Scheduler::Real());
  const auto names = Names(1);
  EXPECT_TRUE(ReadOne(*reader, names).ok());
  for (int i = 0; i < 2; ++i) {  // the second call needs the turn of the first
    EXPECT_EQ(ReadOne(*reader, names).code(), StatusCode::kResourceExhausted);
  }
}

TEST(Reader, AnExceptionOnOpeningPassesTheWorkOver) {
  int opened = 0;
  const auto reader = std::make_shared<Reader>(
      "TestReader", "r",
      [&](Env& env, const std::string& work) {
        if (opened++ == 0) throw std::length_error("too long");
        return std::make_unique<TestSource>([] { return RecordSource::SearchResult::kNothing; });
      },
      Env::Real(), Scheduler::Real());
  const auto names = Names(2);
  EXPECT_EQ(ReadOne(*reader, names).code(), StatusCode::kInternal);
  EXPECT_TRUE(ReadOne(*reader, names).ok());
}

}  // namespace
}  // namespace penstock
