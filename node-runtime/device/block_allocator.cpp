#include "node-runtime/device/block_allocator.hpp"

#include <algorithm>
#include <iterator>

#include "base/assert.hpp"

namespace heddle {

BlockAllocator::BlockAllocator(std::uint64_t bytes) : total_bytes_(bytes / alignment * alignment) {
  if (total_bytes_ > 0) free_.emplace(0, total_bytes_);
}

std::optional<BlockAllocator::Block> BlockAllocator::allocate(std::uint64_t bytes) {
  HEDDLE_CHECK(bytes > 0);
  if (bytes > total_bytes_) return std::nullopt;
  const std::uint64_t size = rounded(bytes);
  const auto fit =
      std::find_if(free_.begin(), free_.end(), [&](const auto& f) { return f.second >= size; });
  if (fit == free_.end()) return std::nullopt;
  const Block block{fit->first, bytes, next_id_++};
  const std::uint64_t rest = fit->second - size;
  free_.erase(fit);
  if (rest > 0) free_.emplace(block.begin + size, rest);
  used_.emplace(block.begin, block);
  used_bytes_ += size;
  HEDDLE_EXPENSIVE(is_valid());
  return block;
}

bool BlockAllocator::release(std::uint64_t begin) {
  const auto found = used_.find(begin);
  if (found == used_.end()) return false;
  std::uint64_t size = rounded(found->second.bytes);
  used_bytes_ -= size;
  used_.erase(found);
  auto next = free_.lower_bound(begin);
  if (next != free_.end() && next->first == begin + size) {
    size += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == begin) {
      before->second += size;
      HEDDLE_EXPENSIVE(is_valid());
      return true;
    }
  }
  free_.emplace(begin, size);
  HEDDLE_EXPENSIVE(is_valid());
  return true;
}

std::optional<BlockAllocator::Block> BlockAllocator::find(std::uint64_t offset) const {
  auto after = used_.upper_bound(offset);
  if (after == used_.begin()) return std::nullopt;
  const Block& block = std::prev(after)->second;
  if (offset - block.begin >= block.bytes) return std::nullopt;
  return block;
}

std::uint64_t BlockAllocator::largest_free() const {
  std::uint64_t largest = 0;
  for (const auto& [begin, bytes] : free_) largest = std::max(largest, bytes);
  return largest;
}

bool BlockAllocator::is_valid() const {
  std::uint64_t position = 0;
  std::uint64_t used = 0;
  bool after_free = false;
  auto u = used_.begin();
  auto f = free_.begin();
  while (position < total_bytes_) {
    if (u != used_.end() && u->first == position) {
      position += rounded(u->second.bytes);
      used += rounded(u->second.bytes);
      after_free = false;
      ++u;
    } else if (!after_free && f != free_.end() && f->first == position) {
      position += f->second;
      after_free = true;
      ++f;
    } else {
      return false;
    }
  }
  return position == total_bytes_ && used == used_bytes_ && u == used_.end() && f == free_.end();
}

}  // namespace heddle
