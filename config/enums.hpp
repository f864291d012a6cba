#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

/// The choices of the configuration. An enumerator's name is the word in the file; `names_of` lists
/// them in the same order.
namespace heddle::config {

enum class Factorization : std::uint8_t { cholesky, qr };
enum class MatrixKind : std::uint8_t {
  spd,
  random,
  kriging,
  lehmer,
  identity,
  conditioned,
  graded,
  dependent,
  polynomial
};
enum class RhsKind : std::uint8_t { random };
enum class Tree : std::uint8_t { flat, binomial };
enum class Hierarchy : std::uint8_t { off, on };
enum class DeviceBackend : std::uint8_t { none, cuda, emulated };
/// Runs accept `program` and `path`; simulations accept all, for comparison.
enum class Priorities : std::uint8_t { program, fifo, reverse, random, path };
enum class Placement : std::uint8_t { fixed, dynamic };  ///< `fixed` is "static", a keyword of C++
enum class Wait : std::uint8_t { adaptive, spin, park };
enum class MessagePath : std::uint8_t { message, shared, get, put, ring };
enum class LogLevel : std::uint8_t { off, error, warning, info, debug, trace };

namespace detail {
using Names = std::string_view;
inline constexpr std::array<Names, 2> factorizations{"cholesky", "qr"};
inline constexpr std::array<Names, 9> matrix_kinds{"spd",    "random",    "kriging",
                                                   "lehmer", "identity",  "conditioned",
                                                   "graded", "dependent", "polynomial"};
inline constexpr std::array<Names, 1> rhs_kinds{"random"};
inline constexpr std::array<Names, 2> trees{"flat", "binomial"};
inline constexpr std::array<Names, 2> hierarchies{"off", "on"};
inline constexpr std::array<Names, 3> device_backends{"none", "cuda", "emulated"};
inline constexpr std::array<Names, 5> priorities{"program", "fifo", "reverse", "random", "path"};
inline constexpr std::array<Names, 2> placements{"static", "dynamic"};
inline constexpr std::array<Names, 3> waits{"adaptive", "spin", "park"};
inline constexpr std::array<Names, 5> message_paths{"message", "shared", "get", "put", "ring"};
inline constexpr std::array<Names, 6> log_levels{"off",  "error", "warning",
                                                 "info", "debug", "trace"};
}  // namespace detail

using NameList = std::span<const std::string_view>;

constexpr NameList names_of(Factorization) {
  return detail::factorizations;
}
constexpr NameList names_of(MatrixKind) {
  return detail::matrix_kinds;
}
constexpr NameList names_of(RhsKind) {
  return detail::rhs_kinds;
}
constexpr NameList names_of(Tree) {
  return detail::trees;
}
constexpr NameList names_of(Hierarchy) {
  return detail::hierarchies;
}
constexpr NameList names_of(DeviceBackend) {
  return detail::device_backends;
}
constexpr NameList names_of(Priorities) {
  return detail::priorities;
}
constexpr NameList names_of(Placement) {
  return detail::placements;
}
constexpr NameList names_of(Wait) {
  return detail::waits;
}
constexpr NameList names_of(MessagePath) {
  return detail::message_paths;
}
constexpr NameList names_of(LogLevel) {
  return detail::log_levels;
}

/// The word for `value` in a file.
template <class Enum>
[[nodiscard]] constexpr std::string_view name_of(Enum value) {
  return names_of(value)[static_cast<std::size_t>(value)];
}

}  // namespace heddle::config
