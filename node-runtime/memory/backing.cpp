#include "node-runtime/memory/backing.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "node-runtime/residency/residency.hpp"

namespace heddle {
namespace {

/// Parts begin at pages, whatever the page size; and a part is page-locked in a few milliseconds,
/// for which the copy thread may stop.
constexpr std::size_t part_alignment = std::size_t{64} << 10;
constexpr std::size_t part_bytes = std::size_t{16} << 20;

}  // namespace

Backing::Backing(HostRegion region, Device& device) : region_(std::move(region)), device_(device) {}

Backing::~Backing() {
  for (const auto& [begin, is_locked] : parts_) {
    if (is_locked) device_.unregister_host(address() + begin);
  }
}

void Backing::lock_part(std::size_t begin, std::size_t bytes) {
  HEDDLE_CHECK(begin + bytes <= this->bytes(), "bytes {} to {} of {}", begin, begin + bytes,
               this->bytes());
  const auto [part, is_new] = parts_.emplace(begin, false);
  if (!is_new || bytes == 0) return;
  try {
    device_.register_host(address() + begin, bytes);
    part->second = true;
  } catch (const Error&) {
    // Page-locked memory may be limited; copies work without, slower.
  }
}

std::size_t BackedPools::Pool::append(std::size_t block_bytes) {
  frame_bytes += Residency::frame_bytes(block_bytes);
  largest = std::max(largest, block_bytes);
  if (parts.empty() || parts.back().bytes >= part_bytes) {
    const std::size_t begin =
        (backing_bytes() + part_alignment - 1) / part_alignment * part_alignment;
    parts.push_back({begin, 0});
  }
  const std::size_t offset = backing_bytes();
  parts.back().bytes += block_bytes;
  return offset;
}

void BackedPools::add(std::span<const ResidentBlock> blocks, std::span<const std::size_t> bytes) {
  HEDDLE_CHECK(!blocks.empty() && blocks.size() == bytes.size(), "{} blocks, {} sizes",
               blocks.size(), bytes.size());
  const auto pool = std::make_shared<Pool>();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto index = static_cast<std::size_t>(blocks[i].value());
    if (blocks_.size() <= index) blocks_.resize(index + 1);
    HEDDLE_CHECK(blocks_[index].pool == nullptr, "block {} is in two pools", index);
    const std::size_t offset = pool->append(bytes[i]);
    blocks_[index] = {pool, bytes[i], offset, pool->parts.size() - 1};
  }
  block_bytes_ += pool->frame_bytes;
  largest_.insert(pool->largest);
}

void BackedPools::remove(std::span<const ResidentBlock> blocks) {
  if (blocks.empty()) return;
  Pool& pool = *at(blocks.front()).pool;
  HEDDLE_CHECK(!pool.is_removed && block_bytes_ >= pool.frame_bytes, "block {}: {} of {} bytes",
               blocks.front().value(), pool.frame_bytes, block_bytes_);
  pool.is_removed = true;
  block_bytes_ -= pool.frame_bytes;
  largest_.erase(largest_.find(pool.largest));
}

void BackedPools::drop(ResidentBlock block) {
  HEDDLE_CHECK(is_removed(block), "block {} of a pool that exists", block.value());
  blocks_[static_cast<std::size_t>(block.value())] = {};
}

const BackedPools::Block& BackedPools::at(ResidentBlock block) const {
  const Block& b = blocks_[static_cast<std::size_t>(block.value())];
  HEDDLE_DEBUG(b.pool != nullptr, "block {} is in no pool", block.value());
  return b;
}

void BackedPools::ensure_backing(ResidentBlock block) {
  Pool& pool = *at(block).pool;
  if (pool.backing == nullptr) pool.backing = make_backing(pool);
}

std::byte* BackedPools::address(ResidentBlock block) const {
  const Block& b = at(block);
  HEDDLE_CHECK(b.pool->backing != nullptr, "block {} has no backing", block.value());
  return b.pool->backing->address() + b.offset;
}

std::vector<std::shared_ptr<BackedPools::Pool>> BackedPools::unbacked() const {
  std::vector<std::shared_ptr<Pool>> found;
  for (const Block& b : blocks_) {
    if (b.pool == nullptr || b.pool->is_removed || b.pool->backing != nullptr) continue;
    if (found.empty() || found.back() != b.pool) found.push_back(b.pool);
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::set<const BackedPools::Pool*> BackedPools::pools() const {
  std::set<const Pool*> all;
  for (const Block& b : blocks_) {
    if (b.pool != nullptr) all.insert(b.pool.get());
  }
  return all;
}

std::uint64_t BackedPools::backing_bytes() const {
  std::uint64_t bytes = 0;
  for (const Pool* pool : pools()) bytes += pool->backing == nullptr ? 0 : pool->backing->bytes();
  return bytes;
}

/// All parts of a pool but the last are full, and the next one begins at the alignment.
std::uint64_t BackedPools::backing_bytes_max(std::uint64_t frame_bytes) {
  return frame_bytes + frame_bytes / part_bytes * part_alignment;
}

bool BackedPools::is_valid() const {
  for (const Block& b : blocks_) {
    if (b.pool == nullptr) continue;
    if (b.part >= b.pool->parts.size()) return false;
    const Part& part = b.pool->parts[b.part];
    if (b.offset < part.begin || b.offset + b.bytes > part.end()) return false;
  }
  std::uint64_t frames = 0;
  std::multiset<std::size_t> largest;
  for (const Pool* pool : pools()) {
    std::size_t end = 0;
    for (const Part& part : pool->parts) {
      if (part.begin < end || part.begin % part_alignment != 0) return false;
      if (&part != &pool->parts.back() && part.bytes < part_bytes) return false;
      end = part.end();
    }
    if (pool->backing != nullptr && pool->backing->bytes() != pool->backing_bytes()) return false;
    if (pool->is_removed) continue;
    frames += pool->frame_bytes;
    largest.insert(pool->largest);
  }
  return frames == block_bytes_ && largest == largest_;
}

}  // namespace heddle
