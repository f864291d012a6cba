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

using NameList = std::span<const std::string_view>;

namespace detail {
template <class Enum>
inline constexpr std::array<std::string_view, 0> words{};
template <>
inline constexpr std::array<std::string_view, 2> words<Factorization>{"cholesky", "qr"};
template <>
inline constexpr std::array<std::string_view, 9> words<MatrixKind>{
    "spd",         "random", "kriging",   "lehmer",    "identity",
    "conditioned", "graded", "dependent", "polynomial"};
template <>
inline constexpr std::array<std::string_view, 1> words<RhsKind>{"random"};
template <>
inline constexpr std::array<std::string_view, 2> words<Tree>{"flat", "binomial"};
template <>
inline constexpr std::array<std::string_view, 2> words<Hierarchy>{"off", "on"};
template <>
inline constexpr std::array<std::string_view, 3> words<DeviceBackend>{"none", "cuda", "emulated"};
template <>
inline constexpr std::array<std::string_view, 5> words<Priorities>{"program", "fifo", "reverse",
                                                                   "random", "path"};
template <>
inline constexpr std::array<std::string_view, 2> words<Placement>{"static", "dynamic"};
template <>
inline constexpr std::array<std::string_view, 3> words<Wait>{"adaptive", "spin", "park"};
template <>
inline constexpr std::array<std::string_view, 5> words<MessagePath>{"message", "shared", "get",
                                                                    "put", "ring"};
template <>
inline constexpr std::array<std::string_view, 6> words<LogLevel>{"off",  "error", "warning",
                                                                 "info", "debug", "trace"};
}  // namespace detail

template <class Enum>
[[nodiscard]] constexpr NameList names_of(Enum) {
  static_assert(!detail::words<Enum>.empty(), "no words are listed for this enumeration");
  return detail::words<Enum>;
}

/// The word for `value` in a file.
template <class Enum>
[[nodiscard]] constexpr std::string_view name_of(Enum value) {
  return names_of(value)[static_cast<std::size_t>(value)];
}

}  // namespace heddle::config
