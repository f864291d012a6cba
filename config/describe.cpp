#include "config/describe.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "config/options.hpp"

namespace heddle::config {
namespace {

using nlohmann::json;

constexpr std::size_t width_max = 80;
constexpr std::size_t meaning_column = 28;  // where type and meaning of a key begin

constexpr std::string_view intro =
    "Keys of the configuration file (YAML): what each accepts, its [default], its\n"
    "meaning. --set key.path=value replaces one, such as --set layout.tile=512 or\n"
    "--set 'layout.grid=[2, 3]'. Paths are relative to the current directory.\n";

std::string default_text(const Option& option, const Config& defaults) {
  if (option.required) return "required";
  if (!option.default_note.empty()) return std::string(option.default_note);
  struct Visitor {
    const Option& option;
    std::string operator()(std::monostate) const {
      return option.automatic ? "auto" : option.nullable ? "null" : "-";
    }
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(std::int64_t integer) const { return fmt::format("{}", integer); }
    std::string operator()(double number) const { return fmt::format("{:g}", number); }
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(const Grid& grid) const {
      return fmt::format("[{}, {}]", grid.rows, grid.columns);
    }
  };
  return std::visit(Visitor{option}, option.get(defaults));
}

/// Appends `text` to a line of `column` characters, wrapping to the column of the meanings.
void append_wrapped(std::string& out, std::size_t column, std::string_view text) {
  while (column + text.size() > width_max) {
    const auto space = text.rfind(' ', width_max - column);
    if (space == std::string_view::npos) break;
    out += fmt::format("{}\n{:{}}", text.substr(0, text.find_last_not_of(' ', space) + 1), "",
                       meaning_column);
    text.remove_prefix(space + 1);
    column = meaning_column;
  }
  out += fmt::format("{}\n", text);
}

json with_alternative(json schema, json alternative) {
  return {{"anyOf", json::array({std::move(alternative), std::move(schema)})}};
}

/// Regular expression for a path's extensions.
std::string ending_pattern(const Option& option) {
  std::vector<std::string> escaped;
  for (const std::string_view extension : option.extensions) {
    escaped.push_back(fmt::format("\\{}", extension));
  }
  return fmt::format(".({})$", fmt::join(escaped, "|"));
}

json type_schema(const Option& option) {
  json schema;
  switch (option.kind) {
    case Kind::choice:
      schema["enum"] = json::array();
      for (const std::string_view choice : option.choices) schema["enum"].push_back(choice);
      if (!option.if_true.empty()) schema["enum"].insert(schema["enum"].end(), {true, false});
      break;
    case Kind::boolean:
      schema["type"] = "boolean";
      break;
    case Kind::integer:
      schema = {
          {"type", "integer"}, {"minimum", option.integer_min}, {"maximum", option.integer_max}};
      break;
    case Kind::number:
      schema["type"] = "number";
      schema[option.above_min ? "exclusiveMinimum" : "minimum"] = option.number_min;
      if (std::isfinite(option.number_max)) schema["maximum"] = option.number_max;
      break;
    case Kind::size:
      schema["anyOf"] = {
          {{"type", "integer"}, {"minimum", option.integer_min}, {"maximum", option.integer_max}},
          {{"type", "string"}, {"pattern", "^[0-9.]+([eE][+-]?[0-9]+)? *([kKMGT]i?)?B?$"}}};
      break;
    case Kind::path:
      schema = {{"type", "string"}, {"minLength", 1}};
      if (!option.extensions.empty()) schema["pattern"] = ending_pattern(option);
      break;
    case Kind::grid:
      schema = {{"type", "array"},
                {"items", {{"type", "integer"}, {"minimum", 1}}},
                {"minItems", 2},
                {"maxItems", 2}};
      break;
    case Kind::group:
      break;
  }
  return schema;
}

json leaf_schema(const Option& option, const Config& defaults) {
  json schema = type_schema(option);
  if (option.automatic) schema = with_alternative(std::move(schema), {{"const", "auto"}});
  if (option.nullable) schema = with_alternative(std::move(schema), {{"type", "null"}});
  const std::string kinds = kinds_text(option);
  schema["description"] = kinds.empty() ? std::string(option.help)
                                        : fmt::format("{} (with generate: {})", option.help, kinds);
  const Value value = option.get(defaults);
  if (option.required || !option.default_note.empty()) return schema;
  if (const auto* flag = std::get_if<bool>(&value)) schema["default"] = *flag;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) schema["default"] = *integer;
  if (const auto* number = std::get_if<double>(&value)) schema["default"] = *number;
  if (const auto* text = std::get_if<std::string>(&value)) schema["default"] = *text;
  if (std::holds_alternative<std::monostate>(value) && option.automatic) schema["default"] = "auto";
  if (std::holds_alternative<std::monostate>(value) && option.nullable) schema["default"] = nullptr;
  return schema;
}

json group_schema(std::string_view path, const Config& defaults) {
  json schema = {
      {"type", "object"}, {"additionalProperties", false}, {"properties", json::object()}};
  json generate_needs = json::array({"generate"});
  bool is_source = false;
  for (const Option& option : options()) {
    if (parent_of(option.path) != path) continue;
    const std::string name(leaf_of(option.path));
    json& property = schema["properties"][name];
    if (option.is_group()) {
      property = group_schema(option.path, defaults);
      property["description"] = option.help;
      if (option.nullable) property["type"] = {"object", "null"};
      if (option.required) schema["required"].push_back(name);
    } else {
      property = leaf_schema(option, defaults);
      is_source = is_source || name == "generate";
      if (option.required) generate_needs.push_back(name);
    }
  }
  if (is_source) {
    schema["oneOf"] = {{{"type", "object"}, {"required", {"file"}}},
                       {{"type", "object"}, {"required", generate_needs}}};
    const Option* group = find_option(path);
    if (group != nullptr && group->nullable) schema["oneOf"].push_back({{"type", "null"}});
  }
  return schema;
}

}  // namespace

std::string option_help() {
  const Config defaults = full_defaults();
  std::string text(intro);
  for (const Option& option : options()) {
    if (option.is_group()) {
      if (parent_of(option.path).empty()) text += '\n';
      text += fmt::format("{}: {}\n", option.path, option.help);
      continue;
    }
    if (parent_of(option.path).empty()) text += '\n';
    text += fmt::format("  {:<{}}", option.path, meaning_column - 2);
    if (option.path.size() + 2 >= meaning_column) text.append("\n").append(meaning_column, ' ');
    append_wrapped(text, meaning_column,
                   fmt::format("{}  [{}]", type_text(option), default_text(option, defaults)));
    const auto append_line = [&](std::string_view line) {
      text.append(meaning_column, ' ');
      append_wrapped(text, meaning_column, line);
    };
    append_line(option.help);
    if (const std::string kinds = kinds_text(option); !kinds.empty()) {
      append_line(fmt::format("with generate: {}", kinds));
    }
  }
  return text;
}

json json_schema() {
  json schema = group_schema("", full_defaults());
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["title"] = "heddle configuration";
  return schema;
}

}  // namespace heddle::config
