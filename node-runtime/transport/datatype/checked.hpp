#pragma once

#include <cstdint>

/// Arithmetic on sizes and offsets of datatypes, whose operands come from users: what does not fit
/// 64 bits throws Error(usage) with the operands.
namespace heddle::datatype {

[[noreturn]] void overflowed(std::int64_t left, char operation, std::int64_t right);

[[nodiscard]] inline std::int64_t checked_sum(std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(left, right, &result)) overflowed(left, '+', right);
  return result;
}

[[nodiscard]] inline std::int64_t checked_difference(std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  if (__builtin_sub_overflow(left, right, &result)) overflowed(left, '-', right);
  return result;
}

[[nodiscard]] inline std::int64_t checked_product(std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(left, right, &result)) overflowed(left, '*', right);
  return result;
}

}  // namespace heddle::datatype
