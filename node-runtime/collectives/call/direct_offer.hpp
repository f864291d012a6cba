#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "node-runtime/collectives/reduce/rows.hpp"
#include "node-runtime/transport/p2p/mappings.hpp"

namespace heddle::collectives {

/// Where a rank's memory is, as it tells the others before an operation on the direct way. Plain.
struct DirectOffer {
  std::int64_t heard = 0;  ///< KnownMemory::heard_before()
  bool maps_slowly = false;
  bool is_on_device = false;
  bool has_input = false;
  bool has_output = false;
  bool has_rows = false;   ///< of all sides that it has
  bool is_packed = false;  ///< unless rows are taken
  reduction::Rows input_rows;
  reduction::Rows output_rows;
  p2p::MemoryReference input;
  p2p::MemoryReference output;
  p2p::MemoryReference input_at;  ///< of the rows
  p2p::MemoryReference output_at;

  [[nodiscard]] const DeviceUuid& device() const {
    return has_output ? output.handle.device : input.handle.device;
  }
  [[nodiscard]] bool is_in_place() const {
    return has_input && has_output && input.address == output.address;
  }
};

/// A number for the allocations of all ranks.
[[nodiscard]] std::uint64_t identity_of(std::span<const DirectOffer> offers);

struct CommonRows {
  reduction::Rows input;
  reduction::Rows output;
};
/// How all ranks' elements lie, if all inputs lie alike, all outputs do, and some would have to be
/// packed otherwise.
[[nodiscard]] std::optional<CommonRows> common_rows(std::span<const DirectOffer> offers);

}  // namespace heddle::collectives
