#pragma once

#include <span>
#include <string>
#include <vector>

/// Translates former names of options and commands, so that old scripts keep working. Not in
/// --help.
namespace heddle {

struct CommandLine {
  std::vector<std::string> words;  ///< as main() has them, the program's name first
  /// A sentence with the new name for each old one used.
  std::vector<std::string> notes;
};

/// The same command line with the present names.
[[nodiscard]] CommandLine with_current_names(std::span<const char* const> words);

}  // namespace heddle
