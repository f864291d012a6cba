#include "kernels/cpu/blas.hpp"

#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "base/error.hpp"
#include "kernels/cpu/tile_operations.hpp"

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
           first.micro == nullptr && first.tile_kernels == "openblas";
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

TEST(TileKernels, AreASetLessSomeOperations) {
  for (const char* text : {"openblas", "avx2", "avx512 but gemm", "avx2 but gemm syrk trsm"}) {
    const auto parsed = TileKernels::parse(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(parsed->text(), text);
  }
  EXPECT_EQ(TileKernels::parse("avx2 but trsm  gemm")->text(), "avx2 but gemm trsm");
  for (const char* text :
       {"", " ", "avx2 gemm", "avx2 but", "avx2 but potrf", "openblas but gemm"}) {
    EXPECT_FALSE(TileKernels::parse(text)) << text;
  }
}

TEST(LoadBlas, LeavesOperationsToOpenBlasAsItIsTold) {
  const MicroKernels* const widest = best_micro_kernels();
  if (widest == nullptr) GTEST_SKIP() << "this processor runs none of heddle's kernels";
  const std::string name(widest->name);
  EXPECT_TRUE(in_own_process([&] {
    const BlasOptions wanted{.core_type = "", .tile_kernels = name + " but gemm"};
    const Blas& loaded = load_blas(wanted);
    return loaded.micro == widest && loaded.micro_gemm == nullptr && loaded.micro_syrk == widest &&
           loaded.micro_trsm == widest && loaded.tile_kernels == name + " but gemm";
  }));
  EXPECT_TRUE(in_own_process([&] {
    const auto message =
        usage_error([&] { load_blas({.core_type = "", .tile_kernels = name + " but potrf"}); });
    return message.find("gemm, syrk, trsm") != std::string::npos;
  }));
}

TEST(LoadBlas, MultipliesWithOpenBlasWhereItIsTold) {
  const MicroKernels* const widest = best_micro_kernels();
  if (widest == nullptr) GTEST_SKIP() << "this processor runs none of heddle's kernels";
  const std::string name(widest->name);
  EXPECT_TRUE(in_own_process([&] {
    constexpr int n = 96;
    load_blas({.core_type = "", .tile_kernels = name + " but gemm"});
    std::vector<double> a(n * n);
    std::vector<double> b(n * n);
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = 1.0 / static_cast<double>(i + 1);
      b[i] = 1.0 / static_cast<double>(3 * i + 7);
    }
    std::vector<double> wanted(n * n, 0.5);
    std::vector<double> found = wanted;
    constexpr int column_major = 102;
    constexpr int no_transpose = 111;
    constexpr int transpose = 112;
    blas().dgemm(column_major, no_transpose, transpose, n, n, n, -1, a.data(), n, b.data(), n, 1,
                 wanted.data(), n);
    host::update({found.data(), n, n, n}, {a.data(), n, n, n}, {b.data(), n, n, n});
    return found == wanted;
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
