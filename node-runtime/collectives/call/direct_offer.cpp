#include "node-runtime/collectives/call/direct_offer.hpp"

#include <algorithm>

#include "node-runtime/collectives/execution/seal.hpp"

namespace heddle::collectives {

std::uint64_t identity_of(std::span<const DirectOffer> offers) {
  std::uint64_t number = 1;
  for (const DirectOffer& one : offers) {
    for (const p2p::MemoryReference* memory : {&one.input, &one.output}) {
      std::uint64_t device = 0;
      for (const std::uint8_t byte : memory->handle.device.bytes) device = mixed(device, byte);
      number = mixed(mixed(number, device), memory->handle.allocation);
    }
  }
  return number;
}

std::optional<CommonRows> common_rows(std::span<const DirectOffer> offers) {
  const auto would_pack = [](const DirectOffer& one) { return one.is_packed; };
  if (std::ranges::none_of(offers, would_pack)) return std::nullopt;
  const auto of = [&](bool DirectOffer::*has, reduction::Rows DirectOffer::*rows) {
    const auto found = std::ranges::find(offers, true, has);
    return found == offers.end() ? reduction::Rows{} : (*found).*rows;
  };
  const CommonRows common{of(&DirectOffer::has_input, &DirectOffer::input_rows),
                          of(&DirectOffer::has_output, &DirectOffer::output_rows)};
  const auto is_alike = [&](const DirectOffer& one) {
    return one.has_rows && (!one.has_input || one.input_rows == common.input) &&
           (!one.has_output || one.output_rows == common.output);
  };
  if (!std::ranges::all_of(offers, is_alike)) return std::nullopt;
  return common;
}

}  // namespace heddle::collectives
