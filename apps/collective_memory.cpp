#include "apps/collective_memory.hpp"

#include <algorithm>

namespace heddle {

CollectiveMemory::CollectiveMemory(std::span<double> image, Device* device)
    : image_(image), device_(device) {
  if (device == nullptr) return;
  memory_.emplace(*device, image.size_bytes());
  stream_ = device->create_stream();
}

double* CollectiveMemory::address() const {
  return memory_ ? reinterpret_cast<double*>(memory_->address()) : image_.data();
}

void CollectiveMemory::bring_in() {
  if (memory_) copy({memory_->address(), device_}, {image_.data(), nullptr});
}

void CollectiveMemory::bring_back() {
  if (memory_) copy({image_.data(), nullptr}, {memory_->address(), device_});
}

void CollectiveMemory::copy(Destination to, Source from) {
  stream_->copy(to, from, image_.size_bytes());
  stream_->synchronize();
}

StagedMemory::StagedMemory(Device& device, std::size_t doubles)
    : device_(device),
      doubles_(doubles),
      memory_(device, 2 * doubles * sizeof(double)),
      locked_(static_cast<double*>(device.allocate_host(2 * doubles * sizeof(double)))),
      stream_(device.create_stream()) {
  // Measured sums stay finite.
  std::fill_n(locked_, 2 * doubles, 0.0);
  stream_->copy({memory_.address(), &device}, {locked_, nullptr}, memory_.bytes());
  stream_->synchronize();
}

StagedMemory::~StagedMemory() {
  device_.free_host(locked_);
}

void StagedMemory::bring_input(std::int64_t doubles) {
  if (doubles == 0) return;
  stream_->copy({input(), nullptr}, {memory_.address(), &device_},
                static_cast<std::size_t>(doubles) * sizeof(double));
  stream_->synchronize();
}

void StagedMemory::bring_output(std::int64_t doubles) {
  if (doubles == 0) return;
  stream_->copy({memory_.address() + doubles_ * sizeof(double), &device_}, {output(), nullptr},
                static_cast<std::size_t>(doubles) * sizeof(double));
  stream_->synchronize();
}

}  // namespace heddle
