#include "node-runtime/device/emulated/host_gpus.hpp"

#include <algorithm>
#include <bit>
#include <fmt/core.h>
#include <new>
#include <unistd.h>

namespace heddle {
namespace {

constexpr std::size_t words_of_uuid = sizeof(DeviceUuid) / sizeof(std::uint64_t);

std::unique_ptr<Mapping> map_header(const EmulatedPresence& device) {
  const std::string what = fmt::format("emulated GPU {} of this host", device.gpu);
  const auto map = [&](int fd) {
    return std::make_unique<Mapping>(fd, 0, sizeof(ArenaHeader), true, what);
  };
  if (device.process == ::getpid()) return map(static_cast<int>(device.fd));
  const PeerArena peer(static_cast<pid_t>(device.process), static_cast<int>(device.fd), device.uuid,
                       what);
  return map(peer.fd());
}

}  // namespace

std::array<std::uint64_t, EmulatedPresence::words> EmulatedPresence::to_words() const {
  static_assert(words_of_uuid == 2);
  const auto id = std::bit_cast<std::array<std::uint64_t, words_of_uuid>>(uuid);
  return {static_cast<std::uint64_t>(process), static_cast<std::uint64_t>(fd), id[0], id[1],
          static_cast<std::uint64_t>(gpu)};
}

EmulatedPresence EmulatedPresence::from_words(std::span<const std::uint64_t, words> from) {
  const std::array<std::uint64_t, words_of_uuid> id{from[2], from[3]};
  return {static_cast<std::int64_t>(from[0]), static_cast<std::int64_t>(from[1]),
          std::bit_cast<DeviceUuid>(id), static_cast<std::int64_t>(from[4])};
}

HostGpus::HostGpus(std::span<const EmulatedPresence> of_host, const EmulatedPlaces& places)
    : places_(places) {
  for (const EmulatedPresence& device : of_host) {
    const auto known = std::ranges::find(gpus_, device.gpu, &Gpu::number);
    if (known != gpus_.end()) {
      ++known->sharers;
      continue;
    }
    mappings_.push_back(map_header(device));
    auto& header = *std::launder(reinterpret_cast<ArenaHeader*>(mappings_.back()->address()));
    gpus_.push_back({static_cast<std::int32_t>(device.gpu), device.uuid, &header.gpu, 1});
  }
}

const HostGpus::Gpu* HostGpus::find(std::int64_t number) const {
  const auto found = std::ranges::find(gpus_, number, &Gpu::number);
  return found == gpus_.end() ? nullptr : &*found;
}

const HostGpus::Gpu* HostGpus::find(const DeviceUuid& uuid) const {
  const auto found = std::ranges::find(gpus_, uuid, &Gpu::uuid);
  return found == gpus_.end() ? nullptr : &*found;
}

const HostGpus::Gpu& HostGpus::first_of_switch(const Gpu& gpu) const {
  return *std::ranges::find_if(gpus_, [&](const Gpu& other) {
    return places_.pci_switch(other.number) == places_.pci_switch(gpu.number);
  });
}

}  // namespace heddle
