#include "tests/config/schema_check.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <stdexcept>

namespace heddle::test {
namespace {

using nlohmann::json;

bool has_type(const json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  throw std::logic_error("unknown type " + type);
}

bool has_a_type(const json& value, const json& types) {
  if (types.is_string()) return has_type(value, types);
  return std::any_of(types.begin(), types.end(),
                     [&](const json& type) { return has_type(value, type); });
}

std::size_t valid_count(const json& schemas, const json& value) {
  return static_cast<std::size_t>(std::count_if(
      schemas.begin(), schemas.end(),
      [&](const json& schema) { return schema_violation(schema, value, "").empty(); }));
}

bool is_annotation(const std::string& keyword) {
  return keyword == "$schema" || keyword == "title" || keyword == "description" ||
         keyword == "default";
}

/// Keywords about one scalar or the value as a whole.
bool holds(const std::string& keyword, const json& rule, const json& value) {
  if (keyword == "type") return has_a_type(value, rule);
  if (keyword == "const") return value == rule;
  if (keyword == "enum") return std::find(rule.begin(), rule.end(), value) != rule.end();
  if (keyword == "anyOf") return valid_count(rule, value) > 0;
  if (keyword == "oneOf") return valid_count(rule, value) == 1;
  if (keyword == "minimum") return !value.is_number() || value >= rule;
  if (keyword == "maximum") return !value.is_number() || value <= rule;
  if (keyword == "exclusiveMinimum") return !value.is_number() || value > rule;
  if (keyword == "minItems") return !value.is_array() || value.size() >= rule;
  if (keyword == "maxItems") return !value.is_array() || value.size() <= rule;
  if (keyword == "minLength") return !value.is_string() || value.get<std::string>().size() >= rule;
  if (keyword == "pattern") {
    return !value.is_string() ||
           std::regex_search(value.get<std::string>(), std::regex(rule.get<std::string>()));
  }
  if (keyword == "required") {
    return !value.is_object() || std::all_of(rule.begin(), rule.end(), [&](const json& name) {
      return value.contains(name.get<std::string>());
    });
  }
  throw std::logic_error("unknown keyword " + keyword);
}

std::string member_violation(const json& schema, const json& value, const std::string& place) {
  const json properties = schema.value("properties", json::object());
  for (const auto& [name, member] : value.items()) {
    const std::string member_place = place + "/" + name;
    if (!properties.contains(name)) {
      if (!schema.value("additionalProperties", true)) return member_place + ": not a property";
      continue;
    }
    const std::string violation = schema_violation(properties[name], member, member_place);
    if (!violation.empty()) return violation;
  }
  return {};
}

}  // namespace

std::string schema_violation(const json& schema, const json& value, const std::string& place) {
  for (const auto& [keyword, rule] : schema.items()) {
    if (is_annotation(keyword) || keyword == "properties" || keyword == "additionalProperties" ||
        keyword == "items") {
      continue;
    }
    if (!holds(keyword, rule, value)) return place + ": " + keyword + " refuses " + value.dump();
  }
  if (value.is_object()) return member_violation(schema, value, place);
  if (value.is_array() && schema.contains("items")) {
    for (const json& item : value) {
      const std::string violation = schema_violation(schema["items"], item, place + "/[]");
      if (!violation.empty()) return violation;
    }
  }
  return {};
}

}  // namespace heddle::test
