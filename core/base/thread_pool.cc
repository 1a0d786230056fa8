// SPDX-License-Identifier: Apache-2.0
#include "core/base/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/spin.h"

namespace penstock {
namespace {

// What an idle thread burns before it blocks: about what waking it would cost.
constexpr auto kSpin = std::chrono::microseconds(50);
// Blocks per thread and loop: enough to even out threads that were held up.
constexpr int64_t kBlocksPerThread = 4;

// What a debugger shows: the system takes 15 characters.
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

// One ParallelFor, on its caller's stack. An exception, such as of a container that gets no memory,
// ends the loop and is the caller's, as if it had run all blocks itself.
struct Loop {
  absl::FunctionRef<void(int64_t, int64_t)> fn;
  const int64_t total;
  const int64_t block;
  int wanted;                    // threads that may still join; guarded by the pool's lock
  std::atomic<int64_t> next{0};  // first unit that nobody has taken
  std::atomic<int> helpers{0};   // threads that joined and have not left; changed under the lock
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // of who set `failed`

  // Takes blocks until none is left.
  void Work() {
    for (;;) {
      const int64_t begin = next.fetch_add(block, std::memory_order_relaxed);
      if (begin >= total) return;
      try {
        fn(begin, std::min(begin + block, total));
      } catch (...) {
        if (!failed.exchange(true)) error = std::current_exception();
        next.store(total, std::memory_order_relaxed);
      }
    }
  }
};

}  // namespace

// Idle threads look at `open` (queued closures and places in loops) without the lock; everything
// else changes under it.
struct ThreadPool::State {
  State(const std::string& n, int count) : name(n), num_threads(count) {}

  const std::string name;
  const int num_threads;
  std::mutex mu;
  std::condition_variable work_available;
  std::condition_variable helper_left;
  std::deque<absl::AnyInvocable<void() &&>> queue;
  std::vector<Loop*> loops;  // that want threads; the youngest last
  std::atomic<int64_t> open{0};
  int spinning = 0;
  int sleeping = 0;
  int callers_blocked = 0;
  bool stopping = false;
  std::vector<std::thread> threads;

  // Starts the threads, the first time. REQUIRES the lock.
  void Start() {
    if (threads.empty()) [[unlikely]]
      StartThreads();
  }
  void StartThreads();
  void Run();
  // Does one thing, and reports whether there was any. Enters and leaves with the lock held.
  bool RunOne(std::unique_lock<std::mutex>& lock);
  void Help(Loop* loop, std::unique_lock<std::mutex>& lock);
  // Waits for something to do: false when there is nothing and the pool is stopping.
  bool WaitForWork(std::unique_lock<std::mutex>& lock);
  // Wakes as many as `open` asks for beyond those who are looking anyway. REQUIRES the lock.
  void Wake();
  void Share(Loop& loop);
};

ThreadPool::ThreadPool(const std::string& name, int num_threads)
    : num_threads_(NumThreads(num_threads)), state_(std::make_unique<State>(name, num_threads_)) {}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard<std::mutex> lock(state_->mu);
    state_->stopping = true;
    state_->work_available.notify_all();
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

// One set for the process: more would only make the disk seek.
Scheduler& ThreadPool::files() {
  static ThreadPool& files = *new ThreadPool("files", 4);
  return files;
}

std::unique_ptr<Thread> ThreadPool::StartThread(const std::string& name, Closure body) {
  return std::make_unique<StdThread>(name, std::move(body));
}

bool ThreadPool::Wait(Condition& condition, std::mutex& mu, int64_t deadline_ns) {
  std::unique_lock<std::mutex> lock(mu, std::adopt_lock);
  bool in_time = true;
  if (deadline_ns == Condition::kNever) {
    Native(condition).wait(lock);
  } else {
    // The clock of Env::Real().
    const std::chrono::steady_clock::time_point deadline{std::chrono::nanoseconds(deadline_ns)};
    in_time = Native(condition).wait_until(lock, deadline) == std::cv_status::no_timeout;
  }
  lock.release();
  return in_time;
}

void ThreadPool::Schedule(absl::AnyInvocable<void() &&> closure) {
  std::lock_guard<std::mutex> lock(state_->mu);
  state_->Start();
  state_->queue.push_back(std::move(closure));
  state_->open.fetch_add(1, std::memory_order_relaxed);
  state_->Wake();
}

void ThreadPool::Split(int64_t total, double cost_ns, Range fn) {
  const double shares = static_cast<double>(total) * cost_ns / kShareNanosMin;
  const int64_t parts =
      std::min<int64_t>(total, static_cast<int64_t>(std::min<double>(shares, num_threads_)));
  if (parts < 2) return fn(0, total);

  // No block below a fifth of a share, so that taking it costs nothing beside it.
  const int64_t block_min = static_cast<int64_t>(kShareNanosMin / 5 / cost_ns) + 1;
  const int64_t blocks = parts * kBlocksPerThread;
  int64_t block = std::max((total + blocks - 1) / blocks, block_min);
  if (block > 64) block = (block + 15) / 16 * 16;  // whole vectors and cache lines
  Loop loop{fn, total, block, static_cast<int>(parts - 1)};
  state_->Share(loop);
}

void ThreadPool::State::Share(Loop& loop) {
  {
    std::lock_guard<std::mutex> lock(mu);
    Start();
    loops.push_back(&loop);
    open.fetch_add(loop.wanted, std::memory_order_relaxed);
    Wake();
  }
  loop.Work();
  {
    std::lock_guard<std::mutex> lock(mu);
    if (loop.wanted > 0) {
      open.fetch_sub(loop.wanted, std::memory_order_relaxed);
      loops.erase(std::find(loops.begin(), loops.end(), &loop));
    }
  }
  const auto all_left = [&loop] { return loop.helpers.load(std::memory_order_acquire) == 0; };
  if (!SpinUntil(all_left, kSpin)) {
    std::unique_lock<std::mutex> lock(mu);
    ++callers_blocked;
    helper_left.wait(lock, all_left);
    --callers_blocked;
  }
  if (loop.error) std::rethrow_exception(loop.error);
}

void ThreadPool::State::Help(Loop* loop, std::unique_lock<std::mutex>& lock) {
  loop->helpers.fetch_add(1, std::memory_order_relaxed);
  open.fetch_sub(1, std::memory_order_relaxed);
  if (--loop->wanted == 0) loops.erase(std::find(loops.begin(), loops.end(), loop));
  lock.unlock();
  loop->Work();
  lock.lock();
  // The caller may return, and the loop be gone, as soon as this is zero.
  if (loop->helpers.fetch_sub(1, std::memory_order_release) == 1 && callers_blocked > 0) {
    helper_left.notify_all();
  }
}

bool ThreadPool::State::RunOne(std::unique_lock<std::mutex>& lock) {
  if (!loops.empty()) {
    Help(loops.back(), lock);
    return true;
  }
  if (queue.empty()) return false;
  {
    absl::AnyInvocable<void()&&> closure = std::move(queue.front());
    queue.pop_front();
    open.fetch_sub(1, std::memory_order_relaxed);
    lock.unlock();
    std::move(closure)();
  }
  lock.lock();
  return true;
}

void ThreadPool::State::Wake() {
  const int64_t wanted = open.load(std::memory_order_relaxed) - spinning;
  for (int64_t n = std::min<int64_t>(wanted, sleeping); n > 0; --n) work_available.notify_one();
}

bool ThreadPool::State::WaitForWork(std::unique_lock<std::mutex>& lock) {
  const auto has_work = [this] { return open.load(std::memory_order_relaxed) > 0; };
  if (stopping) return false;
  ++spinning;
  lock.unlock();
  thread_local SpinHabit habit;
  habit.Until(has_work, kSpin);
  lock.lock();
  --spinning;
  ++sleeping;
  work_available.wait(lock, [&] { return has_work() || stopping; });
  --sleeping;
  return true;
}

void ThreadPool::State::Run() {
  std::unique_lock<std::mutex> lock(mu);
  do {
    while (RunOne(lock)) {
    }
  } while (WaitForWork(lock));
}

}  // namespace penstock
