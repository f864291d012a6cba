#include "apps/collective_limit.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "base/error.hpp"

namespace heddle {
namespace {

static_assert(std::is_trivially_copyable_v<IpcMemoryHandle>);

/// The smallest value that any rank has.
std::int64_t least(const Group& group, std::int64_t own) {
  group.all_reduce({&own, 1, Scalar::int64}, ReduceOperation::minimum());
  return own;
}

}  // namespace

CopyLimit::CopyLimit(const Group& group, CollectiveMemory& input, CollectiveMemory& output,
                     Device* device, bool is_one_host)
    : group_(group), input_(input), output_(output), device_(device) {
  if (!is_one_host) {
    why_not_ = "not all nodes are on one host";
    return;
  }
  const std::int64_t on_device = device != nullptr ? 1 : 0;
  const bool is_any_on_device = -least(group, -on_device) == 1;
  if (!is_any_on_device) return;
  if (least(group, on_device) == 0) {
    why_not_ = "memory of hosts and of devices is copied in pieces, by way of page-locked memory";
    return;
  }
  map_next();
}

CopyLimit::~CopyLimit() {
  if (mapped_) device_->close_memory(*mapped_);
}

/// The next rank's input, if every rank can map that.
void CopyLimit::map_next() {
  IpcMemoryHandle own{};
  std::int64_t is_well = 1;
  try {
    own = device_->export_memory(input_.address());
  } catch (const Error&) {
    is_well = 0;
  }
  std::vector<IpcMemoryHandle> all(static_cast<std::size_t>(group_.size()));
  group_.all_gather({&own, static_cast<std::int64_t>(sizeof own)},
                    {all.data(), static_cast<std::int64_t>(sizeof own)});
  if (least(group_, is_well) == 1) {
    try {
      mapped_ =
          device_->open_memory(all[static_cast<std::size_t>((group_.rank() + 1) % group_.size())]);
      stream_ = device_->create_stream();
    } catch (const Error&) {
      is_well = 0;
    }
  }
  if (least(group_, is_well) == 0) why_not_ = "not every node can map the memory of the next one";
}

std::int64_t CopyLimit::bytes_max() const {
  return static_cast<std::int64_t>(
      std::min(input_.image().size_bytes(), output_.image().size_bytes()));
}

void CopyLimit::copy(std::int64_t bytes) {
  const auto length = static_cast<std::size_t>(bytes);
  if (!mapped_) {
    std::memcpy(output_.address(), input_.address(), length);
    return;
  }
  stream_->copy({reinterpret_cast<std::byte*>(output_.address()), device_},
                {mapped_->address, device_}, length);
  stream_->synchronize();
}

}  // namespace heddle
