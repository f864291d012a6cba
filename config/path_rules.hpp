#pragma once

#include <string>
#include <string_view>

#include "config/options.hpp"
#include "config/words.hpp"

namespace heddle::config {

/// Error text for a path in a configuration or on a command line; empty if it is valid.
/// `extensions`: allowed ones; empty: any, except that a written file may not have a matrix's
/// extension.
[[nodiscard]] std::string path_trouble(std::string_view path, NameList extensions, FileUse use);

}  // namespace heddle::config
