#pragma once

#include <string>
#include <string_view>

#include "config/enums.hpp"
#include "config/options.hpp"

namespace heddle::config {

/// What is wrong with a path as a value of a configuration or of a command line, in the words of a
/// refusal; empty where nothing is. `extensions`: the endings that it may have; empty: any, but
/// what is written is not named like a matrix then.
[[nodiscard]] std::string path_trouble(std::string_view path, NameList extensions, FileUse use);

}  // namespace heddle::config
