#include "apps/simulation/measured_clock.hpp"

#include <charconv>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <sys/types.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "kernels/cpu/blas.hpp"
#include "kernels/kernels.hpp"

namespace heddle {
namespace {

using namespace std::chrono_literals;

/// A product of square tiles.
struct SmallProduct {
  std::vector<OperandShape> operands{3, OperandShape{64, 64}};
  KernelParameters parameters{kernel::UpdateParameters{0}};
  [[nodiscard]] KernelCase what() const { return {&kernel::gsmm, parameters, operands}; }
};

MeasuredClock clock_of(int processes) {
  return {std::vector<tuning::Workers>(static_cast<std::size_t>(processes)), 1 << 20};
}

/// 0 if it has gone.
pid_t parent_of(const std::string& process) {
  std::ifstream status("/proc/" + process + "/stat");
  std::string text;
  std::getline(status, text);
  const std::size_t name_end = text.rfind(')');  // the name may have spaces
  if (name_end == std::string::npos || name_end + 4 >= text.size()) return 0;
  pid_t parent = 0;
  std::from_chars(text.data() + name_end + 4, text.data() + text.size(), parent);
  return parent;
}

/// Ends all other children of this one's parent, again and again.
[[noreturn]] void end_siblings(const Conversation& /*parent*/) {
  const pid_t parent = ::getppid();
  for (;; std::this_thread::sleep_for(1ms)) {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename().string();
      pid_t process = 0;
      std::from_chars(name.data(), name.data() + name.size(), process);
      if (process > 0 && process != ::getpid() && parent_of(name) == parent) {
        ::kill(process, SIGKILL);
      }
    }
  }
}

}  // namespace

TEST(MeasuredClock, times_kernels_in_several_processes) {
  load_blas({});
  const SmallProduct product;
  for (const int processes : {1, 2, 3}) {
    EXPECT_GT(clock_of(processes).seconds(product.what(), Runner::worker), 0) << processes;
  }
}

TEST(MeasuredClock, that_loses_a_process_beside_its_own_says_so) {
  load_blas({});
  const SmallProduct product;
  const ChildProcess killer("end the others", end_siblings);
  MeasuredClock clock = clock_of(2);
  try {
    static_cast<void>(clock.seconds(product.what(), Runner::worker));
    ADD_FAILURE() << "it has timed on without the other process";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::internal);
    EXPECT_NE(std::string(error.what()).find("a process that times kernels beside this one"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace heddle
