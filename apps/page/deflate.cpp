#include "apps/page/deflate.hpp"

#include <cstdint>
#include <string_view>
#include <zlib.h>

#include "base/error.hpp"

namespace heddle::page {

std::vector<std::byte> deflated(std::span<const std::byte> bytes) {
  uLongf size = ::compressBound(static_cast<uLong>(bytes.size()));
  std::vector<std::byte> result(size);
  const int status = ::compress2(reinterpret_cast<Bytef*>(result.data()), &size,
                                 reinterpret_cast<const Bytef*>(bytes.data()),
                                 static_cast<uLong>(bytes.size()), 6);
  if (status != Z_OK) throw Error(ErrorCode::internal, "zlib has no memory to compress with");
  result.resize(size);
  return result;
}

std::string base64(std::span<const std::byte> bytes) {
  static constexpr std::string_view letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8U | (k < count ? std::to_integer<std::uint32_t>(bytes[i + k]) : 0);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += k <= count ? letters[group >> (18 - 6 * k) & 63U] : '=';
    }
  }
  return text;
}

}  // namespace heddle::page
