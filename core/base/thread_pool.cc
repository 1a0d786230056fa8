// SPDX-License-Identifier: Apache-2.0
#include "core/base/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/cond_var.h"
#include "core/base/mutex.h"
#include "core/base/spin.h"

namespace penstock {
namespace {

// The time for which an idle thread spins before it blocks: about as long as waking it would take.
constexpr auto kSpin = std::chrono::microseconds(50);
// Blocks per thread and loop: enough that the other threads can take the blocks of a delayed one.
constexpr int64_t kBlocksPerThread = 4;
// The longest block of a watched loop, by the estimated cost. A block may really take ten times
// longer, because kernels estimate their costs only roughly.
constexpr double kWatchedBlockNanosMax = 2e6;

// Sets the name that debuggers show. The system keeps 15 characters.
void SetName(std::thread& thread, const std::string& label) {
  pthread_setname_np(thread.native_handle(), label.substr(0, 15).c_str());
}

int NumThreads(int wanted) {
  CHECK(wanted >= 0, "num_threads is ", wanted);
  return wanted > 0 ? wanted : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

class StdThread final : public Thread {
 public:
  StdThread(const std::string& name, Scheduler::Closure body) : thread_(std::move(body)) {
    SetName(thread_, name);
  }
  ~StdThread() override { thread_.join(); }

 private:
  std::thread thread_;
};

// One ParallelFor, on its caller's stack. An exception, for instance from a container that gets no
// memory, ends the loop and is rethrown in the caller. A watched loop may end early between two
// blocks.
struct Loop {
  absl::FunctionRef<void(int64_t, int64_t)> fn;
  const int64_t total;
  const int64_t block;
  const LoopWatch* const watch;  // null: the loop is not watched
  int wanted;                    // threads that may still join; guarded by the pool's lock
  std::atomic<int64_t> next{0};  // the first index that no thread has taken
  std::atomic<int> helpers{0};   // threads that joined and have not left; changed under the lock
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // the exception of the thread that has set `failed`

  // Takes blocks until none is left.
  void Work() {
    for (;;) {
      const int64_t begin = next.fetch_add(block, std::memory_order_relaxed);
      if (begin >= total) return;
      try {
        if (begin > 0 && watch != nullptr) ThrowIfEnded();
        fn(begin, std::min(begin + block, total));
      } catch (...) {
        if (!failed.exchange(true)) error = std::current_exception();
        next.store(total, std::memory_order_relaxed);
      }
    }
  }
  void ThrowIfEnded() const {
    Status status = watch->CheckContinues();
    if (!status.ok()) [[unlikely]]
      throw LoopEnded(std::move(status));
  }
};

}  // namespace

constinit thread_local const LoopWatch* WatchedLoops::current_ = nullptr;

struct ThreadPool::State {
  State(const std::string& n, int count) : name(n), num_threads(count) {}

  const std::string name;
  const int num_threads;
  Mutex mu;
  CondVar work_available;
  CondVar helper_left;
  std::deque<absl::AnyInvocable<void() &&>> queue ABSL_GUARDED_BY(mu);
  std::vector<Loop*> loops ABSL_GUARDED_BY(mu);  // loops that want threads; the newest last
  // The number of queued closures, plus the number of threads that may still join loops. Changed
  // under the lock; idle threads read it without.
  std::atomic<int64_t> open{0};
  int spinning ABSL_GUARDED_BY(mu) = 0;
  int sleeping ABSL_GUARDED_BY(mu) = 0;
  int callers_blocked ABSL_GUARDED_BY(mu) = 0;
  bool stopping ABSL_GUARDED_BY(mu) = false;
  std::vector<std::thread> threads;

  // Starts the threads on the first call.
  void Start() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    if (threads.empty()) [[unlikely]]
      StartThreads();
  }
  void StartThreads() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void Run() ABSL_LOCKS_EXCLUDED(mu);
  // Runs one closure or joins one loop, without the lock. Returns whether there was one.
  bool RunOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void JoinLoop(Loop* loop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Waits for work. Returns false if there is none and the pool is stopping.
  bool WaitForWork() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Wakes as many threads as `open` requires, less those that are looking for work already.
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void Share(Loop& loop) ABSL_LOCKS_EXCLUDED(mu);
};

ThreadPool::ThreadPool(const std::string& name, int num_threads)
    : num_threads_(NumThreads(num_threads)), state_(std::make_unique<State>(name, num_threads_)) {}

ThreadPool::~ThreadPool() {
  {
    MutexLock lock(state_->mu);
    state_->stopping = true;
    state_->work_available.NotifyAll();
  }
  for (std::thread& thread : state_->threads) thread.join();
}

void ThreadPool::State::StartThreads() {
  for (int i = 0; i < num_threads; ++i) {
    threads.emplace_back([this] { Run(); });
    SetName(threads.back(), absl::StrCat(absl::string_view(name).substr(0, 11), "/", i));
  }
}

Scheduler& Scheduler::Real() {
  static ThreadPool& threads = *new ThreadPool("penstock", 0);
  return threads;
}

// The process has one pool for files, with few threads: more would only make a disk seek more.
Scheduler& ThreadPool::files() {
  static ThreadPool& files = *new ThreadPool("files", 4);
  return files;
}

std::unique_ptr<Thread> ThreadPool::StartThread(const std::string& name, Closure body) {
  return std::make_unique<StdThread>(name, std::move(body));
}

bool ThreadPool::Wait(Condition& condition, Mutex& mu, int64_t deadline_ns) {
  std::unique_lock<std::mutex> lock(Native(mu), std::adopt_lock);
  bool in_time = true;
  if (deadline_ns == Condition::kNever) {
    Native(condition).wait(lock);
  } else {
    // On the clock of Env::Real().
    const std::chrono::steady_clock::time_point deadline{std::chrono::nanoseconds(deadline_ns)};
    in_time = Native(condition).wait_until(lock, deadline) == std::cv_status::no_timeout;
  }
  lock.release();
  return in_time;
}

void ThreadPool::Schedule(absl::AnyInvocable<void() &&> closure) {
  MutexLock lock(state_->mu);
  state_->Start();
  state_->queue.push_back(std::move(closure));
  state_->open.fetch_add(1, std::memory_order_relaxed);
  state_->Wake();
}

void ThreadPool::Split(int64_t total, double cost_ns, Range fn) {
  const double shares = static_cast<double>(total) * cost_ns / kShareNanosMin;
  const int64_t parts =
      std::min<int64_t>(total, static_cast<int64_t>(std::min<double>(shares, num_threads_)));
  const LoopWatch* const watch = WatchedLoops::current();
  const double watched_block = std::max(1.0, kWatchedBlockNanosMax / cost_ns);
  const bool watched = watch != nullptr && static_cast<double>(total) > watched_block;
  if (parts < 2 && !watched) return fn(0, total);

  // A block takes at least a fifth of a thread's minimum work (kShareNanosMin), so that the cost of
  // taking a block is negligible.
  const int64_t block_min = static_cast<int64_t>(kShareNanosMin / 5 / cost_ns) + 1;
  const int64_t blocks = parts * kBlocksPerThread;
  int64_t block = std::max((total + blocks - 1) / blocks, block_min);
  if (watched) block = std::min(block, static_cast<int64_t>(watched_block));
  if (block > 64)
    block = (block + 15) / 16 *
            16;  // rounds up, so that a block consists of complete vectors and cache lines
  Loop loop{fn, total, block, watch, static_cast<int>(parts - 1)};
  if (parts > 1) return state_->Share(loop);
  loop.Work();
  if (loop.error) std::rethrow_exception(loop.error);
}

void ThreadPool::State::Share(Loop& loop) {
  {
    MutexLock lock(mu);
    Start();
    loops.push_back(&loop);
    open.fetch_add(loop.wanted, std::memory_order_relaxed);
    Wake();
  }
  loop.Work();
  {
    MutexLock lock(mu);
    if (loop.wanted > 0) {
      open.fetch_sub(loop.wanted, std::memory_order_relaxed);
      loops.erase(std::find(loops.begin(), loops.end(), &loop));
    }
  }
  const auto all_left = [&loop] { return loop.helpers.load(std::memory_order_acquire) == 0; };
  if (!SpinUntil(all_left, kSpin)) {
    MutexLock lock(mu);
    ++callers_blocked;
    while (!all_left()) helper_left.Wait(mu);
    --callers_blocked;
  }
  if (loop.error) std::rethrow_exception(loop.error);
}

void ThreadPool::State::JoinLoop(Loop* loop) {
  loop->helpers.fetch_add(1, std::memory_order_relaxed);
  open.fetch_sub(1, std::memory_order_relaxed);
  if (--loop->wanted == 0) loops.erase(std::find(loops.begin(), loops.end(), loop));
  mu.Unlock();
  {
    const WatchedLoops watched(loop->watch);
    loop->Work();
  }
  mu.Lock();
  // When this is zero, the caller may return and destroy the loop.
  if (loop->helpers.fetch_sub(1, std::memory_order_release) == 1 && callers_blocked > 0) {
    helper_left.NotifyAll();
  }
}

bool ThreadPool::State::RunOne() {
  if (!loops.empty()) {
    JoinLoop(loops.back());
    return true;
  }
  if (queue.empty()) return false;
  {
    absl::AnyInvocable<void()&&> closure = std::move(queue.front());
    queue.pop_front();
    open.fetch_sub(1, std::memory_order_relaxed);
    mu.Unlock();
    std::move(closure)();
  }
  mu.Lock();
  return true;
}

void ThreadPool::State::Wake() {
  const int64_t wanted = open.load(std::memory_order_relaxed) - spinning;
  for (int64_t n = std::min<int64_t>(wanted, sleeping); n > 0; --n) work_available.NotifyOne();
}

bool ThreadPool::State::WaitForWork() {
  const auto has_work = [this] { return open.load(std::memory_order_relaxed) > 0; };
  if (stopping) return false;
  ++spinning;
  mu.Unlock();
  thread_local SpinHabit habit;
  habit.Until(has_work, kSpin);
  mu.Lock();
  --spinning;
  ++sleeping;
  while (!has_work() && !stopping) work_available.Wait(mu);
  --sleeping;
  return true;
}

void ThreadPool::State::Run() {
  MutexLock lock(mu);
  do {
    while (RunOne()) {
    }
  } while (WaitForWork());
}

}  // namespace penstock
