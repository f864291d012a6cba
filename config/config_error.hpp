#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"

namespace heddle {
namespace config {

/// One error of a configuration.
struct Diagnostic {
  std::string source;   ///< file name, or "--set 1: layout.tlie=7"
  int line = 0;         ///< from 1; 0: the whole source
  int column = 0;       ///< from 1, in characters
  std::string path;     ///< dotted path of the key, empty for the whole document
  std::string message;  ///< what was expected and what was found
  std::string nearest;  ///< nearest valid key or value, or empty

  /// "file:3:5: problem.matrx: unknown key; expected ...; did you mean 'matrix'?"
  [[nodiscard]] std::string to_string() const;
};

}  // namespace config

/// All errors of a configuration; `what()` has one line for each. Exit status 2.
class ConfigError : public Error {
 public:
  explicit ConfigError(std::vector<config::Diagnostic> diagnostics);

  /// Ordered by source (file first, then each --set), line and column; never empty.
  [[nodiscard]] const std::vector<config::Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  std::vector<config::Diagnostic> diagnostics_;
};

}  // namespace heddle
