#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "node-runtime/collectives/options.hpp"
#include "node-runtime/collectives/reduce/reduce_operation.hpp"
#include "node-runtime/collectives/schedule/choice.hpp"
#include "node-runtime/collectives/schedule/places.hpp"

namespace heddle::testing {

/// Every way of calling an operation.
enum class Form : std::uint8_t {
  barrier,
  broadcast,
  scatter,
  gather,
  all_gather,
  all_gather_in_place,
  reduce,
  all_reduce,
  all_reduce_in_place,
  reduce_scatter,
  all_to_all,
  scan,
  scan_in_place,
  exclusive_scan,
  scatter_list,
  gather_list,
  all_gather_list,
  all_to_all_list,
  reduce_scatter_counts,
};
inline constexpr std::uint32_t forms = 19;
[[nodiscard]] std::string_view name_of(Form form);
[[nodiscard]] bool is_rooted(Form form);
[[nodiscard]] bool reduces(Form form);
[[nodiscard]] bool is_listed(Form form);

/// Where members have an action's elements.
enum class Home : std::uint8_t { hosts, devices, any };

/// A call of all members of a group.
struct Action {
  std::int32_t number = 0;
  std::int32_t group = 0;
  Form form = Form::barrier;
  Scalar scalar = Scalar::float64;
  std::uint32_t operation = 0;  ///< modulo operations_of(scalar)
  std::int32_t root = 0;
  std::int64_t cells = 0;  ///< scalars of a block; with lists, about
  std::string algorithm = "auto";
  std::int64_t fragment_bytes = 0;
  Home home = Home::hosts;  ///< devices: of the nodes that have some
  std::optional<Copies> copies{};
  bool is_begun = false;  ///< rather than waited for at once
  bool is_wrong = false;  ///< makes no sense: a negative count
  std::uint64_t seed = 0;

  [[nodiscard]] std::string describe() const;
};

/// Operations that are tried on a scalar.
[[nodiscard]] std::uint32_t operations_of(Scalar scalar);
[[nodiscard]] ReduceOperation operation_of(const Action& action);

/// A group that is made of another one by split() or subset().
struct GroupPlan {
  std::int32_t parent = -1;  ///< -1: that of all nodes
  std::int32_t color = 0;
  bool is_split = false;
  std::vector<std::int32_t> nodes;  ///< by rank
  std::int32_t lane = 0;            ///< the caller of a node that uses it

  /// -1: no member.
  [[nodiscard]] std::int32_t rank_of(std::int32_t node) const;
};

/// One call that makes groups, of all members of `parent`.
struct Making {
  std::int32_t parent = 0;
  bool is_split = false;
  std::vector<std::int32_t> colors;  ///< by rank of the parent
  std::vector<std::int32_t> keys;
  std::vector<std::int32_t> ranks;   ///< subset
  std::vector<std::int32_t> groups;  ///< by color
};

enum class Fault : std::uint8_t { none, wrong_call, misfit, lost_node, device };

/// What all nodes do: the same for the same seed.
struct Program {
  std::vector<collectives::RankPlace> places;
  std::vector<std::int32_t> devices;  ///< of each node; empty: none has any
  bool have_devices = false;          ///< all nodes
  bool refuses_mappings = false;      ///< of device memory, now and then
  collectives::CollectiveRates rates;
  std::vector<GroupPlan> groups;
  std::vector<Making> makings;
  std::vector<Action> actions;
  std::int32_t lanes = 1;
  std::int32_t under_way_max = 1;  ///< of a group on a rank
  std::uint32_t lateness = 0;      ///< steps by which callers come late, at most
  Fault fault = Fault::none;
  std::int32_t fault_action = -1;  ///< of wrong_call and misfit
  std::int32_t fault_rank = 0;     ///< of its group
  Action fault_call{};             ///< what that rank calls instead

  [[nodiscard]] std::int32_t nodes() const { return static_cast<std::int32_t>(places.size()); }
  [[nodiscard]] const GroupPlan& group(std::int32_t number) const {
    return groups[static_cast<std::size_t>(number)];
  }
  [[nodiscard]] std::string describe() const;
};

[[nodiscard]] Program random_program(std::uint64_t seed, Fault fault);

}  // namespace heddle::testing
