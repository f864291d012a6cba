#include "kernels/cpu/blas.hpp"

#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"

namespace heddle::test {
namespace {

/// A process loads OpenBLAS once, so each case has its own: `body` runs in a child that never
/// returns to gtest. True if it said so.
bool in_own_process(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    bool good = false;
    try {
      good = body();
    } catch (const std::exception& error) {
      ::fprintf(stderr, "in the child: %s\n", error.what());
    }
    ::_exit(good ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// The message of the Error(usage) that `action` throws; empty if it throws none.
std::string usage_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code() == ErrorCode::usage ? error.what() : "";
  }
  return "";
}

TEST(LoadBlas, TakesTheKernelSetThatItIsAskedFor) {
  // SSE3 at least is on every x86-64 of this century.
#if defined(__x86_64__)
  EXPECT_TRUE(in_own_process([] {
    const BlasOptions wanted{.core_type = "NEHALEM", .tile_kernels = ""};
    const Blas& loaded = load_blas(wanted);
    return loaded.core_name == "NEHALEM" && !loaded.preloaded && loaded.version.size() >= 3;
  }));
#endif
}

TEST(LoadBlas, PutsTheEnvironmentBack) {
  EXPECT_TRUE(in_own_process([] {
    ::setenv("OPENBLAS_NUM_THREADS", "7", 1);
    ::unsetenv("OPENBLAS_CORETYPE");
    load_blas({.core_type = "NEHALEM", .tile_kernels = ""});
    return std::string(std::getenv("OPENBLAS_NUM_THREADS")) == "7" &&
           std::getenv("OPENBLAS_CORETYPE") == nullptr;
  }));
}

TEST(LoadBlas, FollowsTheEnvironmentWithoutAnOpinionOfItsOwn) {
  EXPECT_TRUE(in_own_process([] {
    ::setenv("OPENBLAS_CORETYPE", "NEHALEM", 1);
    return load_blas().core_name == "NEHALEM";
  }));
}

TEST(LoadBlas, GivesTheSameTableToLaterCallsThatAgree) {
  EXPECT_TRUE(in_own_process([] {
    const BlasOptions wanted{.core_type = "nehalem", .tile_kernels = "openblas"};
    const Blas& first = load_blas(wanted);
    return &first == &load_blas() && &first == &blas() &&
           &first == &load_blas({.core_type = "NEHALEM", .tile_kernels = ""}) &&
           &first == &load_blas({.core_type = "", .tile_kernels = "openblas"}) &&
           first.micro == nullptr && first.tile_kernels() == "openblas";
  }));
}

TEST(LoadBlas, RefusesLaterCallsThatDisagree) {
  EXPECT_TRUE(in_own_process([] {
    load_blas({.core_type = "NEHALEM", .tile_kernels = "openblas"});
    const auto core = usage_error([] { load_blas({.core_type = "CORE2", .tile_kernels = ""}); });
    const auto tile = usage_error([] { load_blas({.core_type = "", .tile_kernels = "avx2"}); });
    return core.find("NEHALEM") != std::string::npos && core.find("CORE2") != std::string::npos &&
           tile.find("avx2") != std::string::npos;
  }));
}

TEST(LoadBlas, RefusesTileKernelsThatTheProcessorLacksAndNamesThoseItHas) {
  EXPECT_TRUE(in_own_process([] {
    const auto message = usage_error([] { load_blas({.core_type = "", .tile_kernels = "vax"}); });
    return message.find("'vax'") != std::string::npos &&
           message.find("openblas") != std::string::npos;
  }));
}

TEST(LoadBlas, LoadsByItselfForKernelsThatRunFirst) {
  EXPECT_TRUE(in_own_process([] {
    if (blas_presence() != BlasPresence::absent) return false;
    const Blas& loaded = blas();
    return loaded.dgemm != nullptr && blas_presence() == BlasPresence::heddle &&
           loaded.micro == best_micro_kernels();
  }));
}

}  // namespace
}  // namespace heddle::test
