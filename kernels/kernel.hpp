#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace heddle {

/// A plain value of at most `bytes_max` bytes; its reader knows the type.
template <std::size_t bytes_max>
class PlainParameters {
 public:
  static constexpr std::size_t size_max = bytes_max;

  PlainParameters() = default;

  template <class T>
  requires(sizeof(T) <= size_max && std::is_trivially_copyable_v<T> &&
           !std::is_same_v<T, PlainParameters>) explicit PlainParameters(const T& value) {
    std::memcpy(bytes_.data(), &value, sizeof(T));
  }

  template <class T>
  requires(sizeof(T) <= size_max && std::is_trivially_copyable_v<T>) [[nodiscard]] T as() const {
    T value{};
    std::memcpy(&value, bytes_.data(), sizeof(T));
    return value;
  }

  friend bool operator==(const PlainParameters&, const PlainParameters&) = default;

 private:
  alignas(8) std::array<std::byte, size_max> bytes_{};
};

/// A column-major block of doubles: element (i, j) is `data[i + j * leading]`. Does not own.
struct TileView {
  double* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t leading = 0;  ///< elements from one column to the next, at least max(1, rows)

  [[nodiscard]] double& operator()(std::int64_t i, std::int64_t j) const {
    return data[i + j * leading];
  }

  /// Rows [row, row + row_count) of columns [column, column + column_count).
  [[nodiscard]] TileView block(std::int64_t row, std::int64_t column, std::int64_t row_count,
                               std::int64_t column_count) const {
    return {data + row + column * leading, row_count, column_count, leading};
  }
};

/// The few plain values a task hands to its kernel (offsets, a pointer to a reduction), by value.
using KernelParameters = PlainParameters<32>;

/// An element of a tile.
struct TileElement {
  std::int64_t row = 0, column = 0;
};

/// The arguments of a kernel: its tiles in the order of the task's accesses, and its parameters.
struct KernelArguments {
  std::span<const TileView> tiles;
  const KernelParameters& parameters;
  /// The column of the tile at which the only view begins (Kernel::is_by_columns).
  std::int64_t first_column = 0;
};

struct CudaLaunch;  // kernels/cuda/launch.hpp
struct KernelCase;  // kernels/kernel_case.hpp
class FineTasks;    // kernels/fine/fine_tasks.hpp

/// A tile kernel, declared once and defined per backend. Kernels are static constants; a task
/// refers to its kernel by address. Kernels are deterministic: the same input bits give the same
/// output bits.
///
/// A definition returns 0, or a positive index that says where the mathematics failed (LAPACK's
/// `info`, counted from 1 within the tile). It may run on any thread, uses no threads of its own,
/// and keeps no state.
struct Kernel {
  using Function = std::int64_t (*)(const KernelArguments&);

  std::string_view name;        ///< as the trace shows it: "potrf", "gsmm"
  Function host = nullptr;      ///< on tiles in host memory, on the calling thread
  Function emulated = nullptr;  ///< on an emulated device's memory, by its stream; null: staged
  /// On a GPU's memory: queues its work on a CUDA stream and returns; null: staged on the host.
  void (*cuda)(const CudaLaunch&) = nullptr;
  /// Its fine-grain form, with parts of at most that many rows and columns, for several CPU
  /// workers; null: it runs whole. Its result may differ from that of `host` in the last bits, but
  /// is reproducible.
  void (*fine)(const KernelCase&, std::int64_t small, FineTasks&) = nullptr;
  /// Floating-point operations by the usual counts; null: none are counted.
  double (*flops)(const KernelCase&) = nullptr;
  /// The element of the main output at which a run that returned `info` > 0 failed: the pivot that
  /// a job reports beside `info`. Null: there is none, and the job reports `info` without a pivot.
  TileElement (*failing_element)(const KernelParameters&, std::int64_t info) = nullptr;
  /// `host` may be called for ranges of columns of the task's only tile, in order: the tile passes
  /// between a device and the host in pieces. It does not go back when it is left as it is.
  bool is_by_columns = false, leaves_tile = false;
};

/// What a task hands to its kernel and to the ready queues.
struct TaskOptions {
  KernelParameters parameters{};
  std::int32_t priority = 0;   ///< 0 .. 1023, higher is more urgent
  std::int64_t info_base = 0;  ///< added to the index that the kernel returns when it fails
};

}  // namespace heddle
