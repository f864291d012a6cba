#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace heddle::page {

/// In zlib's format, which browsers call "deflate". Throws Error(internal) without memory.
[[nodiscard]] std::vector<std::byte> deflated(std::span<const std::byte> bytes);

/// Four letters for three bytes, filled up with '='.
[[nodiscard]] std::string base64(std::span<const std::byte> bytes);

}  // namespace heddle::page
