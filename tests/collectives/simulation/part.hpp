#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node-runtime/collectives/group.hpp"
#include "tests/collectives/simulation/program.hpp"

namespace heddle::testing {

/// One rank's part in an action: its memory, the call, and what must be in the memory behind it, by
/// a plain reference.
class Part {
 public:
  Part() = default;
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  virtual ~Part() = default;

  /// Does it, or begins it (Action::is_begun). Throws as the group does.
  [[nodiscard]] virtual std::optional<Collective> call(const Group& group) = 0;
  /// Once it is over: what is wrong with the memory; empty: nothing.
  [[nodiscard]] virtual std::string difference() const = 0;
};

/// Results of reductions, which all ranks compare with theirs.
class References {
 public:
  virtual ~References() = default;
  References() = default;
  References(const References&) = delete;
  References& operator=(const References&) = delete;
};
using KeptReferences = std::map<std::int32_t, std::unique_ptr<References>>;  ///< by action

/// Gives memory for elements on one of the rank's devices, for as long as the simulation; null:
/// they are on the host.
using DeviceRoom = std::function<std::byte*(std::size_t bytes)>;

/// `shape`: of the rank's elements, where it chooses. `kept` outlives the part.
[[nodiscard]] std::unique_ptr<Part> make_part(const Action& action, std::int32_t rank,
                                              std::int32_t size, std::uint64_t shape,
                                              KeptReferences& kept, DeviceRoom devices);

}  // namespace heddle::testing
