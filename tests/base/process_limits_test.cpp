#include "base/process_limits.hpp"

#include <cstdlib>
#include <gtest/gtest.h>
#include <new>
#include <stdexcept>
#include <string_view>
#include <sys/resource.h>

namespace heddle {
namespace {

/// In a process of its own, which ends with 0 if `is_right` holds under the limit.
template <class Check>
void expect_under_limit(decltype(RLIMIT_AS) resource, rlim_t bytes, const Check& is_right) {
  const auto check = [&] {
    rlimit limit{};
    limit.rlim_cur = limit.rlim_max = bytes;
    ::setrlimit(resource, &limit);
    std::_Exit(is_right() ? 0 : 1);
  };
  EXPECT_EXIT(check(), ::testing::ExitedWithCode(0), "");
}

bool contains(const Error& error, const char* part) {
  return std::string_view(error.what()).find(part) != std::string_view::npos;
}

}  // namespace

TEST(ProcessLimits, of_memory_are_found_with_what_is_used) {
  constexpr std::uint64_t bytes = std::uint64_t{1} << 60U;
  expect_under_limit(RLIMIT_AS, bytes, [] {
    const auto limit = memory_limit();
    return limit && limit->bytes == bytes && limit->used > 0 &&
           limit->left() == bytes - limit->used &&
           contains(memory_refused("a test", 1024),
                    "1.00 KiB of memory for a test; the process's "
                    "address space (ulimit -v) is limited to "
                    "1048576.00 TiB");
  });
  expect_under_limit(RLIMIT_DATA, bytes, [] {
    return contains(out_of_memory(), "private memory (ulimit -d) is limited to 1048576.00 TiB");
  });
}

TEST(ProcessLimits, of_threads_are_told_with_the_threads_name) {
  expect_under_limit(RLIMIT_NPROC, 12345, [] {
    const Error error = thread_refused("worker 3", "no");
    return error.code() == ErrorCode::usage &&
           contains(error, "no thread or process for worker 3: no") &&
           contains(error, "12345 processes and threads (ulimit -u)");
  });
}

TEST(ProcessLimits, that_end_a_step_are_the_users_matter_and_other_exceptions_are_ours) {
  EXPECT_EQ(as_error(std::bad_alloc()).code(), ErrorCode::usage);
  EXPECT_EQ(as_error(std::runtime_error("x")).code(), ErrorCode::internal);
  EXPECT_EQ(as_error(Error(ErrorCode::numerical, "y")).code(), ErrorCode::numerical);
}

TEST(ProcessLimits, do_not_hinder_a_thread_without_them) {
  int value = 0;
  start_thread("a test", [&value] { value = 7; }).join();
  EXPECT_EQ(value, 7);
}

}  // namespace heddle
