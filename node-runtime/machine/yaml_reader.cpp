#include "node-runtime/machine/yaml_reader.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "base/printable.hpp"

namespace heddle {

void YamlReader::fail(const YAML::Mark& mark, const std::string& what) const {
  throw Error(ErrorCode::usage, complaint(mark, what));
}

void Complaints::of(const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::usage) throw;
    texts_.emplace_back(error.what());
  }
}

void Complaints::raise() const {
  if (texts_.empty()) return;
  throw Error(ErrorCode::usage, fmt::format("{}", fmt::join(texts_, "\n")));
}

YAML::Node YamlReader::load_file(const std::filesystem::path& path) const {
  std::error_code ignored;
  std::ifstream file(path);
  std::ostringstream text;
  // Not by yaml-cpp: it leaks memory when reading fails.
  if (!std::filesystem::is_regular_file(path, ignored) || !(text << file.rdbuf())) {
    fail(YAML::Mark::null_mark(), "it is missing, empty, or cannot be read");
  }
  return load_text(text.str());
}

YAML::Node YamlReader::load_text(const std::string& text) const {
  try {
    return YAML::Load(text);
  } catch (const YAML::ParserException& error) {
    fail(error.mark, "it is no YAML: " + error.msg);
  }
}

std::string YamlReader::complaint(const YAML::Mark& mark, const std::string& what) const {
  const std::string place = mark.is_null() || places_ == Places::unknown
                                ? source_
                                : fmt::format("{}:{}:{}", source_, mark.line + 1, mark.column + 1);
  return fmt::format("{}: {}{}", printable(place), printable(what), advice_);
}

void YamlReader::expect_map(const YAML::Node& node, const std::string& name,
                            std::initializer_list<std::string_view> keys,
                            const std::vector<std::string>& below) const {
  if (!node.IsMap()) fail(node.Mark(), fmt::format("'{}' must be a map", name));
  std::vector<std::string> complaints;
  std::map<std::string, YAML::Mark> first;
  for (const auto& entry : node) {
    const std::string& key = entry.first.Scalar();
    const auto [known, is_new] = first.try_emplace(key, entry.first.Mark());
    if (!is_new) {
      complaints.push_back(complaint(
          entry.first.Mark(), fmt::format("'{}' has the key '{}' twice; the first is in line {}; "
                                          "keep one",
                                          name, key, known->second.line + 1)));
      continue;
    }
    if (std::ranges::find(keys, std::string_view(key)) != keys.end()) continue;
    std::vector<std::string_view> all(keys);  // those of this map win where both are as near
    for (const std::string_view path : below) all.push_back(path.substr(path.rfind('.') + 1));
    const std::string_view like = nearest(key, all);
    std::vector<std::string> meant;
    if (std::ranges::find(keys, like) != keys.end()) {
      meant.push_back(fmt::format("'{}'", like));
    } else if (!like.empty()) {
      for (const std::string& path : below) {
        if (path.ends_with(fmt::format(".{}", like))) {
          meant.push_back(fmt::format("'{}.{}'", name, path));
        }
      }
    }
    complaints.push_back(complaint(
        entry.first.Mark(),
        fmt::format(
            "'{}' has no key '{}'; expected one of {}{}", name, key, fmt::join(keys, ", "),
            meant.empty() ? "" : fmt::format("; did you mean {}?", fmt::join(meant, " or ")))));
  }
  if (!complaints.empty()) {
    throw Error(ErrorCode::usage, fmt::format("{}", fmt::join(complaints, "\n")));
  }
}

void YamlReader::expect_list(const YAML::Node& node, const std::string& name) const {
  if (!node.IsSequence()) fail(node.Mark(), fmt::format("'{}' must be a list", name));
}

YAML::Node YamlReader::member(const YAML::Node& map, const char* key) const {
  YAML::Node value = map[key];
  if (!value) fail(map.Mark(), fmt::format("the key '{}' is missing", key));
  return value;
}

double YamlReader::positive(const YAML::Node& map, const char* key, const char* expected) const {
  const auto value = scalar<double>(map, key, expected);
  if (!std::isfinite(value) || value <= 0) {
    fail(map[key].Mark(), fmt::format("'{}' must be positive{}", key, found(map[key])));
  }
  return value;
}

std::int64_t YamlReader::whole(const YAML::Node& map, const char* key, std::int64_t least,
                               std::int64_t most) const {
  const YAML::Node at = member(map, key);
  const std::string text = at.IsScalar() ? at.Scalar() : std::string();
  const std::size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  const bool has_digits = text.size() > sign && std::ranges::all_of(text.substr(sign), [](char c) {
                            return c >= '0' && c <= '9';
                          });
  std::int64_t value = 0;
  // More digits than 64 bits hold are a whole number all the same.
  const bool is_beyond = has_digits && !YAML::convert<std::int64_t>::decode(at, value);
  if (!is_beyond) value = scalar<std::int64_t>(map, key, "a whole number");
  if (is_beyond ? text.starts_with('-') : value < least) {
    fail(at.Mark(), fmt::format("'{}' must be at least {}{}", key, least, found(at)));
  }
  if (is_beyond || value > most) {
    fail(at.Mark(), fmt::format("'{}' must be at most {}{}", key, most, found(at)));
  }
  return value;
}

std::string YamlReader::found(const YAML::Node& value) {
  constexpr std::size_t shown_max = 48;
  if (!value.IsScalar()) return value.IsSequence() ? "; found a list" : "; found a map";
  return fmt::format("; found '{}'", printable_start(value.Scalar(), shown_max));
}

}  // namespace heddle
