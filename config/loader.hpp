#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"
#include "config/config_error.hpp"
#include "config/options.hpp"
#include "config/tree.hpp"

/// From text to a checked Config. Internal to this folder.
namespace heddle::config {

/// Collects errors; knows the name of each source.
class Findings {
 public:
  Findings(std::string file, std::span<const std::string> overrides);

  void add(const Position& position, std::string_view path, std::string message,
           std::string_view nearest = {});
  /// Error of the file as a whole.
  void add_for_file(std::string message);

  [[nodiscard]] bool empty() const { return found_.empty(); }
  /// "problem.yaml:3:5" or "--set 1: layout.tile=7".
  [[nodiscard]] std::string place(const Position& position) const;
  /// Throws ConfigError with all findings in order, if any.
  void throw_if_any() const;

 private:
  struct Finding {
    Position position;
    Diagnostic diagnostic;
  };
  std::vector<std::string> sources_;
  std::vector<Finding> found_;
};

/// Where a key was given and whether its value was accepted.
struct Seen {
  Position key;
  Position value;
  bool valid = false;
};

/// A configuration with all keys read, before the rules between keys are checked.
struct Draft {
  Config config;
  std::map<std::string, Seen, std::less<>> seen;  ///< known keys given in the file or overrides

  /// The accepted key, or null.
  [[nodiscard]] const Seen* valid(std::string_view path) const;
};

/// Checks the rules between keys and reports violations. Only accepted keys take part, so that each
/// mistake is reported once.
void check_rules(const Draft& draft, Findings& findings);

/// Implements Config::from_text.
[[nodiscard]] Config load(const std::string& text, const std::string& source_name,
                          std::span<const std::string> overrides);

}  // namespace heddle::config
