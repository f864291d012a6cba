#include "config/path_rules.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "config/tree.hpp"

namespace heddle::config {
namespace {

constexpr std::array<std::string_view, 2> matrix_endings{".npy", ".mtx"};

bool ends_with_one_of(std::string_view path, NameList endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) {
    return path.size() > ending.size() && path.ends_with(ending);
  });
}

}  // namespace

std::string path_trouble(std::string_view path, NameList extensions, FileUse use) {
  const auto is_control = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7F;
  };
  if (path.empty()) return "expected a path; found nothing";
  if (std::any_of(path.begin(), path.end(), is_control)) {
    return fmt::format("expected a path on one line, without control characters; found '{}'",
                       shown(path));
  }
  if (!extensions.empty() && !ends_with_one_of(path, extensions)) {
    return fmt::format("expected a path ending in {}; found '{}'", fmt::join(extensions, " or "),
                       shown(path));
  }
  if (extensions.empty() && use == FileUse::written && ends_with_one_of(path, matrix_endings)) {
    return fmt::format("expected a path that does not end as those of matrices do; found '{}'",
                       shown(path));
  }
  return {};
}

}  // namespace heddle::config
