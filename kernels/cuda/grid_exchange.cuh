#pragma once

#include <cstdint>
#include <cuda_runtime.h>

/// Exchange of doubles between the CTAs of a cooperative kernel without a barrier: a double is two
/// words of 64 bits, each with half of its bits and the number of the epoch in which it was sent. A
/// word is written and read as a whole (PTX: a 64-bit relaxed access is single-copy atomic), so a
/// reader that finds the epoch that it waits for has that epoch's bits: no fence orders anything,
/// and there is no flag besides the data.
///
/// A slot is written again two epochs later (slots alternate by the epoch's parity). By then all
/// CTAs have read it: the writer has received the next epoch from all CTAs, and a CTA sends the
/// next epoch only after a __syncthreads that follows its last read of this epoch; these reads have
/// returned, since receive() ends only when it has seen the epoch.
namespace heddle::kernel::cuda {

using GridWords = ulonglong2;

__device__ __forceinline__ GridWords load_words(const GridWords* from) {
  GridWords words;
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(words.x), "=l"(words.y)
               : "l"(from)
               : "memory");
  return words;
}

__device__ __forceinline__ void store_words(GridWords* to, GridWords words) {
  asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(words.x), "l"(words.y)
               : "memory");
}

__device__ __forceinline__ void send(GridWords* to, double value, std::uint32_t epoch) {
  const auto bits = static_cast<unsigned long long>(__double_as_longlong(value));
  const unsigned long long mark = static_cast<unsigned long long>(epoch) << 32;
  store_words(to, {mark | (bits & 0xffffffffULL), mark | (bits >> 32)});
}

__device__ __forceinline__ bool arrived(GridWords words, std::uint32_t epoch) {
  return (words.x >> 32) == epoch && (words.y >> 32) == epoch;
}

__device__ __forceinline__ double value_of(GridWords words) {
  return __longlong_as_double(static_cast<long long>((words.y << 32) | (words.x & 0xffffffffULL)));
}

/// What was sent to `from` in `epoch`; `words` is what was found there so far.
__device__ __forceinline__ double receive(const GridWords* from, GridWords words,
                                          std::uint32_t epoch) {
  while (!arrived(words, epoch)) words = load_words(from);
  return value_of(words);
}

}  // namespace heddle::kernel::cuda
