#include "kernels/philox.hpp"

#include <gtest/gtest.h>

namespace heddle::kernel {

// Known answers that come with the Random123 library, "philox4x32 10".
TEST(Philox, gives_the_known_answers) {
  using Counter = Philox4x32::Counter;
  EXPECT_EQ(Philox4x32::generate({0, 0, 0, 0}, {0, 0}),
            (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32::generate({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                                 {0xffffffff, 0xffffffff}),
            (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32::generate({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                                 {0xa4093822, 0x299f31d0}),
            (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

}  // namespace heddle::kernel
