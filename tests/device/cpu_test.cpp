#include "node-runtime/topology/cpu.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <set>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace heddle {

TEST(CpuTopology, tells_the_model_the_cores_and_the_memory) {
  const CpuTopology cpu = CpuTopology::detect();
  EXPECT_FALSE(cpu.model().empty());
  ASSERT_FALSE(cpu.cores().empty());
  EXPECT_GE(cpu.hardware_thread_count(), static_cast<std::int32_t>(cpu.cores().size()));
  EXPECT_GE(cpu.compute_thread_count(), 1);
  EXPECT_LE(cpu.compute_thread_count(), static_cast<std::int32_t>(cpu.cores().size()));
  EXPECT_GT(cpu.memory_available_bytes(), 0U);
  EXPECT_LE(cpu.memory_available_bytes(), cpu.memory_total_bytes());
  for (const CpuCache& cache : cpu.caches()) {
    EXPECT_GT(cache.bytes, 0U);
    EXPECT_GE(cache.cores, 1);
  }
}

TEST(CpuTopology, gives_each_usable_hardware_thread_to_one_core) {
  const CpuTopology cpu = CpuTopology::detect();
  const std::vector<std::int32_t> allowed = current_thread_binding();
  std::set<std::int32_t> seen;
  for (const CpuCore& core : cpu.cores()) {
    ASSERT_FALSE(core.hardware_threads.empty());
    for (const std::int32_t thread : core.hardware_threads) {
      EXPECT_TRUE(seen.insert(thread).second) << thread;
      EXPECT_TRUE(std::binary_search(allowed.begin(), allowed.end(), thread)) << thread;
    }
  }
  EXPECT_EQ(seen.size(), allowed.size());
}

namespace {

/// In the environment of the program's own child: the one hardware thread it is bound to.
constexpr const char* bound_to = "HEDDLE_TEST_BOUND_TO";

}  // namespace

TEST(CpuTopology, respects_the_binding_of_the_process) {
  if (const char* only = ::getenv(bound_to); only != nullptr) {
    const CpuTopology cpu = CpuTopology::detect();
    ASSERT_EQ(cpu.cores().size(), 1U);
    EXPECT_EQ(cpu.cores()[0].hardware_threads, std::vector<std::int32_t>{std::stoi(only)});
    EXPECT_EQ(cpu.compute_thread_count(), 1);
    return;
  }
  const std::int32_t last = current_thread_binding().back();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {  // bound as taskset or the MPI launcher would
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(last), &set);
    if (::sched_setaffinity(0, sizeof set, &set) != 0) ::_exit(2);
    ::setenv(bound_to, std::to_string(last).c_str(), 1);
    ::execl("/proc/self/exe", "test_topology", "--gtest_filter=CpuTopology.respects*", nullptr);
    ::_exit(3);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(CpuTopology, pins_and_names_the_calling_thread_only) {
  const CpuTopology cpu = CpuTopology::detect();
  const std::vector<std::int32_t> before = current_thread_binding();
  std::vector<std::int32_t> pinned;
  std::array<char, 16> name{};
  std::thread thread([&] {
    name_current_thread("a name that is too long");
    pin_current_thread(cpu.cores().last(1));
    pinned = current_thread_binding();
    ::pthread_getname_np(::pthread_self(), name.data(), name.size());
  });
  thread.join();
  std::vector<std::int32_t> expected = cpu.cores().back().hardware_threads;
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(pinned, expected);
  EXPECT_EQ(std::string(name.data()), "a name that is ");
  EXPECT_EQ(current_thread_binding(), before);
}

}  // namespace heddle
