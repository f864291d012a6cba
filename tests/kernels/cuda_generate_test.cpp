#include <cstdint>
#include <vector>

#include "kernels/cuda/definitions.hpp"
#include "tests/kernels/cuda_fixture.hpp"
#include "tests/kernels/generated_part.hpp"

/// GPUs make the elements of generated matrices with the bits of the host.
namespace heddle::test {

class CudaGenerate : public CudaKernels {};

TEST_F(CudaGenerate, HasTheBitsOfTheHost) {
  for (const kernel::ElementKind kind : all_element_kinds) {
    for (const PartPlace& place : part_places) {
      SCOPED_TRACE(testing::Message()
                   << "kind " << static_cast<int>(kind) << ", " << place.rows << " x "
                   << place.columns << " from " << place.row << ", " << place.column);
      GeneratedPart part(kind, place);
      GuardedTile expected(place.rows, place.columns);
      std::vector<TileView> views;
      for (const GuardedTile* tile : part.with_inputs(expected)) views.push_back(tile->view());
      ASSERT_EQ(run(kernel::generate, part.parameters(), views), 0);
      GuardedTile found(place.rows, place.columns);
      ASSERT_NO_FATAL_FAILURE(
          run_cuda_twice(kernel::cuda::generate, part.parameters(), part.with_inputs(found), 1));
      EXPECT_TRUE(found.same_bits(expected));
    }
  }
}

}  // namespace heddle::test
