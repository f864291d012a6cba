#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <yaml-cpp/yaml.h>

namespace heddle {

/// Reads one machine file; every complaint names the file and the place in it.
class YamlReader {
 public:
  /// `source` is the file's name, or what stands for it in messages.
  explicit YamlReader(std::string source) : source_(std::move(source)) {}

  /// Throws Error(usage).
  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& what) const;

  [[nodiscard]] YAML::Node load_file(const std::filesystem::path& path) const;
  [[nodiscard]] YAML::Node load_text(const std::string& text) const;

  /// A map that has no other keys than these.
  void expect_map(const YAML::Node& node, const std::string& name,
                  std::initializer_list<std::string_view> keys) const;
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
    fail(value.Mark(), std::string("'") + key + "' must be " + expected);
  }

  /// A finite number greater than 0.
  [[nodiscard]] double positive(const YAML::Node& map, const char* key, const char* expected) const;
  /// A whole number of at least `least`.
  [[nodiscard]] std::int64_t whole(const YAML::Node& map, const char* key,
                                   std::int64_t least) const;

 private:
  std::string source_;
};

}  // namespace heddle
