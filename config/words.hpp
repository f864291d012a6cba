#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "config/config.hpp"
#include "config/problem.hpp"

/// The words of the configuration's choices. An enumerator's name is the word in the file;
/// `names_of` lists them in the same order.
namespace heddle::config {

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
inline constexpr std::array<std::string_view, 3> words<Verify>{"auto", "full", "none"};
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
inline constexpr std::array<std::string_view, 2> words<ReaderWay>{"home", "tree"};
template <>
inline constexpr std::array<std::string_view, 2> words<ReductionOrder>{"ranks", "places"};
template <>
inline constexpr std::array<std::string_view, 10> words<CollectiveAlgorithm>{
    "flat",           "chain",    "binary",  "binomial", "split_binary", "reduce_broadcast",
    "scatter_gather", "pairwise", "leaders", "bruck"};
template <>
inline constexpr std::array<std::string_view, 4> words<BufferCopies>{"static", "dynamic", "mapped",
                                                                     "staged"};
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
