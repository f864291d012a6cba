#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <yaml-cpp/yaml.h>

namespace heddle {

/// Reads a small YAML file; every complaint names the file and the place in it.
class YamlReader {
 public:
  /// Whether lines and columns mean something to who reads a complaint.
  enum class Places : std::uint8_t { told, unknown };

  /// `source`: "machine file m.yaml", for messages, which end with `advice`.
  explicit YamlReader(std::string source, std::string advice = {}, Places places = Places::told)
      : source_(std::move(source)), advice_(std::move(advice)), places_(places) {}

  /// Throws Error(usage).
  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& what) const;

  [[nodiscard]] YAML::Node load_file(const std::filesystem::path& path) const;
  [[nodiscard]] YAML::Node load_text(const std::string& text) const;

  /// A map that has no other keys than these, each once; a line for each that is wrong. `below`:
  /// paths of keys that its maps have, such as "runtime.wake_us", for whoever writes the last one
  /// alone.
  void expect_map(const YAML::Node& node, const std::string& name,
                  std::initializer_list<std::string_view> keys,
                  const std::vector<std::string>& below = {}) const;
  void expect_list(const YAML::Node& node, const std::string& name) const;

  [[nodiscard]] YAML::Node member(const YAML::Node& map, const char* key) const;

  template <class T>
  [[nodiscard]] T scalar(const YAML::Node& map, const char* key, const char* expected) const {
    const YAML::Node value = member(map, key);
    try {
      if (value.IsScalar()) return value.as<T>();
    } catch (const YAML::Exception&) {
      // Refused below, with its place.
    }
    fail(value.Mark(), std::string("'") + key + "' must be " + expected + found(value));
  }

  /// A finite number greater than 0.
  [[nodiscard]] double positive(const YAML::Node& map, const char* key, const char* expected) const;
  /// A whole number from `least` to `most`.
  [[nodiscard]] std::int64_t whole(
      const YAML::Node& map, const char* key, std::int64_t least,
      std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;

 private:
  /// "; found 'many'" for a complaint about a value.
  [[nodiscard]] static std::string found(const YAML::Node& value);
  [[nodiscard]] std::string complaint(const YAML::Mark& mark, const std::string& what) const;

  std::string source_;
  std::string advice_;
  Places places_ = Places::told;
};

/// What several parts of a file are complained about, all of it at once.
class Complaints {
 public:
  /// Keeps what an Error(usage) of `read` says.
  void of(const std::function<void()>& read);
  /// Throws Error(usage) with a line for each, if there are any.
  void raise() const;

 private:
  std::vector<std::string> texts_;
};

}  // namespace heddle
