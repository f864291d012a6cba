#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "config/config.hpp"
#include "config/words.hpp"

/// The only table of options: checks, defaults, `--set`, help text, JSON Schema and `to_json` are
/// derived from it.
namespace heddle::config {

enum class Kind : std::uint8_t { group, choice, boolean, integer, number, size, path, grid };

/// An option's value between file and Config. monostate: `auto` or left out; choices by name, sizes
/// in bytes.
using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string, Grid>;

/// Use of a path; conflicting uses of one file are reported.
enum class FileUse : std::uint8_t { none, read, written };

/// One key of the file. `get` and `set` require all groups above the key to be present.
struct Option {
  std::string_view path;  ///< dotted
  Kind kind = Kind::group;
  std::string_view help;  ///< one sentence without a full stop

  bool automatic = false;  ///< accepts `auto`
  bool nullable = false;   ///< accepts `null`: left out
  bool required = false;   ///< must be given where it applies

  NameList choices{};                ///< choice: the words
  std::string_view if_true{};        ///< choice: what `true` stands for, if it is accepted
  std::string_view if_false{};       ///< likewise
  std::int64_t integer_min = 0;      ///< integer, size
  std::int64_t integer_max = 0;      ///< integer, size
  double number_min = 0;             ///< number
  double number_max = 0;             ///< number; infinity: no limit
  bool above_min = false;            ///< number: excludes the minimum
  NameList extensions{};             ///< path: allowed extensions, empty: any
  FileUse file_use = FileUse::none;  ///< path
  std::uint32_t kinds =
      0;  ///< bit set of the values of `generate` that the option goes with; 0: all
  std::string_view default_note{};  ///< default in words, where it is not a plain value

  Value (*get)(const Config&) = nullptr;         ///< leaf
  void (*set)(Config&, const Value&) = nullptr;  ///< leaf
  bool (*present)(const Config&) = nullptr;      ///< group
  void (*create)(Config&) = nullptr;             ///< group: creates it with defaults

  [[nodiscard]] bool is_group() const { return kind == Kind::group; }
};

/// All options, groups before their members, in the order of the documentation.
[[nodiscard]] std::span<const Option> options();

/// The option of a dotted path, or null.
[[nodiscard]] const Option* find_option(std::string_view path);

/// "problem.matrix" of "problem.matrix.file"; empty for a key of the top level.
[[nodiscard]] std::string_view parent_of(std::string_view path);

/// "file" of "problem.matrix.file".
[[nodiscard]] std::string_view leaf_of(std::string_view path);

/// JSON pointer in to_json(): "/problem/matrix/file" of "problem.matrix.file".
[[nodiscard]] std::string json_path(std::string_view path);

/// What the option accepts: "auto | integer >= 1".
[[nodiscard]] std::string type_text(const Option& option);

/// The values of `generate` that the option goes with: "spd, kriging"; "any" for all; empty if it
/// does not depend on `generate`.
[[nodiscard]] std::string kinds_text(const Option& option);

/// A Config with every group present and all defaults.
[[nodiscard]] Config full_defaults();

}  // namespace heddle::config
