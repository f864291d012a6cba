#include "node-runtime/memory/tile_pool.hpp"

#include <algorithm>

namespace heddle {

TilePool::TilePool(HostRegion region, std::size_t block_bytes, std::size_t count,
                   std::vector<std::size_t> soon)
    : block_bytes_(block_bytes), count_(count), region_(std::move(region)), soon_(std::move(soon)) {
  HEDDLE_CHECK(soon_.size() <= count, "{} blocks soon of {}", soon_.size(), count);
  HEDDLE_CHECK(block_bytes * count <= region_.bytes(), "{} blocks of {} bytes in {}", count,
               block_bytes, region_.bytes());
}

TilePool::TilePool(PlaceId device, std::vector<ResidentBlock> residents)
    : place_(device), residents_(std::move(residents)) {
  HEDDLE_CHECK(device != host_place);
}

std::size_t TilePool::bytes_soon(std::size_t block) const {
  return std::min(soon_[block], block_bytes_);
}

std::span<std::byte> TilePool::next_pages(std::size_t bytes_max) {
  // A smaller distance between two blocks is not worth another system call.
  constexpr std::ptrdiff_t near = 64 << 10;
  std::byte* begin = nullptr;
  std::byte* end = nullptr;
  for (; populated_blocks_ < soon_.size(); ++populated_blocks_) {
    const std::size_t block = populated_blocks_;
    const std::size_t of_block = bytes_soon(block);
    if (of_block == 0) continue;
    std::byte* const at = region_.address() + block * block_bytes_ + populated_bytes_;
    if (begin == nullptr) {
      begin = end = at;
    } else if (at - end > near) {
      break;
    }
    const auto before = static_cast<std::size_t>(at - begin);
    const std::size_t left = of_block - populated_bytes_;
    const std::size_t bytes = std::min(left, bytes_max - std::min(bytes_max, before));
    if (bytes > 0) end = at + bytes;
    if (bytes < left) {
      populated_bytes_ += bytes;
      break;
    }
    populated_bytes_ = 0;
  }
  return {begin, end};
}

bool TilePool::is_valid() const {
  if (place_ != host_place) {
    return blocks_.empty() && count_ == 0 && region_.bytes() == 0 && soon_.empty();
  }
  const bool populated_is_valid =
      populated_blocks_ <= soon_.size() &&
      (populated_bytes_ == 0 ||
       (lacks_pages() && populated_bytes_ < bytes_soon(populated_blocks_)));
  return residents_.empty() && (blocks_.empty() || count_ == 0) && soon_.size() <= count_ &&
         block_bytes_ * count_ <= region_.bytes() && populated_is_valid;
}

}  // namespace heddle
