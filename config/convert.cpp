#include "config/convert.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <fmt/core.h>

#include "base/assert.hpp"
#include "base/nearest.hpp"
#include "base/real_text.hpp"
#include "base/units.hpp"
#include "config/path_rules.hpp"

namespace heddle::config {
namespace {

constexpr std::int64_t grid_nodes_max = 1'000'000;

bool is_scalar(const TreeNode& node, ScalarType type) {
  return node.type == TreeNode::Type::scalar && scalar_type(node) == type;
}

std::string_view without_plus(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  return text;
}

std::optional<std::int64_t> integer_of(const TreeNode& node) {
  if (!is_scalar(node, ScalarType::integer)) return std::nullopt;
  const std::string_view text = without_plus(node.text);
  std::int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{}) return std::nullopt;
  return value;
}

/// Sign of an integer outside the range of both 64-bit types.
enum class Beyond : std::uint8_t { none, below, above };
Beyond beyond_64_bits(const TreeNode& node) {
  if (!is_scalar(node, ScalarType::integer) || integer_of(node)) return Beyond::none;
  return node.text.starts_with('-') ? Beyond::below : Beyond::above;
}

bool is_number(const TreeNode& node) {
  return is_scalar(node, ScalarType::integer) || is_scalar(node, ScalarType::number);
}

std::optional<double> number_of(const TreeNode& node) {
  if (!is_number(node)) return std::nullopt;
  const RealText real = read_real(node.text);
  if (real.state != RealText::State::fits || !std::isfinite(real.value)) return std::nullopt;
  return real.value;
}

std::optional<Value> choice_of(const Option& option, const TreeNode& node, Refusal& refusal) {
  if (node.type != TreeNode::Type::scalar) return std::nullopt;
  const auto found = std::find(option.choices.begin(), option.choices.end(), node.text);
  if (found != option.choices.end()) return Value{node.text};
  if (is_scalar(node, ScalarType::boolean) && !option.if_true.empty()) {
    const bool is_true = node.text[0] == 't' || node.text[0] == 'T';
    return Value{std::string(is_true ? option.if_true : option.if_false)};
  }
  refusal.nearest = nearest(node.text, option.choices);
  return std::nullopt;
}

std::optional<Value> boolean_of(const TreeNode& node, Refusal& refusal) {
  if (is_scalar(node, ScalarType::boolean)) {
    return Value{node.text[0] == 't' || node.text[0] == 'T'};
  }
  // Booleans of YAML 1.1 and other formats.
  for (const std::string_view word : {"yes", "Yes", "on", "On", "y", "1"}) {
    if (node.text == word) refusal.nearest = "true";
  }
  for (const std::string_view word : {"no", "No", "off", "Off", "n", "0"}) {
    if (node.text == word) refusal.nearest = "false";
  }
  return std::nullopt;
}

std::optional<Value> bounded_integer(const Option& option, const TreeNode& node, Refusal& refusal) {
  const auto in_range = [&](std::int64_t value) {
    return value >= option.integer_min && value <= option.integer_max;
  };
  const auto value = integer_of(node);
  if (value && in_range(*value)) return Value{*value};
  const Beyond beyond = beyond_64_bits(node);
  if (beyond == Beyond::above || (value && *value > option.integer_max)) {
    refusal.message =
        fmt::format("expected at most {}; found {}", option.integer_max, shown(node.text));
  }
  if (value || beyond != Beyond::none) return std::nullopt;
  // 1e4 and 512.0 are real numbers in YAML, but the integer that they mean is clear.
  const auto number = number_of(node);
  if (number && *number == std::floor(*number) && std::abs(*number) < 1e15 &&
      in_range(static_cast<std::int64_t>(*number))) {
    refusal.nearest = fmt::format("{}", static_cast<std::int64_t>(*number));
  }
  return std::nullopt;
}

/// Error text for a number outside the range of a double; else empty.
std::string range_trouble(const Option& option, const TreeNode& node) {
  if (!is_number(node)) return {};
  const RealText::State state = read_real(node.text).state;
  const bool is_small = state == RealText::State::too_small;
  if (!is_small && state != RealText::State::too_large) return {};
  return fmt::format("expected {}; found {}, which is too {} for a double: {}", type_text(option),
                     shown(node.text), is_small ? "small" : "large",
                     is_small ? "the least above 0 is 4.9e-324" : "the largest is 1.79e+308");
}

std::optional<Value> bounded_number(const Option& option, const TreeNode& node, Refusal& refusal) {
  const auto value = number_of(node);
  refusal.message = range_trouble(option, node);
  if (!value || *value < option.number_min || *value > option.number_max) return std::nullopt;
  if (option.above_min && *value == option.number_min) return std::nullopt;
  return Value{*value};
}

std::optional<Value> size_of(const Option& option, const TreeNode& node, Refusal& refusal) {
  if (node.type != TreeNode::Type::scalar) return std::nullopt;
  const auto bytes = size_from(node.text);
  if (!bytes) return std::nullopt;  // the refusal shows the text and the format
  if (*bytes >= static_cast<double>(option.integer_min) &&
      *bytes <= static_cast<double>(option.integer_max)) {
    return Value{static_cast<std::int64_t>(*bytes)};
  }
  const bool is_small = *bytes < static_cast<double>(option.integer_min);
  const std::int64_t bound = is_small ? option.integer_min : option.integer_max;
  refusal.message = fmt::format("expected at {} {}; found {}", is_small ? "least" : "most",
                                format_bytes(static_cast<std::uint64_t>(bound)), shown(node.text));
  return std::nullopt;
}

std::optional<Value> path_of(const Option& option, const TreeNode& node, Refusal& refusal) {
  if (!is_scalar(node, ScalarType::text) || node.text.empty()) return std::nullopt;
  const std::string trouble = path_trouble(node.text, option.extensions, option.file_use);
  if (trouble.empty()) return Value{node.text};
  // The description of the option's type already lists its file extensions.
  const bool is_ending = path_trouble(node.text, {}, FileUse::none).empty();
  if (!is_ending || option.extensions.empty()) refusal.message = trouble;
  return std::nullopt;
}

std::optional<Value> grid_of(const TreeNode& node, Refusal& refusal) {
  if (node.type == TreeNode::Type::scalar) {  // "2x3"
    const char* const end = node.text.data() + node.text.size();
    Grid grid;
    const auto rows = std::from_chars(node.text.data(), end, grid.rows);
    if (rows.ec == std::errc{} && rows.ptr != end && *rows.ptr == 'x') {
      const auto columns = std::from_chars(rows.ptr + 1, end, grid.columns);
      if (columns.ec == std::errc{} && columns.ptr == end) {
        refusal.nearest = fmt::format("[{}, {}]", grid.rows, grid.columns);
      }
    }
  }
  if (node.type != TreeNode::Type::sequence || node.items.size() != 2) return std::nullopt;
  Grid grid;
  for (const TreeNode& item : node.items) {
    const auto extent = integer_of(item);
    if (!extent || *extent < 1 || *extent > grid_nodes_max) {
      refusal.position = item.position;
      refusal.message = fmt::format("expected two integers 1..{} in [rows, columns]; found {}",
                                    grid_nodes_max, describe(item));
      return std::nullopt;
    }
    (&item == &node.items.front() ? grid.rows : grid.columns) = static_cast<std::int32_t>(*extent);
  }
  if (const std::int64_t nodes = std::int64_t{grid.rows} * grid.columns; nodes > grid_nodes_max) {
    refusal.message =
        fmt::format("expected at most {} nodes, rows x columns; found {}", grid_nodes_max, nodes);
    return std::nullopt;
  }
  return Value{grid};
}

std::optional<Value> convert_by_kind(const Option& option, const TreeNode& node, Refusal& refusal) {
  switch (option.kind) {
    case Kind::choice:
      return choice_of(option, node, refusal);
    case Kind::boolean:
      return boolean_of(node, refusal);
    case Kind::integer:
      return bounded_integer(option, node, refusal);
    case Kind::number:
      return bounded_number(option, node, refusal);
    case Kind::size:
      return size_of(option, node, refusal);
    case Kind::path:
      return path_of(option, node, refusal);
    case Kind::grid:
      return grid_of(node, refusal);
    case Kind::group:
      break;
  }
  HEDDLE_CHECK(false, "{} is a group, not a leaf", option.path);
  return std::nullopt;
}

}  // namespace

std::optional<Value> convert(const Option& option, const TreeNode& node, Refusal& refusal) {
  if (option.nullable && node.type == TreeNode::Type::null) return Value{};
  const bool is_auto = node.type == TreeNode::Type::scalar && node.text == "auto";
  if (option.automatic && is_auto) return Value{};

  refusal = {node.position, {}, {}};
  auto value = convert_by_kind(option, node, refusal);
  if (value) return value;
  if (refusal.message.empty()) {
    refusal.message = fmt::format("expected {}; found {}", type_text(option), describe(node));
  }
  if (refusal.nearest.empty() && option.automatic && node.type == TreeNode::Type::scalar) {
    static constexpr std::string_view automatic = "auto";
    refusal.nearest = nearest(node.text, std::span(&automatic, 1));
  }
  if (refusal.nearest.empty() && node.quoted && node.type == TreeNode::Type::scalar) {
    TreeNode plain = node;
    plain.quoted = false;
    Refusal ignored;
    if (convert_by_kind(option, plain, ignored)) refusal.message += "; write it without quotes";
  }
  return std::nullopt;
}

}  // namespace heddle::config
