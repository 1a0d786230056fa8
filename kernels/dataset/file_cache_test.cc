// SPDX-License-Identifier: Apache-2.0
//
// Tests CacheDataset with a file name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sstream>

#include "core/base/forwarding_env.h"
#include "kernels/dataset/process_identity.h"
#include "kernels/dataset/testing/iterate.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class FileCacheTest : public testing::Test {
 protected:
  FileCacheTest() {
    CHECK_OK(Env::Real().CreateDirectories(folder_));
    for (const std::string& name : Files()) CHECK_OK(Env::Real().RemoveFile(Path(name)));
  }

  std::string Path(const std::string& name) const { return StrCat(folder_, "/", name); }
  std::vector<std::string> Files() const { return *Env::Real().ListDirectory(folder_); }
  Tensor Cache(const Tensor& input, std::vector<PartialShape> shapes = {PartialShape()}) const {
    return Must(DatasetRunner("CacheDataset", {DType::kInt64}, std::move(shapes))
                    .In(input)
                    .In(Tensor::Scalar<std::string>(Path("a")))
                    .Run1());
  }
  static std::vector<Tensor> Saved(Place& place, DatasetIterator& iterator) {
    StateWriter writer;
    CHECK_OK(iterator.Save(place.Context(), &writer));
    return writer.Take();
  }
  static IteratorPtr Restored(Place& place, const Tensor& dataset, std::vector<Tensor> state) {
    IteratorPtr iterator = NewIterator(place, dataset);
    StateReader reader(std::move(state));
    CHECK_OK(iterator->Restore(place.Context(), &reader));
    CHECK_OK(reader.AtEnd());
    return iterator;
  }

  const std::string folder_ = StrCat(testing::TempDir(), "/file_cache_",
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(FileCacheTest, TheFirstFullIterationWritesTheFile) {
  EXPECT_THAT(All(Cache(Range(3))), ElementsAre("0", "1", "2", "end"));
  EXPECT_THAT(Files(), ElementsAre("a.cache"));
  // From here on, iterators do not read the input.
  EXPECT_THAT(All(Cache(Range(9))), ElementsAre("0", "1", "2", "end"));
  Place place;
  const IteratorPtr iterator = NewIterator(place, Cache(Range(9)));
  Rest(place, *iterator);
  EXPECT_EQ(Next(place, *iterator), "end");
}

TEST_F(FileCacheTest, AnEmptyDatasetIsCachedToo) {
  EXPECT_THAT(All(Cache(Range(0))), ElementsAre("end"));
  EXPECT_THAT(All(Cache(Range(9))), ElementsAre("end"));
}

TEST_F(FileCacheTest, AnIterationThatEndsEarlyLeavesNothing) {
  {
    Place place;
    const IteratorPtr iterator = NewIterator(place, Cache(Range(3)));
    EXPECT_EQ(Files().size(), 0u);
    EXPECT_EQ(Next(place, *iterator), "0");
    EXPECT_EQ(Files().size(), 2u);  // the lockfile and the unfinished cache
  }
  EXPECT_EQ(Files().size(), 0u);
  EXPECT_THAT(All(Cache(Range(2))), ElementsAre("0", "1", "end"));
}

TEST_F(FileCacheTest, OneIteratorWritesAtATime) {
  Place place;
  const IteratorPtr writes = NewIterator(place, Cache(Range(2)));
  EXPECT_EQ(Next(place, *writes), "0");
  const IteratorPtr refused = NewIterator(place, Cache(Range(2)));
  EXPECT_THAT(Next(place, *refused), HasSubstr("cache lockfile already exists"));
  EXPECT_THAT(Rest(place, *writes), ElementsAre("1", "end"));
  EXPECT_THAT(Rest(place, *refused), ElementsAre("0", "1", "end"));
}

// Returns the time at which process `pid` started, in clock ticks since the boot.
int64_t StartOf(int64_t pid) {
  const std::string text = *Env::Real().ReadFile(StrCat("/proc/", pid, "/stat"));
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int i = 0; i < 20; ++i) fields >> field;
  return std::stoll(field);
}

// Returns the pid of a process that has ended.
int64_t EndedProcess() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  CHECK(child > 0);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  return child;
}

TEST_F(FileCacheTest, ALockfileOfAnEndedProcessIsTakenOver) {
  ProcessIdentity ended = *ProcessIdentity::OfThisProcess(Env::Real());
  ended.pid = EndedProcess();
  ProcessIdentity earlier = *ProcessIdentity::OfThisProcess(Env::Real());
  earlier.start -= 1;  // an ended process that had this one's pid
  for (const ProcessIdentity& owner : {ended, earlier}) {
    CHECK_OK(
        Env::Real().WriteFileAtomically(Path("a.lockfile"), StrCat("123\n", owner.ToString())));
    CHECK_OK(Env::Real().WriteFileAtomically(Path("a.cache.123"), "unfinished"));
    EXPECT_THAT(All(Cache(Range(3))), ElementsAre("0", "1", "2", "end"));
    EXPECT_THAT(Files(), ElementsAre("a.cache"));
    CHECK_OK(Env::Real().RemoveFile(Path("a.cache")));
  }
}

// A killed process stays in /proc until its parent waits for it.
TEST_F(FileCacheTest, ALockfileOfAZombieIsTakenOver) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  ASSERT_GT(child, 0);
  ProcessIdentity owner = *ProcessIdentity::OfThisProcess(Env::Real());
  owner.pid = child;
  owner.start = StartOf(child);
  EXPECT_EQ(owner.LifeNow(Env::Real()), ProcessIdentity::Life::kRuns);
  kill(child, SIGKILL);
  siginfo_t ended;
  EXPECT_EQ(waitid(P_PID, child, &ended, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(owner.LifeNow(Env::Real()), ProcessIdentity::Life::kEnded);
  CHECK_OK(Env::Real().WriteFileAtomically(Path("a.lockfile"), StrCat("1\n", owner.ToString())));
  EXPECT_THAT(All(Cache(Range(1))), ElementsAre("0", "end"));
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

// Another container of the pod may have the same host name and boot, but other pids.
TEST_F(FileCacheTest, ALockfileOfAnotherPidNamespaceIsAnError) {
  ProcessIdentity owner = *ProcessIdentity::OfThisProcess(Env::Real());
  owner.pid = EndedProcess();
  owner.pid_namespace = "pid:[1]";
  CHECK_OK(Env::Real().WriteFileAtomically(Path("a.lockfile"), StrCat("1\n", owner.ToString())));
  CHECK_OK(Env::Real().WriteFileAtomically(Path("a.cache.1"), "unfinished"));
  Place place;
  EXPECT_THAT(Next(place, *NewIterator(place, Cache(Range(2)))),
              HasSubstr("cache lockfile already exists"));
  EXPECT_THAT(Files(), UnorderedElementsAre("a.cache.1", "a.lockfile"));
}

// An Env whose /proc hides all other processes, like that of another user with hidepid=2.
class HidesProcesses : public ForwardingEnv {
 public:
  HidesProcesses() : ForwardingEnv(Env::Real()) {}
  StatusOr<std::string> ReadFile(const std::string& path) override {
    if (path == StrCat("/proc/", getpid(), "/stat")) return NotFound(path);
    return Env::Real().ReadFile(path);
  }
};

TEST_F(FileCacheTest, AHiddenProcessMayRun) {
  HidesProcesses env;
  const ProcessIdentity here = *ProcessIdentity::OfThisProcess(env);
  EXPECT_EQ(here.LifeNow(env), ProcessIdentity::Life::kUnknown);
  EXPECT_EQ(here.LifeNow(Env::Real()), ProcessIdentity::Life::kRuns);
}

TEST_F(FileCacheTest, ALockfileOfAnEarlierBootIsTakenOver) {
  ProcessIdentity owner = *ProcessIdentity::OfThisProcess(Env::Real());
  owner.boot = "another";
  CHECK_OK(Env::Real().WriteFileAtomically(Path("a.lockfile"), StrCat("1\n", owner.ToString())));
  EXPECT_THAT(All(Cache(Range(1))), ElementsAre("0", "end"));
  EXPECT_THAT(Files(), ElementsAre("a.cache"));
}

TEST_F(FileCacheTest, ALockfileOfAProcessThatMayRunIsAnError) {
  const ProcessIdentity here = *ProcessIdentity::OfThisProcess(Env::Real());
  ProcessIdentity elsewhere = here;
  elsewhere.host = "elsewhere";
  for (const ProcessIdentity& owner : {here, elsewhere}) {
    CHECK_OK(Env::Real().WriteFileAtomically(Path("a.lockfile"), StrCat("1\n", owner.ToString())));
    Place place;
    EXPECT_THAT(Next(place, *NewIterator(place, Cache(Range(2)))),
                HasSubstr(StrCat("of process ", owner.pid, " on '", owner.host, "'")));
    EXPECT_THAT(Files(), ElementsAre("a.lockfile"));
  }
}

TEST_F(FileCacheTest, ALockfileOfAnUnknownProcessIsAnError) {
  CHECK_OK(Env::Real().WriteFileAtomically(Path("a.lockfile"), "of a process that is gone"));
  Place place;
  const IteratorPtr iterator = NewIterator(place, Cache(Range(2)));
  EXPECT_THAT(Next(place, *iterator), HasSubstr("the cache is incomplete"));
  EXPECT_THAT(Files(), ElementsAre("a.lockfile"));
  CHECK_OK(Env::Real().RemoveFile(Path("a.lockfile")));
  EXPECT_THAT(Rest(place, *iterator), ElementsAre("0", "1", "end"));
}

TEST_F(FileCacheTest, DamageIsAnErrorThatStays) {
  All(Cache(Range(5)));
  const std::string whole = *Env::Real().ReadFile(Path("a.cache"));
  // A flipped bit or a truncation either causes an error or does not change the elements.
  for (size_t at = 0; at < whole.size(); at += 3) {
    std::string damaged = whole;
    damaged[at] ^= 0x10;
    for (const std::string& contents : {damaged, whole.substr(0, at)}) {
      CHECK_OK(Env::Real().WriteFileAtomically(Path("a.cache"), contents));
      Place place;
      const IteratorPtr iterator = NewIterator(place, Cache(Range(5)));
      std::string last;
      int elements = 0;
      while ((last = Next(place, *iterator)) == StrCat(elements)) ++elements;
      EXPECT_THAT(last, HasSubstr("a.cache")) << at;
      EXPECT_LE(elements, 5);
      EXPECT_EQ(Next(place, *iterator), last) << at;
    }
  }
}

TEST_F(FileCacheTest, ACacheOfAnotherDatasetIsRefused) {
  All(Cache(Range(5)));
  const Tensor small =
      Must(DatasetRunner("RangeDataset", {DType::kInt32}).In(Int(0)).In(Int(4)).In(Int(1)).Run1());
  Place place;
  EXPECT_THAT(Next(place, *NewIterator(place, Cache(small))),
              HasSubstr("was written for another dataset"));
}

TEST_F(FileCacheTest, IteratorsAreSavedAndRestored) {
  Place place;
  std::vector<Tensor> while_writing;
  {
    const IteratorPtr iterator = NewIterator(place, Cache(Range(5)));
    EXPECT_EQ(Saved(place, *iterator).size(), 2u);
    EXPECT_EQ(Next(place, *iterator), "0");
    while_writing = Saved(place, *iterator);
  }
  // The restored iterator reads the rest of the input, and writes no cache of half the elements.
  EXPECT_THAT(Rest(place, *Restored(place, Cache(Range(5)), while_writing)),
              ElementsAre("1", "2", "3", "4", "end"));
  EXPECT_EQ(Files().size(), 0u);
  All(Cache(Range(5)));
  for (int read = 0; read <= 6; ++read) {
    const IteratorPtr iterator = NewIterator(place, Cache(Range(5)));
    for (int i = 0; i < read; ++i) Next(place, *iterator);
    const IteratorPtr restored = Restored(place, Cache(Range(5)), Saved(place, *iterator));
    EXPECT_EQ(Rest(place, *restored), Rest(place, *iterator)) << read;
  }
  // A wrong position in the state causes the error of a damaged file.
  const IteratorPtr iterator = NewIterator(place, Cache(Range(5)));
  StateReader reader({Tensor::Scalar<std::string>("FileCache"), Int(2), Int(33), Int(2)});
  CHECK_OK(iterator->Restore(place.Context(), &reader));
  EXPECT_THAT(Next(place, *iterator), HasSubstr("a.cache"));
}

TEST_F(FileCacheTest, DatasetsCannotBeInAFile) {
  const Tensor windows = Must(DatasetRunner("WindowDataset", {DType::kVariant})
                                  .In(Range(4))
                                  .In(Int(2))
                                  .In(Int(2))
                                  .In(Int(1))
                                  .In(Tensor::Scalar(false))
                                  .Run1());
  Place place;
  const IteratorPtr iterator = NewIterator(place, Cache(windows));
  const std::string error = Next(place, *iterator);
  EXPECT_THAT(error, HasSubstr("dataset"));
  EXPECT_EQ(Next(place, *iterator), error);
  EXPECT_EQ(Files().size(), 0u);
}

}  // namespace
}  // namespace penstock
