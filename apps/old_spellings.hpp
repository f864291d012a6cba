#pragma once

#include <span>
#include <string>
#include <vector>

/// Names of options and commands that have become others, so that scripts with the old ones go on
/// working. They are no part of --help.
namespace heddle {

struct CommandLine {
  std::vector<std::string> words;  ///< the program's name first, as main() has them
  /// For each old name that was there, once: a sentence with the new one.
  std::vector<std::string> notes;
};

/// The same line with the names of today.
[[nodiscard]] CommandLine with_current_names(std::span<const char* const> words);

}  // namespace heddle
