#pragma once

#include <array>
#include <cstdint>

namespace heddle::kernel {

/// The counter-based generator Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers:
/// as easy as 1, 2, 3", SC 2011): ten rounds that turn a counter and a key into 128 random bits.
/// The n-th number needs no number before it.
struct Philox4x32 {
  using Counter = std::array<std::uint32_t, 4>;
  using Key = std::array<std::uint32_t, 2>;

  static constexpr int round_count = 10;

  // Always inlined: a loop over counters then vectorises for the instruction set of its function.
  [[gnu::always_inline]] static constexpr Counter generate(Counter counter, Key key) {
    for (int round = 0; round < round_count; ++round) {
      const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
      const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
      counter = {
          static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
          static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
      key[0] += 0x9E3779B9;
      key[1] += 0xBB67AE85;
    }
    return counter;
  }
};

}  // namespace heddle::kernel
