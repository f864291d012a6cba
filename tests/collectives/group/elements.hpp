#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <fmt/core.h>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/collectives/options.hpp"
#include "node-runtime/device/device.hpp"

namespace heddle::testing {

/// A type of doubles, with where each of them is, written down apart from it.
struct DoubleType {
  Datatype type = Scalar::float64;
  std::vector<std::int64_t> places{0};  ///< of its doubles, in their order, in doubles
  std::int64_t extent = 1;              ///< in doubles

  [[nodiscard]] std::int64_t doubles() const { return static_cast<std::int64_t>(places.size()); }
};

/// One of some; each has a number of doubles that divides 60.
inline DoubleType double_type(std::uint32_t number) {
  using Part = Datatype::TriangleShape::Part;
  switch (number % 5) {
    case 0:
      return {};
    case 1:
      return {Datatype::vector(3, 2, 4, Scalar::float64), {0, 1, 4, 5, 8, 9}, 10};
    case 2:
      return {Datatype::triangle({.part = Part::lower, .rows = 4, .columns = 4, .leading = 6},
                                 Scalar::float64),
              {0, 1, 2, 3, 7, 8, 9, 14, 15, 21},
              22};
    case 3:
      // Backwards.
      return {Datatype::hvector(4, 1, -8, Scalar::float64), {0, -1, -2, -3}, 4};
    default:
      return {Datatype::resized(Scalar::float64, 0, 24), {0}, 3};
  }
}

/// Memory with some elements of a type, and a sentinel wherever none of its doubles is; on the host
/// or on a device. Then out() and in() bring there what fill() has written, and check() brings it
/// back.
class TypedMemory {
 public:
  /// `doubles`: of all elements. `device`: null for the host; `release` is called with its memory
  /// before it is freed.
  TypedMemory(DoubleType type, std::int64_t doubles, Device* device = nullptr,
              std::function<void(const void*)> release = {})
      : type_(std::move(type)),
        count_(doubles / type_.doubles()),
        doubles_(doubles),
        memory_(static_cast<std::size_t>(count_ * type_.extent + 2 * margin), sentinel()) {
    if (device != nullptr) {
      device_ = device;
      on_device_.reset(new DeviceBuffer(*device, memory_.size() * sizeof(double)),
                       [release = std::move(release)](DeviceBuffer* buffer) {
                         if (release) release(buffer->address());
                         delete buffer;
                       });
    }
  }

  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] Outgoing out() const { return {used(), count_, type_.type}; }
  [[nodiscard]] Incoming in() { return {used(), count_, type_.type}; }
  /// As blocks for each of `ranks`.
  [[nodiscard]] Outgoing out_of(int ranks) const { return {used(), count_ / ranks, type_.type}; }
  [[nodiscard]] Incoming in_of(int ranks) { return {used(), count_ / ranks, type_.type}; }
  /// Of its device; null: the host.
  [[nodiscard]] const std::byte* device_memory() const {
    return on_device_ == nullptr ? nullptr : on_device_->address();
  }

  double& operator[](std::int64_t i) { return memory_[place(i)]; }

  void fill(const std::function<double(std::int64_t)>& value) {
    for (std::int64_t i = 0; i < doubles_; ++i) (*this)[i] = value(i);
  }
  /// Throws where a double is not what it should be, or another one was touched. `from`, `to`: the
  /// doubles that have values; all others are as they were.
  void check(const std::string& what, std::int64_t from, std::int64_t to,
             const std::function<double(std::int64_t)>& value) {
    if (on_device_ != nullptr) {
      move({memory_.data(), nullptr}, {on_device_->address(), device_});
    }
    std::vector<double> expected(memory_.size(), sentinel());
    for (std::int64_t i = from; i < to; ++i) expected[place(i)] = value(i);
    for (std::size_t k = 0; k < memory_.size(); ++k) {
      if (std::bit_cast<std::uint64_t>(memory_[k]) == std::bit_cast<std::uint64_t>(expected[k])) {
        continue;
      }
      throw Error(ErrorCode::internal, fmt::format("{}: double {} of the memory is {}, not {}",
                                                   what, k, memory_[k], expected[k]));
    }
  }
  void check(const std::string& what, const std::function<double(std::int64_t)>& value) {
    check(what, 0, doubles_, value);
  }

 private:
  static constexpr std::int64_t margin = 8;
  static double sentinel() { return std::bit_cast<double>(0x7ff8dead0000beefULL); }
  /// Where operations find the elements.
  [[nodiscard]] double* used() const {
    if (on_device_ == nullptr) {
      return const_cast<double*>(memory_.data()) + margin;  // NOLINT(*-const-cast): or only read
    }
    move({on_device_->address(), device_}, {memory_.data(), nullptr});
    return reinterpret_cast<double*>(on_device_->address()) + margin;
  }
  void move(Destination to, Source from) const {
    const auto stream = device_->create_stream();
    stream->copy(to, from, memory_.size() * sizeof(double));
    stream->synchronize();
  }
  [[nodiscard]] std::size_t place(std::int64_t i) const {
    return static_cast<std::size_t>(margin + i / type_.doubles() * type_.extent +
                                    type_.places[static_cast<std::size_t>(i % type_.doubles())]);
  }

  DoubleType type_;
  std::int64_t count_;
  std::int64_t doubles_;
  std::vector<double> memory_;
  Device* device_ = nullptr;
  std::shared_ptr<DeviceBuffer> on_device_;  ///< not shared; with what to do before it is freed
};

}  // namespace heddle::testing
