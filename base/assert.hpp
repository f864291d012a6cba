#pragma once

#include <string_view>

/// Assertions in three tiers. A failure prints the expression, the place and the operands given as
/// name/value pairs, then aborts: a broken invariant is a defect, never an input error.
///
///   HEDDLE_CHECK      always on: cheap checks of contracts
///   HEDDLE_DEBUG      on unless NDEBUG is defined: checks on hot paths
///   HEDDLE_EXPENSIVE  on when HEDDLE_EXPENSIVE_CHECKS is defined (tests): whole structures
#include <fmt/core.h>

namespace heddle::detail {

[[noreturn]] void assertion_failed(const char* expression, const char* file, int line,
                                   std::string_view message);

}  // namespace heddle::detail

#define HEDDLE_CHECK(expression, ...)                                     \
  do {                                                                    \
    if (!(expression)) [[unlikely]]                                       \
      ::heddle::detail::assertion_failed(#expression, __FILE__, __LINE__, \
                                         ::fmt::format("" __VA_ARGS__));  \
  } while (false)

#define HEDDLE_CHECK_OFF(expression)          \
  do {                                        \
    if (false) static_cast<void>(expression); \
  } while (false)

#ifndef NDEBUG
#define HEDDLE_DEBUG(expression, ...) HEDDLE_CHECK(expression, __VA_ARGS__)
#else
#define HEDDLE_DEBUG(expression, ...) HEDDLE_CHECK_OFF(expression)
#endif

#ifdef HEDDLE_EXPENSIVE_CHECKS
#define HEDDLE_EXPENSIVE(expression, ...) HEDDLE_CHECK(expression, __VA_ARGS__)
#else
#define HEDDLE_EXPENSIVE(expression, ...) HEDDLE_CHECK_OFF(expression)
#endif
