// SPDX-License-Identifier: Apache-2.0
#include "core/op/resource.h"

#include <atomic>
#include <thread>

#include "core/op/variable.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

class Counter : public Resource {
 public:
  const char* TypeName() const override { return "Counter"; }
  std::string DebugString() const override { return "Counter"; }
  void Shutdown() override { ++shutdowns; }
  const char* OpaqueReason() const override { return "it is a test's"; }
  int shutdowns = 0;
};

StatusOr<std::shared_ptr<Resource>> MakeCounter() { return std::make_shared<Counter>(); }

TEST(ResourceStore, MadeOnceAndFound) {
  ResourceStore store;
  const auto made = store.LookupOrCreate("", "x", "Counter", MakeCounter);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(*store.LookupOrCreate("localhost", "x", "Counter", MakeCounter), *made);
  EXPECT_EQ(*store.Lookup("", "x"), *made);
  EXPECT_EQ(*store.Lookup(kDefaultContainer, "x"), *made);
  // The same name in another container is another resource.
  EXPECT_NE(*store.LookupOrCreate("c", "x", "Counter", MakeCounter), *made);
  EXPECT_EQ(store.Lookup("d", "x").status(), NotFound("there is no resource 'x' in container 'd'"));
  using Key = std::pair<std::string, std::string>;
  EXPECT_EQ(store.List(), (std::vector<Key>{{"c", "x"}, {"localhost", "x"}}));
}

TEST(ResourceStore, Errors) {
  ResourceStore store;
  ASSERT_TRUE(store.LookupOrCreate("", "x", "Counter", MakeCounter).ok());
  EXPECT_EQ(store.LookupOrCreate("", "x", "Variable", MakeCounter).status(),
            InvalidArgument("resource 'x' in container 'localhost' is a Counter, not a Variable"));
  const auto fails = []() -> StatusOr<std::shared_ptr<Resource>> { return Internal("no"); };
  EXPECT_EQ(store.LookupOrCreate("", "y", "Counter", fails).status(), Internal("no"));
  EXPECT_FALSE(store.Lookup("", "y").ok());
  EXPECT_EQ(store.Remove("", "y"), NotFound("there is no resource 'y' in container 'localhost'"));
}

TEST(ResourceStore, RemovedResourcesAreShutDown) {
  ResourceStore store;
  const auto make = [&](const char* container, const char* name) {
    return std::static_pointer_cast<Counter>(
        *store.LookupOrCreate(container, name, "Counter", MakeCounter));
  };
  const auto a = make("", "a"), b = make("", "b"), c = make("other", "c"), d = make("z", "d");
  EXPECT_TRUE(store.Remove("", "a").ok());
  EXPECT_EQ(a->shutdowns, 1);
  store.ClearContainer("");
  store.ClearContainer("never seen");
  EXPECT_EQ(b->shutdowns, 1);
  EXPECT_EQ(c->shutdowns + d->shutdowns, 0);
  EXPECT_EQ(store.List().size(), 2);
  store.ClearAll();
  EXPECT_EQ(c->shutdowns, 1);
  EXPECT_EQ(d->shutdowns, 1);
  EXPECT_TRUE(store.List().empty());
}

TEST(ResolveHandle, AttachedOrByName) {
  ResourceStore store;
  const auto in_store = *store.LookupOrCreate("c", "x", "Counter", MakeCounter);
  ResourceHandle handle = {.container = "c", .name = "x"};
  EXPECT_EQ(*ResolveHandle(handle, store), in_store);
  EXPECT_EQ(*ResolveHandleAs<Counter>(handle, store), in_store);
  EXPECT_EQ(ResolveHandleAs<Variable>(handle, store).status(),
            InvalidArgument("resource 'x' is a Counter, which is not what this op works on"));
  handle.resource = std::make_shared<Counter>();
  EXPECT_EQ(*ResolveHandle(handle, store), handle.resource);
  EXPECT_FALSE(ResolveHandle({.container = "c", .name = "y"}, store).ok());
}

TEST(ResourceStore, ManyThreadsGetOneResource) {
  ResourceStore store;
  std::atomic<int> made{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const auto resource = store.LookupOrCreate("", StrCat("r", i), "Counter", [&] {
          ++made;
          return MakeCounter();
        });
        ASSERT_TRUE(resource.ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 200);
}

}  // namespace
}  // namespace penstock
