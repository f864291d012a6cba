#include "apps/help_format.hpp"

#include <fmt/format.h>
#include <string>
#include <string_view>

namespace heddle {
namespace {

constexpr std::size_t name_width = 28;
constexpr std::size_t text_width = 100 - name_width;

/// Wraps between words; CLI11 indents continuation lines.
std::string wrapped(std::string_view text) {
  std::string lines;
  while (text.size() > text_width) {
    const auto space = text.rfind(' ', text_width);
    if (space == std::string_view::npos) break;
    lines += fmt::format("{}\n", text.substr(0, space));
    text.remove_prefix(space + 1);
  }
  return lines += text;
}

}  // namespace

HelpFormat::HelpFormat() {
  label("Positionals", "Arguments");
  label("SUBCOMMAND", "COMMAND");
  column_width(name_width);
}

std::string HelpFormat::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_size() == 0) return {};
  // CLI11 appends the validator after a colon.
  std::string type = option->get_type_name();
  type = type.substr(0, type.find(':'));
  if (type == "INT" || type == "UINT" || type == "FLOAT") type = "NUMBER";
  const bool is_repeatable = option->get_expected_max() == CLI::detail::expected_max_vector_size;
  return fmt::format(" {}{}", type, is_repeatable ? "..." : "");
}

std::string HelpFormat::make_option_desc(const CLI::Option* option) const {
  std::string text = option->get_description();
  if (!option->get_default_str().empty()) text += fmt::format(" [{}]", option->get_default_str());
  if (option->get_required() && !option->get_positional()) text += " (required)";
  return wrapped(text);
}

}  // namespace heddle
