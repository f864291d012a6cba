#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <stdexcept>

#include "kernels/byte_kernel.hpp"
#include "kernels/kernel.hpp"

/// Kernels for the device tests, defined for every backend that the suite runs on.
namespace heddle::testing {

/// Every element of tile 0 becomes factor * element + addend.
struct AffineParameters {
  double factor = 1;
  double addend = 0;
};

inline std::int64_t run_affine(const KernelArguments& a) {
  const auto p = a.parameters.as<AffineParameters>();
  const TileView& t = a.tiles[0];
  for (std::int64_t j = 0; j < t.columns; ++j) {
    for (std::int64_t i = 0; i < t.rows; ++i) t(i, j) = p.factor * t(i, j) + p.addend;
  }
  return 0;
}

/// Tile 1 += tile 0. Returns the 1-based column-major position of the first negative sum, else 0.
inline std::int64_t run_add(const KernelArguments& a) {
  const TileView& from = a.tiles[0];
  const TileView& to = a.tiles[1];
  std::int64_t info = 0;
  for (std::int64_t j = 0; j < to.columns; ++j) {
    for (std::int64_t i = 0; i < to.rows; ++i) {
      to(i, j) += from(i, j);
      if (info == 0 && to(i, j) < 0) info = j * to.rows + i + 1;
    }
  }
  return info;
}

/// Lasts until the flag that the parameter points to is set.
struct HoldParameters {
  std::atomic<bool>* is_running = nullptr;
  std::atomic<bool>* is_open = nullptr;
};

inline std::int64_t run_hold(const KernelArguments& a) {
  const auto p = a.parameters.as<HoldParameters>();
  p.is_running->store(true, std::memory_order_release);  // for Gate::wait_until_running()
  p.is_running->notify_all();
  p.is_open->wait(false, std::memory_order_acquire);  // for the release in Gate::open()
  return 0;
}

inline std::int64_t run_nothing(const KernelArguments&) {
  return 0;
}

inline std::int64_t run_broken(const KernelArguments&) {
  throw std::runtime_error("it is broken");
}

/// Adds the second range's bytes and a number to those of the first one, modulo 256.
struct AddBytesParameters {
  std::uint8_t* to = nullptr;
  const std::uint8_t* from = nullptr;
  std::int64_t count = 0;
  /// Parameters may be as large as this, and all of them arrive.
  std::array<std::uint8_t, ByteParameters::size_max - 25> unused{};
  std::uint8_t addend = 0;
};
static_assert(sizeof(AddBytesParameters) == ByteParameters::size_max);

inline void run_add_bytes(const ByteParameters& parameters) {
  const auto p = parameters.as<AddBytesParameters>();
  for (std::int64_t i = 0; i < p.count; ++i) {
    p.to[i] = static_cast<std::uint8_t>(p.to[i] + p.from[i] + p.addend);
  }
}

inline void run_broken_bytes(const ByteParameters&) {
  throw std::runtime_error("it is broken");
}

// device_kernels.cu
void add_bytes_cuda(const CudaByteLaunch& launch);
void affine_cuda(const CudaLaunch& launch);
void add_cuda(const CudaLaunch& launch);
void hold_cuda(const CudaLaunch& launch);
void nothing_cuda(const CudaLaunch& launch);
void fault_cuda(const CudaLaunch& launch);

inline constexpr Kernel affine{"affine", run_affine, run_affine, affine_cuda};
inline constexpr Kernel add{"add", run_add, run_add, add_cuda};
inline constexpr Kernel hold{"hold", run_hold, run_hold, hold_cuda};
inline constexpr Kernel nothing{"nothing", run_nothing, run_nothing, nothing_cuda};
/// Fails: by an exception, on a GPU by an access to memory that is not there.
inline constexpr Kernel broken{"broken", run_broken, run_broken, fault_cuda};
inline constexpr Kernel host_only{"host-only", run_affine, nullptr, nullptr};

inline constexpr ByteKernel add_bytes{"add-bytes", run_add_bytes, add_bytes_cuda};
inline constexpr ByteKernel broken_bytes{"broken-bytes", run_broken_bytes, nullptr};
inline constexpr ByteKernel no_bytes{"no-bytes", nullptr, nullptr};

/// Memory of GPU `gpu`, taken by CUDA's own means.
[[nodiscard]] void* take_from_cuda(int gpu, std::size_t bytes);
void give_back_to_cuda(void* address);

/// Holds a stream until the test opens it; opens when it goes out of scope.
class Gate {
 public:
  Gate() = default;
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() { open(); }

  template <class Stream>
  void close(Stream& stream) {
    stream.launch(hold, {}, KernelParameters(HoldParameters{&is_running_, &is_open_}), nullptr);
  }
  void wait_until_running() const { is_running_.wait(false, std::memory_order_acquire); }
  void open() {
    is_open_.store(true, std::memory_order_release);
    is_open_.notify_all();
  }

 private:
  std::atomic<bool> is_running_{false};
  std::atomic<bool> is_open_{false};
};

/// A column of `rows` doubles at `address`.
inline TileView column(std::byte* address, std::size_t rows) {
  const auto count = static_cast<std::int64_t>(rows);
  return {reinterpret_cast<double*>(address), count, 1, count};
}

}  // namespace heddle::testing
