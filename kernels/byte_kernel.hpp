#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace heddle {

/// The plain values that a byte kernel is given, by value: addresses, strides, counts.
class ByteParameters {
 public:
  static constexpr std::size_t size_max = 256;

  ByteParameters() = default;

  template <class T>
  requires(sizeof(T) <= size_max && std::is_trivially_copyable_v<T> &&
           !std::is_same_v<T, ByteParameters>) explicit ByteParameters(const T& value) {
    std::memcpy(bytes_.data(), &value, sizeof(T));
  }

  template <class T>
  requires(sizeof(T) <= size_max && std::is_trivially_copyable_v<T>) [[nodiscard]] T as() const {
    T value{};
    std::memcpy(&value, bytes_.data(), sizeof(T));
    return value;
  }

 private:
  alignas(8) std::array<std::byte, size_max> bytes_{};
};

/// What a byte kernel's CUDA definition sees (kernels/cuda/byte_launch.hpp).
struct CudaByteLaunch;

/// A kernel on plain memory instead of tiles: packing, reductions in a transport's buffers. Where
/// that memory is, its parameters say. A static constant, deterministic, without state, as Kernel
/// is; it has no outcome but its writes, and fails by an exception.
struct ByteKernel {
  std::string_view name;  ///< as the trace shows it
  /// Called by an emulated device's stream, which all memory is plain memory to.
  void (*emulated)(const ByteParameters&) = nullptr;
  /// Queues its work on a CUDA stream and returns. In a build without CUDA it is never called.
  void (*cuda)(const CudaByteLaunch&) = nullptr;
};

}  // namespace heddle
