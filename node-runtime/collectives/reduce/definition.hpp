#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>

#include "node-runtime/collectives/reduce/rows.hpp"
#include "node-runtime/transport/datatype/scalar.hpp"

/// What a reduce operation consists of, by scalar: its loop on the host and its kernels. Plain
/// data, which own_operations.hpp makes of a program's functor.
namespace heddle::reduction {

/// Inputs, and outputs, of one reduction at most.
inline constexpr std::size_t inputs_max = 16;
/// Bytes of an element at most, of which the host's loop has some in the core's cache.
inline constexpr std::size_t element_bytes_max = 1024;
/// Bytes of an element that GPUs reduce in registers.
inline constexpr std::size_t device_element_bytes_max = 128;

/// A functor without pointers to itself, by value.
struct FunctorBytes {
  static constexpr std::size_t size_max = 64;
  alignas(16) std::array<std::byte, size_max> bytes{};

  template <class Functor>
  static constexpr bool fits = sizeof(Functor) <= size_max &&
                               alignof(Functor) <= 16 && std::is_trivially_copyable_v<Functor>;

  template <class Functor>
  [[nodiscard]] static FunctorBytes of(const Functor& functor) {
    static_assert(fits<Functor>);
    FunctorBytes made;
    std::memcpy(made.bytes.data(), &functor, sizeof(Functor));
    return made;
  }
};

/// output[i] := a[i] op b[i] for i below `count`, at any addresses. The output may be one of the
/// two, but overlap none otherwise.
using PairLoop = void (*)(const void* functor, void* output, const void* a, const void* b,
                          std::int64_t count);

/// Where a CUDA kernel runs, and how much of the GPU it may take.
struct DeviceGrid {
  void* stream = nullptr;        ///< a cudaStream_t
  std::uint32_t blocks_max = 0;  ///< of 256 threads; 0: no limit
};

struct Work;
/// Queues a reduction on a CUDA stream. Returns a cudaError_t.
using CudaForm = int (*)(const Work& work, const DeviceGrid& grid);

/// A reduction on a device, by value: every output := the inputs' value in the Bracket over their
/// number.
struct Work {
  const std::byte* inputs[inputs_max] = {};  // NOLINT(*-avoid-c-arrays): std::array has no
  std::byte* outputs[inputs_max] = {};       // NOLINT(*-avoid-c-arrays): functions on a GPU
  std::int64_t count = 0;                    ///< elements
  PairLoop loop = nullptr;
  CudaForm cuda = nullptr;
  std::int32_t element_bytes = 0;
  std::uint32_t blocks_max = 0;  ///< as DeviceGrid
  std::uint32_t input_count = 0;
  std::uint32_t output_count = 0;
  FunctorBytes functor;
  Arrangement in;  ///< all inputs alike
  Arrangement out;
};

/// An operation on elements of one scalar.
struct ScalarForm {
  PairLoop loop = nullptr;  ///< null: it has no meaning for these
  CudaForm cuda = nullptr;  ///< null: there is no kernel for GPUs
  bool is_exact = false;    ///< one result in any order
};

struct Definition {
  std::string name;
  std::int32_t scalars_per_element = 1;
  bool is_commutative = true;
  /// The loops are fit for devices, too: they see nothing but elements and `functor`.
  bool is_for_devices = true;
  std::array<ScalarForm, scalar_count> forms{};
  FunctorBytes functor{};
  /// Instead of `functor`, of a function that only the host can run.
  std::shared_ptr<const void> host_functor{};

  [[nodiscard]] const ScalarForm& form(Scalar scalar) const {
    return forms[static_cast<std::size_t>(scalar)];
  }
  /// The first argument of the loops.
  [[nodiscard]] const void* context() const {
    return host_functor != nullptr ? host_functor.get() : functor.bytes.data();
  }
};

}  // namespace heddle::reduction
