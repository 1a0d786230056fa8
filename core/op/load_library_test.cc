// SPDX-License-Identifier: Apache-2.0
//
// Loads the libraries of testing/libraries into this process: tests the ops they add, and which
// libraries are refused.
#include "core/op/load_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/env.h"
#include "core/op/op_library_note.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/op/testing/op_runner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

OP(OpOfTheTest) {
  return {.inputs = {{"x", "float"}}, .outputs = {{"y", "float"}}, .shape = SameShape};
}

OP(TypedOpOfTheTest) {
  return {.inputs = {{"x", "T"}, {"i", "U"}},
          .outputs = {{"y", "T"}},
          .types = {{"T", {DType::kFloat, DType::kDouble}}, {"U", kIndex}},
          .shape = SameShape};
}
class KernelOfTheTest final : public Kernel {
 public:
  Status Compute(KernelContext&) override { return OkStatus(); }
};
KERNEL_DEF({.op = "TypedOpOfTheTest",
            .types = {{"T", DType::kFloat}},
            .make = Make<KernelOfTheTest>});

std::string PathOf(const std::string& name) {
  return StrCat("core/op/testing/libraries/lib", name, ".so");
}

// Checks that LoadLibrary refuses the library with this code, adds nothing, and names the library
// in the error. Returns the error's message.
std::string Refusal(const std::string& path, StatusCode code) {
  const auto ops_before = Registry::Global().ops().size();
  const auto libraries_before = LoadedLibraries().size();
  const Status status = LoadLibrary(path).status();
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_EQ(Registry::Global().ops().size(), ops_before);
  EXPECT_EQ(LoadedLibraries().size(), libraries_before);
  EXPECT_THAT(std::string(status.message()), HasSubstr(StrCat("library '", path, "': ")));
  return std::string(status.message());
}

// Copies the library `triple` to a file `name`, with `build` in its note. Returns the copy's path.
std::string WithBuild(const std::string& name, const OpLibraryBuild& build) {
  std::string bytes = *Env::Real().ReadFile(PathOf("triple"));
  const OpLibraryBuild here = ThisBuild();
  const std::string old(reinterpret_cast<const char*>(&here), sizeof(here));
  const size_t at = bytes.find(old);
  EXPECT_NE(at, std::string::npos);
  bytes.replace(at, old.size(), reinterpret_cast<const char*>(&build), sizeof(build));
  const std::string path = StrCat(::testing::TempDir(), "/", name, ".so");
  EXPECT_TRUE(Env::Real().WriteFileAtomically(path, bytes).ok());
  return path;
}

TEST(LoadLibrary, BringsOpsThatRun) {
  const Registry& before = Registry::Global();
  ASSERT_EQ(before.FindOp("TripleThatRuns"), nullptr);
  const auto library = LoadLibrary(PathOf("triple_that_runs"));
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_THAT(library->ops, ElementsAre("TripleThatRuns"));
  EXPECT_THAT(library->kernels, ElementsAre("TripleThatRuns"));
  EXPECT_EQ(library->path[0], '/');

  EXPECT_EQ(OpRunner("TripleThatRuns").In(Tensor::Vector<float>({1, 2})).Run1()->ToString(),
            "float[2] 3 6");
  // The registry that was returned before the load has not changed: it does not have the loaded op.
  EXPECT_EQ(before.FindOp("TripleThatRuns"), nullptr);
  EXPECT_NE(before.FindOp("OpOfTheTest"), nullptr);
  EXPECT_NE(Registry::Global().FindOp("OpOfTheTest"), nullptr);
  for (const OpDef& op : DeclaredOps()) EXPECT_NE(op.name, "TripleThatRuns");
}

TEST(LoadLibrary, LoadsAFileOnce) {
  const auto first = LoadLibrary(PathOf("triple"));
  ASSERT_TRUE(first.ok()) << first.status();
  const Registry& registry = Registry::Global();
  const auto second = LoadLibrary(StrCat("./", PathOf("triple")));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->path, first->path);
  EXPECT_THAT(second->ops, ElementsAre("LoadedTriple"));
  EXPECT_EQ(&Registry::Global(), &registry);
  const std::vector<OpLibrary> loaded = LoadedLibraries();
  EXPECT_EQ(std::count_if(loaded.begin(), loaded.end(),
                          [&](const OpLibrary& library) { return library.path == first->path; }),
            1);
}

TEST(LoadLibrary, AddsKernelsToAnOpThatThereIs) {
  const auto library = LoadLibrary(PathOf("kernels_only"));
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_THAT(library->ops, IsEmpty());
  EXPECT_THAT(library->kernels, ElementsAre("TypedOpOfTheTest"));
  EXPECT_TRUE(
      Registry::Global()
          .FindKernel("TypedOpOfTheTest", "CPU", {{"T", DType::kDouble}, {"U", DType::kInt32}})
          .ok());
}

TEST(LoadLibrary, RefusesAKernelThatReplacesAnother) {
  EXPECT_THAT(Refusal(PathOf("kernel_that_replaces"), StatusCode::kAlreadyExists),
              HasSubstr("a kernel of TypedOpOfTheTest for CPU (T=float, U=int32) would replace the "
                        "existing one for CPU (T=float)"));
  EXPECT_THAT(Refusal(PathOf("kernel_for_any_type"), StatusCode::kAlreadyExists),
              HasSubstr("a kernel of TypedOpOfTheTest for CPU would replace the existing one"));
  const auto kernel = Registry::Global().FindKernel("TypedOpOfTheTest", "CPU",
                                                    {{"T", DType::kFloat}, {"U", DType::kInt32}});
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ((*kernel)->types.size(), 1);
}

TEST(LoadLibrary, RefusesCallsOfInitialisers) {
  const auto library = LoadLibrary(PathOf("loads_another"));
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_THAT(library->ops, ElementsAre("LoadsAnother"));
  const char* const said = std::getenv("PENSTOCK_TEST_NESTED_LOAD");
  ASSERT_NE(said, nullptr);
  EXPECT_EQ(said, StrCat("library '", PathOf("triple"), "': an initialiser of the library '",
                         library->path, "' loads it, and one library is loaded at a time"));
  EXPECT_TRUE(LoadLibrary(PathOf("triple")).ok());  // later calls on this thread work
}

TEST(LoadLibrary, RefusesASecondOpOfAName) {
  ASSERT_TRUE(LoadLibrary(PathOf("triple")).ok());
  EXPECT_THAT(Refusal(PathOf("triple_again"), StatusCode::kAlreadyExists),
              HasSubstr("it declares the op LoadedTriple, which '/"));
  EXPECT_THAT(Refusal(PathOf("op_of_the_process"), StatusCode::kAlreadyExists),
              HasSubstr("it declares the op OpOfTheTest, which Penstock has itself"));
  EXPECT_EQ(Registry::Global().FindOp("OpOfTheTest")->inputs.size(), 1);
  // The library's initialisers do not run again, and the error stays the same.
  EXPECT_THAT(Refusal(PathOf("triple_again"), StatusCode::kAlreadyExists),
              HasSubstr("LoadedTriple"));
}

TEST(LoadLibrary, RefusesOtherBuildsBeforeTheyRun) {
  const auto refusal = [](const std::string& name, const OpLibraryBuild& build) {
    const std::string path = WithBuild(name, build);
    const std::string said = Refusal(path, StatusCode::kFailedPrecondition);
    EXPECT_EQ(dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD), nullptr) << name << " was opened";
    return said;
  };
  OpLibraryBuild other = ThisBuild();
  other.version[0] = '9';
  EXPECT_THAT(refusal("version", other),
              AllOf(HasSubstr(StrCat("it was built for penstock 9", &kVersion[1], " (Abseil ",
                                     ThisBuild().abseil)),
                    HasSubstr(StrCat(", and this process is penstock ", kVersion))));
  other = ThisBuild();
  other.abseil = 20010101;
  EXPECT_THAT(refusal("abseil", other), HasSubstr("(Abseil 20010101"));
  other = ThisBuild();
  other.new_strings = 0;
  EXPECT_THAT(refusal("strings", other), HasSubstr("strings of before C++11"));
}

TEST(LoadLibrary, TheLastNumberOfAVersionMayDiffer) {
  OpLibraryBuild other = ThisBuild();
  const string_view version = other.version;
  other.version[version.rfind('.') + 1] = '9';
  ASSERT_TRUE(LoadLibrary(PathOf("triple")).ok());
  // The build is accepted; the error is that the op exists already.
  EXPECT_THAT(Refusal(WithBuild("patch", other), StatusCode::kAlreadyExists),
              HasSubstr("LoadedTriple"));
}

TEST(LoadLibrary, RefusesMistakes) {
  EXPECT_THAT(Refusal(PathOf("without_note"), StatusCode::kInvalidArgument),
              HasSubstr("has to include core/op/op_library.h"));
  EXPECT_THAT(Refusal(PathOf("nothing_declared"), StatusCode::kInvalidArgument),
              HasSubstr("declares neither ops nor kernels"));
  EXPECT_THAT(Refusal(PathOf("contradiction"), StatusCode::kInvalidArgument),
              HasSubstr("op Contradiction: the type 'U' of 'x' is not declared"));
  EXPECT_THAT(Refusal(PathOf("kernel_without_op"), StatusCode::kInvalidArgument),
              HasSubstr("a kernel is for SuchOpDoesNotExist, which is no op"));
  EXPECT_THAT(Refusal(PathOf("unlinked"), StatusCode::kInvalidArgument),
              HasSubstr("undefined symbol: _ZN8penstock14DefinedNowhere"));
}

TEST(LoadLibrary, RefusesWhatIsNoLibrary) {
  EXPECT_THAT(Refusal("/nowhere/libnone.so", StatusCode::kNotFound),
              HasSubstr("there is no such file"));
  EXPECT_THAT(Refusal(::testing::TempDir(), StatusCode::kInvalidArgument),
              HasSubstr("it is no regular file"));
  const std::string text = StrCat(::testing::TempDir(), "/text.so");
  ASSERT_TRUE(Env::Real().WriteFileAtomically(text, "INPUT(libc.so)\n").ok());
  EXPECT_THAT(Refusal(text, StatusCode::kInvalidArgument), HasSubstr("no shared library"));
  const std::string whole = *Env::Real().ReadFile(PathOf("triple"));
  const std::string cut = StrCat(::testing::TempDir(), "/cut.so");
  ASSERT_TRUE(Env::Real().WriteFileAtomically(cut, whole.substr(0, 100)).ok());
  EXPECT_THAT(Refusal(cut, StatusCode::kInvalidArgument), HasSubstr("broken or truncated"));
}

TEST(LoadLibrary, ReadsTheEnvironment) {
  ASSERT_EQ(Registry::Global().FindOp("TripleOfEnvironment"), nullptr);
  setenv("PENSTOCK_LOAD", StrCat(PathOf("triple_of_environment"), ",,", PathOf("none")).c_str(), 1);
  EXPECT_THAT(std::string(LoadLibrariesOfEnvironment().message()),
              HasSubstr("PENSTOCK_LOAD: library 'core/op/testing/libraries/libnone.so'"));
  EXPECT_NE(Registry::Global().FindOp("TripleOfEnvironment"), nullptr);
  unsetenv("PENSTOCK_LOAD");
  EXPECT_TRUE(LoadLibrariesOfEnvironment().ok());
}

}  // namespace
}  // namespace penstock
