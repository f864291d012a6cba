#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "apps/collective_memory.hpp"
#include "node-runtime/collectives/group.hpp"
#include "node-runtime/device/device.hpp"

namespace heddle {

/// What bounds the operations of all ranks: copies between the same places, all ranks at once. A
/// rank with memory on the host copies there; one with memory on a device copies from the device of
/// the next rank to its own. Nothing else is as fast between processes.
///
/// Collective: construction, copy() and destruction, on all ranks.
class CopyLimit {
 public:
  /// `device`: of this rank's memory; null: the host. Both are `input` and `output` of the measured
  /// operations. `is_one_host`: all ranks are on one host.
  CopyLimit(const Group& group, CollectiveMemory& input, CollectiveMemory& output, Device* device,
            bool is_one_host);
  CopyLimit(const CopyLimit&) = delete;
  CopyLimit& operator=(const CopyLimit&) = delete;
  ~CopyLimit();

  /// Why there is none, the same on all ranks; empty: there is one.
  [[nodiscard]] const std::string& why_not() const { return why_not_; }
  /// The most bytes that copy() takes.
  [[nodiscard]] std::int64_t bytes_max() const;
  /// This rank's copy; blocks until it is over. Where why_not() is empty.
  void copy(std::int64_t bytes);

 private:
  void map_next();

  const Group& group_;
  CollectiveMemory& input_;
  CollectiveMemory& output_;
  Device* device_;
  std::string why_not_;
  std::optional<DeviceMemory> mapped_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace heddle
