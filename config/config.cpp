#include "config/config.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fmt/core.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <sys/stat.h>
#include <utility>
#include <variant>

#include "config/config_error.hpp"
#include "config/effective.hpp"
#include "config/loader.hpp"
#include "config/options.hpp"
#include "config/problem.hpp"

namespace heddle {

std::vector<std::string> config::keys_left_open(const Layout& layout) {
  std::vector<std::string> keys;
  const auto look = [&](const auto& value, const char* key) {
    if (!value) keys.emplace_back(key);
  };
  look(layout.grid, "grid");
  look(layout.tile, "tile");
  look(layout.strip, "strip");
  look(layout.small, "small");
  look(layout.hierarchy, "hierarchy");
  look(layout.inner, "inner");
  look(layout.virtual_tiles, "virtual");
  look(layout.tree, "tree");
  return keys;
}

namespace config {

OptionalProblem::OptionalProblem() = default;
OptionalProblem::OptionalProblem(const OptionalProblem& other)
    : value_(other ? std::make_unique<Problem>(*other) : nullptr) {}
OptionalProblem::OptionalProblem(OptionalProblem&& other) noexcept = default;
OptionalProblem& OptionalProblem::operator=(OptionalProblem other) noexcept {
  value_ = std::move(other.value_);
  return *this;
}
OptionalProblem::~OptionalProblem() = default;

void OptionalProblem::emplace() {
  value_ = std::make_unique<Problem>();
}
void OptionalProblem::reset() {
  value_.reset();
}

}  // namespace config

namespace {

using nlohmann::json;

constexpr std::size_t file_size_max =
    std::size_t{256} * 1024;  // a full configuration has about 2 KiB

std::string joined_lines(const std::vector<config::Diagnostic>& diagnostics) {
  std::string text;
  for (const config::Diagnostic& diagnostic : diagnostics) {
    if (!text.empty()) text += '\n';
    text += diagnostic.to_string();
  }
  return text;
}

[[noreturn]] void refuse_file(const std::string& path, std::string message) {
  throw ConfigError({{path, 0, 0, {}, std::move(message), {}}});
}

std::string read_file(const std::string& path) {
  struct Close {
    void operator()(std::FILE* file) const { static_cast<void>(std::fclose(file)); }
  };
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    refuse_file(path, fmt::format("cannot be read: {}", std::strerror(errno)));
  }
  if (S_ISDIR(status.st_mode)) refuse_file(path, "is a directory; expected a YAML file");
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  if (!file) refuse_file(path, fmt::format("cannot be opened: {}", std::strerror(errno)));
  std::string text(file_size_max + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) {
    refuse_file(path, fmt::format("cannot be read: {}", std::strerror(errno)));
  }
  return text;
}

json value_to_json(const config::Option& option, const config::Value& value) {
  struct Visitor {
    const config::Option& option;
    json operator()(std::monostate) const { return option.automatic ? json("auto") : json(); }
    json operator()(bool flag) const { return flag; }
    json operator()(std::int64_t integer) const { return integer; }
    json operator()(double number) const { return number; }
    json operator()(const std::string& text) const { return text; }
    json operator()(const config::Grid& grid) const { return {grid.rows, grid.columns}; }
  };
  return std::visit(Visitor{option}, value);
}

/// False for an option of another kind of generated matrix, or if the matrix comes from a file.
bool applies(const config::Option& option, const Config& config) {
  if (option.kinds == 0) return true;
  const config::Option* generate =
      config::find_option(fmt::format("{}.generate", config::parent_of(option.path)));
  const config::Value value = generate->get(config);
  const auto* kind = std::get_if<std::string>(&value);
  for (std::size_t i = 0; kind != nullptr && i < generate->choices.size(); ++i) {
    if (generate->choices[i] == *kind) return (option.kinds >> i & 1U) != 0;
  }
  return false;
}

}  // namespace

std::string config::Diagnostic::to_string() const {
  std::string text = source;
  if (line > 0) text += fmt::format(":{}:{}", line, column);
  // "--set 1: layout.tile=0" already names the path.
  const bool named = line == 0 && source.find(fmt::format(": {}=", path)) != std::string::npos;
  if (!path.empty() && !named) text += fmt::format(": {}", path);
  text += fmt::format(": {}", message);
  if (!nearest.empty()) text += fmt::format("; did you mean '{}'?", nearest);
  return text;
}

ConfigError::ConfigError(std::vector<config::Diagnostic> diagnostics)
    : Error(ErrorCode::usage, joined_lines(diagnostics)), diagnostics_(std::move(diagnostics)) {}

Config Config::from_file(const std::string& path, std::span<const std::string> overrides) {
  return from_text(read_file(path), path, overrides);
}

Config Config::from_text(const std::string& text, const std::string& source_name,
                         std::span<const std::string> overrides) {
  if (text.size() > file_size_max) {
    refuse_file(source_name, fmt::format("is longer than {} KiB; this is no configuration",
                                         file_size_max / 1024));
  }
  return config::load(text, source_name, overrides);
}

const config::Problem& Config::require_problem() const {
  if (problem) return *problem;
  throw ConfigError({{name.empty() ? "configuration" : name,
                      0,
                      0,
                      "problem",
                      "missing; expected a mapping that gives at least the matrix to factorize, "
                      "such as {matrix: {file: k.npy}}",
                      {}}});
}

json to_json(const Config& config) {
  json out = json::object();
  std::string absent;  // absent group with its trailing dot
  for (const config::Option& option : config::options()) {
    if (!absent.empty() && option.path.starts_with(absent)) continue;
    const json::json_pointer pointer(config::json_path(option.path));
    if (option.is_group()) {
      const bool present = option.present(config);
      out[pointer] = present ? json::object() : json();
      if (!present) absent = fmt::format("{}.", option.path);
      continue;
    }
    if (!applies(option, config)) continue;
    json value = value_to_json(option, option.get(config));
    if (value.is_null() && option.path == "problem.matrix.m") {
      value = config.problem->matrix.rows();
    }
    if (value.is_null() && option.path == "problem.matrix.rank") {
      value = config.problem->matrix.independent_columns();
    }
    if (!value.is_null() || option.nullable) out[pointer] = std::move(value);
  }
  return out;
}

std::uint64_t fingerprint(const Config& config) {
  // FNV-1a: the same on every machine; only accidental changes have to be noticed.
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : to_json(config).dump()) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211ULL;
  }
  return hash;
}

}  // namespace heddle
