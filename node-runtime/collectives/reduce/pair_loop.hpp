#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

/// The loop of every operation over two arrays. Inlined, so that it is compiled for the processor
/// of the function around it.
namespace heddle::reduction {

/// An element at any address, as compilers vectorise it.
template <class T>
struct [[gnu::packed, gnu::may_alias]] LooseValue {
  T value;
};
/// Those that `packed` is for.
template <class T>
inline constexpr bool is_plain = std::is_trivial_v<T>&& std::is_standard_layout_v<T>;

template <class T>
[[gnu::always_inline]] inline T element_at(const void* array, std::int64_t i) {
  if constexpr (is_plain<T>) {
    return static_cast<const LooseValue<T>*>(array)[i].value;
  } else {
    T element;
    std::memcpy(&element, static_cast<const std::byte*>(array) + i * std::int64_t{sizeof(T)},
                sizeof(T));
    return element;
  }
}

template <class T>
[[gnu::always_inline]] inline void set_element(void* array, std::int64_t i, const T& element) {
  if constexpr (is_plain<T>) {
    static_cast<LooseValue<T>*>(array)[i].value = element;
  } else {
    std::memcpy(static_cast<std::byte*>(array) + i * std::int64_t{sizeof(T)}, &element, sizeof(T));
  }
}

/// A PairLoop's body. Addresses need no alignment.
template <class T, class Functor>
[[gnu::always_inline]] inline void loop_over_pairs(const Functor& functor, void* output,
                                                   const void* a, const void* b,
                                                   std::int64_t count) {
  // Where the output is an input, each element is read before it is written.
#ifndef __clang__
#pragma GCC ivdep
#endif
  for (std::int64_t i = 0; i < count; ++i) {
    set_element<T>(output, i, functor(element_at<T>(a, i), element_at<T>(b, i)));
  }
}

}  // namespace heddle::reduction
