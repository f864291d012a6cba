#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "node-runtime/collectives/reduce/definition.hpp"

/// What the threads of a reduction on a GPU do, as plain functions of a thread's number: the GPU
/// calls them in its kernels, the tests on the host, where every access is checked without a GPU.
///
/// A thread takes a unit, the same few elements of all inputs, reduces it in the Bracket over their
/// number, and stores it to all outputs. It has read a unit before it writes there, and units do
/// not overlap, so an output may be one of the inputs.
#ifdef __CUDACC__
#define HEDDLE_ON_GPU __host__ __device__ __forceinline__
#else
#define HEDDLE_ON_GPU inline
#endif
#ifdef __CUDA_ARCH__
#define HEDDLE_UNROLLED _Pragma("unroll")
#else
#define HEDDLE_UNROLLED
#endif

namespace heddle::reduction {

struct alignas(16) Word16 {
  std::uint64_t low;
  std::uint64_t high;
};

/// Elements as the words in which they are loaded and stored.
template <class Word, std::uint32_t Words>
struct Unit {
  Word word[Words];  // NOLINT(*-avoid-c-arrays): std::array has no functions on a GPU
};

/// One of a launch's threads.
struct Worker {
  std::int64_t number = 0;
  std::int64_t count = 1;
};

/// How a range of elements is cut: some up to a multiple of 16 bytes, units, and the rest.
struct Cut {
  std::int64_t head = 0;   ///< elements
  std::int64_t units = 0;  ///< units
  std::int64_t tail = 0;   ///< elements
};

// ---- a unit -----------------------------------------------------------------------------------

template <class Word, std::uint32_t Words>
HEDDLE_ON_GPU void load_unit(Unit<Word, Words>& unit, const std::byte* from) {
#ifdef __CUDA_ARCH__
  HEDDLE_UNROLLED
  for (std::uint32_t w = 0; w < Words; ++w) unit.word[w] = reinterpret_cast<const Word*>(from)[w];
#else
  // Where a GPU would fault.
  if (reinterpret_cast<std::uintptr_t>(from) % sizeof(Word) != 0) __builtin_trap();
  std::memcpy(&unit, from, sizeof(unit));
#endif
}

template <class Word, std::uint32_t Words>
HEDDLE_ON_GPU void store_unit(std::byte* to, const Unit<Word, Words>& unit) {
#ifdef __CUDA_ARCH__
  HEDDLE_UNROLLED
  for (std::uint32_t w = 0; w < Words; ++w) reinterpret_cast<Word*>(to)[w] = unit.word[w];
#else
  if (reinterpret_cast<std::uintptr_t>(to) % sizeof(Word) != 0) __builtin_trap();
  std::memcpy(to, &unit, sizeof(unit));
#endif
}

/// a := a op b, element by element.
template <class T, class U, class Functor>
HEDDLE_ON_GPU void combine(U& a, const U& b, const Functor& functor) {
  constexpr std::uint32_t elements = sizeof(U) / sizeof(T);
  T left[elements];   // NOLINT(*-avoid-c-arrays)
  T right[elements];  // NOLINT(*-avoid-c-arrays)
  std::memcpy(&left, &a, sizeof(U));
  std::memcpy(&right, &b, sizeof(U));
  HEDDLE_UNROLLED
  for (std::uint32_t e = 0; e < elements; ++e) left[e] = functor(left[e], right[e]);
  std::memcpy(&a, &left, sizeof(U));
}

/// Where a byte lies. Kernels without rows need fewer registers, and read faster.
template <bool HasRows>
HEDDLE_ON_GPU std::int64_t place_in(const Arrangement& side, std::int64_t byte) {
  if constexpr (HasRows) return side.place_of(byte);
  return byte;
}

template <bool HasRows, class U>
HEDDLE_ON_GPU void store_to_all(const Work& work, std::int64_t offset, const U& value) {
  const std::int64_t to = place_in<HasRows>(work.out, offset);
  for (std::uint32_t o = 0; o < work.output_count; ++o) store_unit(work.outputs[o] + to, value);
}

// ---- all inputs at once -----------------------------------------------------------------------

/// part[0] := the value of the first `count` parts. After the step with `Span`, part[k] is that of
/// the range of the Bracket that begins with k and has at most 2 · Span parts.
template <class T, std::uint32_t Parts, std::uint32_t Span, class U, class Functor>
HEDDLE_ON_GPU void fold(U* part, std::uint32_t count, const Functor& functor) {
  if constexpr (Span < Parts) {
    HEDDLE_UNROLLED
    for (std::uint32_t k = 0; k + Span < Parts; k += 2 * Span) {
      if (k + Span < count) combine<T>(part[k], part[k + Span], functor);
    }
    fold<T, Parts, 2 * Span>(part, count, functor);
  }
}

/// Units that a thread loads before it computes: enough bytes on their way for memory of other
/// GPUs.
template <std::uint32_t Inputs>
inline constexpr std::uint32_t units_at_once = Inputs <= 2   ? 4
                                               : Inputs <= 4 ? 2
                                                             : 1;

/// Up to `Inputs` inputs, `AtOnce` units, `stride` bytes from one to the next.
template <class T, class U, std::uint32_t Inputs, std::uint32_t AtOnce, bool HasRows, class Functor>
HEDDLE_ON_GPU void reduce_at_once(const Work& work, const Functor& functor, std::int64_t offset,
                                  std::int64_t stride) {
  U part[AtOnce][Inputs];  // NOLINT(*-avoid-c-arrays)
  HEDDLE_UNROLLED
  for (std::uint32_t a = 0; a < AtOnce; ++a) {
    const std::int64_t from = place_in<HasRows>(work.in, offset + a * stride);
    HEDDLE_UNROLLED
    for (std::uint32_t k = 0; k < Inputs; ++k) {
      if (k < work.input_count) load_unit(part[a][k], work.inputs[k] + from);
    }
  }
  HEDDLE_UNROLLED
  for (std::uint32_t a = 0; a < AtOnce; ++a) {
    fold<T, Inputs, 1>(part[a], work.input_count, functor);
    store_to_all<HasRows>(work, offset + a * stride, part[a][0]);
  }
}

// ---- one input after the other ----------------------------------------------------------------

inline constexpr std::uint32_t levels_max = 5;
static_assert(std::size_t{1} << (levels_max - 1) == inputs_max);

/// Puts the value of 2^Level inputs, the last of which is input k, to those that are there: block l
/// is that of 2^l inputs, and is there if k has bit l.
template <class T, std::uint32_t Level, class U, class Functor>
HEDDLE_ON_GPU void add_block(U* blocks, U& value, std::uint32_t k, const Functor& functor) {
  if constexpr (Level + 1 < levels_max) {
    if ((k >> Level & 1U) != 0) {
      U whole = blocks[Level];
      combine<T>(whole, value, functor);
      add_block<T, Level + 1>(blocks, whole, k, functor);
      return;
    }
  }
  blocks[Level] = value;
}

template <class T, class U, bool HasRows, class Functor>
HEDDLE_ON_GPU void reduce_in_turn(const Work& work, const Functor& functor, std::int64_t offset) {
  U blocks[levels_max] = {};  // NOLINT(*-avoid-c-arrays)
  U value = {};
  const std::int64_t from = place_in<HasRows>(work.in, offset);
  for (std::uint32_t k = 0; k < work.input_count; ++k) {
    load_unit(value, work.inputs[k] + from);
    add_block<T, 0>(blocks, value, k, functor);
  }
  bool has_right_part = false;
  HEDDLE_UNROLLED
  for (std::uint32_t level = 0; level < levels_max; ++level) {
    if ((work.input_count >> level & 1U) == 0) continue;
    if (has_right_part) combine<T>(blocks[level], value, functor);
    value = blocks[level];
    has_right_part = true;
  }
  store_to_all<HasRows>(work, offset, value);
}

// ---- a thread ---------------------------------------------------------------------------------

/// The widest word that fits into an element a whole number of times, of at most 8 bytes.
template <class T>
using ElementWord = std::conditional_t<
    sizeof(T) % 8 == 0, std::uint64_t,
    std::conditional_t<sizeof(T) % 4 == 0, std::uint32_t,
                       std::conditional_t<sizeof(T) % 2 == 0, std::uint16_t, std::uint8_t>>>;
template <class T>
using Element = Unit<ElementWord<T>, sizeof(T) / sizeof(ElementWord<T>)>;
/// An element at an odd address.
template <class T>
using LooseElement = Unit<std::uint8_t, sizeof(T)>;

/// The fewest elements that are words of 16 bytes.
template <class T>
inline constexpr std::int64_t wide_elements = 16 / std::gcd<std::int64_t>(16, sizeof(T));
template <class T>
inline constexpr bool has_wide = wide_elements<T> * sizeof(T) <= 128;
template <class T>
using Wide = Unit<Word16, static_cast<std::uint32_t>(wide_elements<T> * sizeof(T) / 16)>;

/// All that a thread does: units, up to `Inputs` inputs at once, or, where that is 0, one after the
/// other; then the elements around them, as if they were one piece.
template <class T, class U, std::uint32_t Inputs, bool HasRows, class Functor>
HEDDLE_ON_GPU void reduce_range(const Work& work, const Functor& functor, const Cut& cut,
                                const Worker& worker) {
  constexpr auto unit_bytes = static_cast<std::int64_t>(sizeof(U));
  constexpr auto element_bytes = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t first = cut.head * element_bytes;
  std::int64_t i = worker.number;
  if constexpr (Inputs > 0) {
    constexpr std::int64_t at_once = units_at_once<Inputs>;
    for (; i + (at_once - 1) * worker.count < cut.units; i += at_once * worker.count) {
      reduce_at_once<T, U, Inputs, units_at_once<Inputs>, HasRows>(
          work, functor, first + i * unit_bytes, worker.count * unit_bytes);
    }
    for (; i < cut.units; i += worker.count) {
      reduce_at_once<T, U, Inputs, 1, HasRows>(work, functor, first + i * unit_bytes, 0);
    }
  } else {
    for (; i < cut.units; i += worker.count) {
      reduce_in_turn<T, U, HasRows>(work, functor, first + i * unit_bytes);
    }
  }
  if constexpr (unit_bytes > element_bytes) {
    constexpr std::int64_t elements = unit_bytes / element_bytes;
    for (std::int64_t e = worker.number; e < cut.head + cut.tail; e += worker.count) {
      const std::int64_t at = e < cut.head ? e : e + cut.units * elements;
      reduce_in_turn<T, Element<T>, HasRows>(work, functor, at * element_bytes);
    }
  }
}

// ---- a launch ---------------------------------------------------------------------------------

/// Whether all inputs and outputs are at multiples of `bytes`, `offset` bytes further on, in every
/// row.
inline bool are_aligned(const Work& work, std::int64_t offset, std::size_t bytes) {
  std::uintptr_t bits = 0;
  const auto add = [&](const std::byte* address) {
    bits |=
        (reinterpret_cast<std::uintptr_t>(address) + static_cast<std::uintptr_t>(offset)) % bytes;
  };
  for (std::uint32_t k = 0; k < work.input_count; ++k) add(work.inputs[k]);
  for (std::uint32_t o = 0; o < work.output_count; ++o) add(work.outputs[o]);
  for (const Arrangement* side : {&work.in, &work.out}) {
    bits |= static_cast<std::uintptr_t>(side->rows.stride | side->first) % bytes;
  }
  return bits == 0;
}

/// Chooses words and cuts the range where all elements follow each other.
template <class T, class Launch>
auto cut_run(const Work& work, const Launch& launch) {
  if constexpr (has_wide<T>) {
    constexpr std::int64_t elements = wide_elements<T>;
    for (std::int64_t head = 0; head < elements; ++head) {
      if (!are_aligned(work, head * static_cast<std::int64_t>(sizeof(T)), sizeof(Word16))) continue;
      Cut cut;
      cut.head = head < work.count ? head : work.count;
      cut.units = (work.count - cut.head) / elements;
      cut.tail = work.count - cut.head - cut.units * elements;
      if (work.input_count <= 2) return launch.template run<T, Wide<T>, 2, false>(cut);
      if constexpr (sizeof(Wide<T>) > sizeof(Word16)) {
        return launch.template run<T, Wide<T>, 0, false>(cut);
      } else {
        if (work.input_count <= 4) return launch.template run<T, Wide<T>, 4, false>(cut);
        return launch.template run<T, Wide<T>, inputs_max, false>(cut);
      }
    }
  }
  const Cut all{0, work.count, 0};
  if (are_aligned(work, 0, sizeof(ElementWord<T>))) {
    return launch.template run<T, Element<T>, 0, false>(all);
  }
  return launch.template run<T, LooseElement<T>, 0, false>(all);
}

/// Inputs of which a thread has a unit at once.
template <class U>
inline constexpr std::uint32_t inputs_at_once = sizeof(U) <= sizeof(Word16) ? inputs_max : 0;

/// Chooses words and cuts the range where there are rows: no unit lies in two of them.
template <class T, class Launch>
auto cut_rows(const Work& work, const Launch& launch) {
  if constexpr (has_wide<T>) {
    constexpr auto unit_bytes = static_cast<std::int64_t>(sizeof(Wide<T>));
    if (work.in.has_whole(unit_bytes) && work.out.has_whole(unit_bytes) &&
        are_aligned(work, 0, sizeof(Word16))) {
      const std::int64_t units = work.count / wide_elements<T>;
      return launch.template run<T, Wide<T>, inputs_at_once<Wide<T>>, true>(
          {0, units, work.count - units * wide_elements<T>});
    }
  }
  const Cut all{0, work.count, 0};
  if (are_aligned(work, 0, sizeof(ElementWord<T>))) {
    return launch.template run<T, Element<T>, inputs_at_once<Element<T>>, true>(all);
  }
  return launch.template run<T, LooseElement<T>, 0, true>(all);
}

/// Calls launch.run<T, U, Inputs, HasRows>(cut), as reduce_range has them, and returns what that
/// returns.
template <class T, class Launch>
auto cut_and_launch(const Work& work, const Launch& launch) {
  const bool has_places = !(work.in == Arrangement{}) || !(work.out == Arrangement{});
  return has_places ? cut_rows<T>(work, launch) : cut_run<T>(work, launch);
}

}  // namespace heddle::reduction
