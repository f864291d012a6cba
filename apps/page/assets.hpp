#pragma once

#include <cstdint>
#include <string>

/// The page's own HTML, style and program (assets/), embedded when heddle is built.
namespace heddle::page {

/// What stands before the runs, and after them.
[[nodiscard]] std::string assets_begin();
[[nodiscard]] std::string assets_end();
[[nodiscard]] std::uint64_t assets_bytes();

}  // namespace heddle::page
