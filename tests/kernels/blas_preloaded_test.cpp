#include <algorithm>
#include <cblas.h>
#include <cctype>
#include <gtest/gtest.h>
#include <string>

#include "kernels/cpu/blas.hpp"
#include "node-runtime/machine/prepare.hpp"

// This program is linked with OpenBLAS, as a host of the library may be.

namespace heddle::test {
namespace {

std::string linked_core_name() {
  std::string name = openblas_get_corename();
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

TEST(PreloadedBlas, IsUsedAsItIsAndReported) {
  openblas_set_num_threads(2);
  ASSERT_EQ(blas_presence(), BlasPresence::hosting_program);

  const MachineProfile profile = prepare_machine();

  EXPECT_EQ(profile.source, ProfileSource::process);
  EXPECT_NE(profile.explanation.find("hosting program"), std::string::npos) << profile.explanation;
  const BlasOptions wanted{.core_type = "CORE2", .tile_kernels = ""};
  const Blas& loaded = load_blas(wanted);
  EXPECT_TRUE(loaded.preloaded);
  EXPECT_EQ(loaded.core_name, linked_core_name());
  EXPECT_EQ(openblas_get_num_threads(), 1);
  EXPECT_EQ(reinterpret_cast<void*>(loaded.dgemm), reinterpret_cast<void*>(&cblas_dgemm));
}

}  // namespace
}  // namespace heddle::test
