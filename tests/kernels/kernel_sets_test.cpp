#include "node-runtime/machine/kernel_sets.hpp"

#include <cerrno>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>

#include "kernels/cpu/blas.hpp"
#include "tests/kernels/machine_fixture.hpp"

namespace heddle::test {
namespace {

TEST(KernelSets, AreMeasuredInProcessesOfTheirOwnThatLeaveNothingBehind) {
  const KernelChoice choice = measure_blas_kernel_sets();

  EXPECT_TRUE(choice.is_valid());
  EXPECT_NE(choice.find(choice.library_default), nullptr);
  EXPECT_EQ(
      choice.sets.size(), 1 + micro_kernels().size() + [&] {
        std::size_t others = 0;
        for (const std::string& name : runnable_core_types())
          others += name != choice.library_default;
        return others;
      }());
  EXPECT_EQ(blas_presence(), BlasPresence::absent);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(KernelSets, NameTheLibraryWithoutLoadingIt) {
  const OpenBlasIdentity identity = identify_openblas();
  EXPECT_NE(identity.configuration.find(identity.version), std::string::npos);
  EXPECT_EQ(blas_presence(), BlasPresence::absent);
}

TEST(KernelChoice, TakesTheSetThatIsFastestForAWholeFactorization) {
  EXPECT_EQ(sample_choice().core_type, "SANDYBRIDGE");
  EXPECT_EQ(sample_choice().tile_kernels, "openblas");
}

TEST(KernelChoice, PrefersTheLibrarysOwnChoiceWhenTheDifferenceIsNoise) {
  KernelChoice choice = sample_choice();
  choice.sets[0].rates = choice.sets[1].rates;
  choice.sets[1].rates[0] *= 1.005;
  choose_kernels(choice);
  EXPECT_EQ(choice.core_type, "PRESCOTT");
}

TEST(KernelChoice, TakesHeddlesOwnKernelsUnlessTheLibraryIsFasterByATenth) {
  KernelChoice choice = sample_choice();
  const KernelRates library = choice.find("SANDYBRIDGE")->rates;
  const auto own = [&](double share) {
    KernelRates rates = library;
    for (double& rate : rates) rate *= share;
    return rates;
  };
  choice.sets.push_back({"avx2", true, own(0.92)});
  choose_kernels(choice);
  EXPECT_EQ(choice.tile_kernels, "avx2");
  EXPECT_EQ(choice.core_type, "SANDYBRIDGE");
  choice.sets.back().rates = own(0.9);
  choose_kernels(choice);
  EXPECT_EQ(choice.tile_kernels, "openblas");
}

TEST(KernelChoice, LeavesSingleOperationsToTheLibraryThatIsFasterByATenth) {
  KernelChoice choice = sample_choice();
  // As measured on a Zen 3.
  choice.sets[0].rates = {20, 20, 20, 20};
  choice.sets[1].rates = {32.7, 29.9, 27.9, 22.4};
  choice.sets.push_back({"avx2", true, {28.3, 27.8, 29.8, 25.5}});
  choose_kernels(choice);
  EXPECT_EQ(choice.tile_kernels, "avx2 but gemm");
  EXPECT_TRUE(choice.is_valid());
  EXPECT_EQ(choice.own(), &choice.sets[2]);
  choice.sets[1].rates = {32.7, 31, 34, 22.4};
  choose_kernels(choice);
  EXPECT_EQ(choice.tile_kernels, "openblas") << "nothing but potrf would be left";
  EXPECT_EQ(choice.own(), nullptr);
  choice.tile_kernels = "avx2 but lunch";
  EXPECT_FALSE(choice.is_valid());
  choice.tile_kernels = "PRESCOTT but gemm";
  EXPECT_FALSE(choice.is_valid()) << "that is the library's";
}

TEST(KernelChoice, WeighsKernelsAsAFactorizationOfAboutTwelveTilesDoes) {
  EXPECT_NEAR(cholesky_rate({50, 50, 50, 50}), 50, 1e-12);
  // Gemm has 572 of 732 1/3 units of work.
  EXPECT_NEAR(cholesky_rate({1e30, 50, 50, 50}), 50 / (1 - 572 / (732 + 1.0 / 3)), 1e-9);
}

}  // namespace
}  // namespace heddle::test
