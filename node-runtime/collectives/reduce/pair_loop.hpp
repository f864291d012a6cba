#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

/// The loop of every operation over two arrays. Inlined, so that it is compiled for the processor
/// of the function around it.
namespace heddle::reduction {

template <class T>
[[gnu::always_inline]] inline T element_at(const void* array, std::int64_t i) {
  T element;
  std::memcpy(&element, static_cast<const std::byte*>(array) + i * std::int64_t{sizeof(T)},
              sizeof(T));
  return element;
}

/// A PairLoop's body. Addresses need no alignment.
template <class T, class Functor>
[[gnu::always_inline]] inline void loop_over_pairs(const Functor& functor, void* output,
                                                   const void* a, const void* b,
                                                   std::int64_t count) {
  // Where the output is an input, each element is read before it is written.
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) {
    const T element = functor(element_at<T>(a, i), element_at<T>(b, i));
    std::memcpy(static_cast<std::byte*>(output) + i * std::int64_t{sizeof(T)}, &element, sizeof(T));
  }
}

}  // namespace heddle::reduction
