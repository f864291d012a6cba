#include "node-runtime/transport/p2p/mappings.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"

namespace heddle::p2p {

MemoryReference refer_to(Device& device, const std::byte* address) {
  const std::uint64_t offset = device.locate(address).offset;
  return {device.export_memory(address - offset), offset,
          reinterpret_cast<std::uintptr_t>(address)};
}

MemoryReference RecentHandles::refer_to(Device& device, const std::byte* address) {
  const MemoryPlace place = device.locate(address);
  IpcMemoryHandle& known = handles_.at(place.allocation % handles_.size());
  const bool is_known =
      known.bytes > 0 && known.allocation == place.allocation && known.device == device.info().uuid;
  if (!is_known) known = device.export_memory(address - place.offset);
  return {known, place.offset, reinterpret_cast<std::uintptr_t>(address)};
}

MappedMemory Mapper::open(Device& via, const MemoryReference& memory) {
  return {via.open_memory(memory.handle).address, &via};
}

void Mapper::close(Device& via, const MappedMemory& memory) {
  via.close_memory({memory.address, 0});
}

Mappings::~Mappings() {
  close(std::nullopt);
  HEDDLE_CHECK(entries_.empty(), "{} mappings of other nodes' memory are in use at the end",
               entries_.size());
}

Mappings::Entries::iterator Mappings::find(NodeId node, const Device& via,
                                           const IpcMemoryHandle& handle) {
  return std::ranges::find_if(entries_, [&](const Entry& entry) {
    return entry.node == node && entry.via == &via && entry.allocation == handle.allocation &&
           entry.device == handle.device;
  });
}

bool Mappings::has(NodeId node, const Device& via, const MemoryReference& memory) {
  const auto found = find(node, via, memory.handle);
  return found != entries_.end() && !found->is_doomed;
}

std::shared_ptr<const Mappings::Use> Mappings::use(NodeId node, Device& via,
                                                   const MemoryReference& memory) {
  auto entry = find(node, via, memory.handle);
  if (entry == entries_.end()) {
    make_room();
    const MappedMemory opened = mapper_.open(via, memory);
    entries_.push_front(
        {node, &via, memory.handle.device, memory.handle.allocation, opened, {}, false, {}});
    entry = entries_.begin();
    ++statistics_.opened;
  } else {
    entries_.splice(entries_.begin(), entries_, entry);
    ++statistics_.found;
  }
  auto use = entry->use.lock();
  if (use == nullptr) {
    use = std::make_shared<const Use>(*this, entry);
    entry->use = use;
  }
  return use;
}

MappedMemory Mappings::Use::at(std::uint64_t offset) const {
  return {entry_->memory.address + offset, entry_->memory.device};
}

Mappings::Entries::iterator Mappings::close(Entries::iterator entry) {
  mapper_.close(*entry->via, entry->memory);
  ++statistics_.closed;
  const auto told = std::move(entry->when_closed);
  const auto next = entries_.erase(entry);
  for (const auto& tell : told) tell();
  return next;
}

void Mappings::ended(Entries::iterator entry) {
  if (entry->is_doomed || entries_.size() > max_) close(entry);
}

/// Evicts the least recently used mapping that is not in use.
void Mappings::make_room() {
  for (auto entry = entries_.end(); entry != entries_.begin() && entries_.size() >= max_;) {
    --entry;
    if (entry->use.expired()) entry = close(entry);
  }
}

void Mappings::release(NodeId node, const DeviceUuid& device, std::uint64_t allocation,
                       std::function<void()> closed) {
  // Several devices of this node may have it open: `closed` is called behind the last.
  const auto last =
      std::shared_ptr<void>(nullptr, [closed = std::move(closed)](void*) { closed(); });
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    if (entry->node != node || entry->allocation != allocation || !(entry->device == device)) {
      ++entry;
      continue;
    }
    entry->when_closed.emplace_back([last] {});
    entry->is_doomed = true;
    entry = entry->use.expired() ? close(entry) : std::next(entry);
  }
}

void Mappings::close(std::optional<NodeId> node) {
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const bool is_meant = !node.has_value() || entry->node == *node;
    if (!is_meant) {
      ++entry;
    } else if (entry->use.expired()) {
      entry = close(entry);
    } else {
      entry->is_doomed = true;
      ++entry;
    }
  }
}

}  // namespace heddle::p2p
