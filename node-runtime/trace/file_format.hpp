#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "node-runtime/trace/record.hpp"

/// Framing of a node's file (node_file.hpp), for its readers and writers only.
namespace heddle::trace::format {

inline constexpr std::array<char, 8> magic{'H', 'E', 'D', 'D', 'L', 'E', 'T', 'R'};
inline constexpr std::uint32_t number = 2;

struct FileHeader {
  std::array<char, 8> letters = magic;
  std::uint32_t format_number = number;
  std::uint32_t bytes_per_record = record_bytes;
};
static_assert(sizeof(FileHeader) == 16);

constexpr std::uint32_t four_letters(const char (&text)[5]) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i) {
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])) << (8 * i);
  }
  return value;
}

enum class ChunkType : std::uint32_t {
  node = four_letters("NODE"),
  metadata = four_letters("META"),
  clock = four_letters("CLCK"),
  names = four_letters("NAME"),
  matrices = four_letters("MATR"),
  thread = four_letters("THRD"),
  totals = four_letters("TOTL"),
  records = four_letters("RECS"),
  end = four_letters("END "),
};

struct ChunkHeader {
  ChunkType type = ChunkType::end;
  std::uint32_t thread = 0;
  std::uint64_t bytes = 0;     ///< of the payload
  std::uint64_t checksum = 0;  ///< of the fields above and the payload
};
static_assert(sizeof(ChunkHeader) == 24);

/// Value of `header.checksum`, over 8-byte words padded with zeros; detects damage, not tampering.
[[nodiscard]] inline std::uint64_t checksum_of(const ChunkHeader& header,
                                               std::span<const std::byte> payload) {
  std::uint64_t sum = 0;
  const auto add = [&sum](std::uint64_t word) {
    sum = (sum ^ word) * 0x9E3779B97F4A7C15U;
    sum ^= sum >> 32;
  };
  add(static_cast<std::uint64_t>(header.type) << 32 | header.thread);
  add(header.bytes);
  while (!payload.empty()) {
    const std::size_t size = std::min(payload.size(), sizeof(std::uint64_t));
    std::uint64_t word = 0;
    std::memcpy(&word, payload.data(), size);
    add(word);
    payload = payload.subspan(size);
  }
  return sum;
}

}  // namespace heddle::trace::format
