#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "config/config.hpp"

/// The one table of options. Checks, defaults, `--set`, help text, JSON Schema and `to_json` read
/// it and nothing else knows a key.
namespace heddle::config {

enum class Kind : std::uint8_t { group, choice, boolean, integer, number, size, path, grid };

/// A value on its way between a file and a Config. monostate: `auto`, or left out. Choices are
/// their names, sizes are bytes.
using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string, Grid>;

/// What a path is used for; two uses of one file are checked against each other.
enum class FileUse : std::uint8_t { none, read, written };

/// A key of the file.
///
/// `get` and `set` may only be called when all groups above the key are present in the Config.
struct Option {
  std::string_view path;  ///< dotted
  Kind kind = Kind::group;
  std::string_view help;  ///< one sentence without a full stop

  bool automatic = false;  ///< accepts `auto`
  bool nullable = false;   ///< accepts `null`, which means left out
  bool required = false;   ///< must be given where it applies

  NameList choices{};                ///< choice: the words
  std::int64_t integer_min = 0;      ///< integer, size
  std::int64_t integer_max = 0;      ///< integer, size
  double number_min = 0;             ///< number
  double number_max = 0;             ///< number; infinity: any finite one
  bool above_min = false;            ///< number: the minimum itself is refused
  NameList extensions{};             ///< path: endings, empty: any
  FileUse file_use = FileUse::none;  ///< path
  std::uint32_t kinds = 0;           ///< goes only with these values of `generate` beside
                                     ///< it, one bit each; 0: goes with everything
  std::string_view default_note{};   ///< the default in words where it is no plain value

  Value (*get)(const Config&) = nullptr;         ///< leaf
  void (*set)(Config&, const Value&) = nullptr;  ///< leaf
  bool (*present)(const Config&) = nullptr;      ///< group
  void (*create)(Config&) = nullptr;             ///< group: makes it present, with defaults

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

/// Where to_json() has it: "/problem/matrix/file" of "problem.matrix.file".
[[nodiscard]] std::string json_path(std::string_view path);

/// What the option accepts: "auto | integer >= 1".
[[nodiscard]] std::string type_text(const Option& option);

/// The words of `generate` that the option goes with: "spd, kriging"; "any" when all do; empty when
/// it goes without `generate` too.
[[nodiscard]] std::string kinds_text(const Option& option);

/// A Config with every group present and every default in place.
[[nodiscard]] Config full_defaults();

}  // namespace heddle::config
