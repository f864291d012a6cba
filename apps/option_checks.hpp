#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>

/// Validators of command-line options, with error texts as in configurations: expected and found.
namespace heddle::option_checks {

constexpr std::int64_t any_integer = std::numeric_limits<std::int64_t>::max();
constexpr double any_number = std::numeric_limits<double>::infinity();

/// A whole number.
[[nodiscard]] CLI::Validator whole(std::int64_t min, std::int64_t max = any_integer);

/// A finite number.
[[nodiscard]] CLI::Validator number(double min = -any_number, double max = any_number);

/// An output file for a matrix in NumPy's format.
[[nodiscard]] CLI::Validator written_matrix();

/// Any other output file or folder.
[[nodiscard]] CLI::Validator written();

}  // namespace heddle::option_checks
