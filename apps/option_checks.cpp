#include "apps/option_checks.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <fmt/core.h>
#include <string>
#include <string_view>
#include <system_error>

#include "base/real_text.hpp"
#include "config/path_rules.hpp"
#include "config/tree.hpp"

namespace heddle::option_checks {
namespace {

/// A validator without a name, which --help would show.
template <class Trouble>
CLI::Validator validator(const Trouble& trouble) {
  return CLI::Validator([trouble](std::string& text) { return trouble(text); }, "");
}

std::string found(std::string_view text) {
  return text.empty() ? std::string("; found nothing")
                      : fmt::format("; found '{}'", config::shown(text));
}

/// "at least 1", "from 1 to 64".
template <class Number>
std::string range_text(Number min, Number max, Number any) {
  if (max == any) return fmt::format("at least {}", min);
  return fmt::format("from {} to {}", min, max);
}

}  // namespace

CLI::Validator whole(std::int64_t min, std::int64_t max) {
  return validator([min, max](const std::string& text) -> std::string {
    std::string_view digits = text;
    if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
    std::int64_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value);
    if (stop != end || error == std::errc::invalid_argument) {
      return fmt::format("expected a whole number, {}{}", range_text(min, max, any_integer),
                         found(text));
    }
    const bool is_beyond = error == std::errc::result_out_of_range;
    if (is_beyond ? text.starts_with('-') : value < min) {
      return fmt::format("expected at least {}{}", min, found(text));
    }
    if (is_beyond || value > max) return fmt::format("expected at most {}{}", max, found(text));
    return {};
  });
}

CLI::Validator number(double min, double max) {
  return validator([min, max](const std::string& text) -> std::string {
    const RealText real = read_real(text);
    if (real.state == RealText::State::too_large || real.state == RealText::State::too_small) {
      return fmt::format("expected a number{}, which is too {} for a double", found(text),
                         real.state == RealText::State::too_large ? "large" : "small");
    }
    if (real.state == RealText::State::no_number || !std::isfinite(real.value)) {
      return fmt::format("expected a number{}", found(text));
    }
    if (real.value >= min && real.value <= max) return {};
    return fmt::format("expected a number {}{}", range_text(min, max, any_number), found(text));
  });
}

CLI::Validator written_matrix() {
  return validator([](const std::string& text) {
    static constexpr std::array<std::string_view, 1> endings{".npy"};
    if (text == "-") return std::string();  // FileUses refuses it with a better message
    return config::path_trouble(text, endings, config::FileUse::written);
  });
}

CLI::Validator written() {
  return validator([](const std::string& text) {
    return config::path_trouble(text, {}, config::FileUse::written);
  });
}

}  // namespace heddle::option_checks
