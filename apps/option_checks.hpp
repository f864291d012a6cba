#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>

/// What options of the command line take, refused in the words in which configurations refuse: with
/// what was expected and what was found.
namespace heddle::option_checks {

constexpr std::int64_t any_integer = std::numeric_limits<std::int64_t>::max();
constexpr double any_number = std::numeric_limits<double>::infinity();

/// A whole number.
[[nodiscard]] CLI::Validator whole(std::int64_t min, std::int64_t max = any_integer);

/// A finite number.
[[nodiscard]] CLI::Validator number(double min = -any_number, double max = any_number);

/// A file for a matrix, which is written in NumPy's format.
[[nodiscard]] CLI::Validator written_matrix();

/// Any other file or folder that is written.
[[nodiscard]] CLI::Validator written();

}  // namespace heddle::option_checks
