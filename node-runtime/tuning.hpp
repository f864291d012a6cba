#pragma once

#include "layout/layout.hpp"

#include <cstdint>
#include <string>

#include "config/config.hpp"
#include "node-runtime/machine/tile_model.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/threads/path_priorities.hpp"

namespace heddle {

struct NodeFacts;

/// Columns of an inverse block in Cholesky on GPUs: wide enough for products at their full rate,
/// narrow enough that inverting costs little and rounds like the triangular solve that it stands
/// for.
inline constexpr std::int64_t gpu_inverse_block = 512;
/// Parts a side that workers divide a tile into at most: its factorization then has 46,000 fine
/// tasks.
inline constexpr std::int64_t fine_parts_max = 64;

/// Whether CPU workers may run tasks of devices' places: what the configuration says; where it
/// leaves that open, if by the measurements they add so much to GPUs that a strip would be worth
/// its while. Never without devices.
[[nodiscard]] bool moves_tasks(std::optional<config::Placement> wanted, const NodeFacts& facts);

/// Whether CPU workers divide tasks into fine ones: what the configuration says; where it leaves
/// that open, if they may take devices' tasks, whose tiles are large.
[[nodiscard]] bool divides_tasks(const config::Layout& wanted, const NodeFacts& facts);

/// Devices of each node that a matrix is dealt out to. Two tile columns of the usual size for each
/// GPU: with fewer, several GPUs take longer than one, as panels and copies between them then take
/// most of the time. All devices where the configuration gives their number or they are emulated.
/// The same on all nodes.
[[nodiscard]] std::int32_t devices_for(std::int64_t rows, std::int64_t columns,
                                       const NodeFacts& facts);

/// Tile, strip and small size for a matrix: what the configuration says; where it says `auto`, what
/// somebody wrote into the machine file, then what follows from its measurements, then rules that
/// fit the machines that heddle was built on. The same on all nodes. Throws Error(usage) when a
/// wanted combination is impossible (strip no multiple of small).
[[nodiscard]] TileLayout choose_layout(std::int64_t rows, std::int64_t columns,
                                       const config::Layout& wanted, const NodeFacts& facts);

/// The keys of `layout` that say just this, whatever the machine; those of the grid and of QR stay
/// open.
[[nodiscard]] config::Layout layout_keys(const TileLayout& layout);

/// How nodes are arranged: as the configuration says; where it says `auto`, the grid with the
/// fewest messages: as square as the number of nodes allows, more columns than rows. Throws
/// Error(usage) for a grid of another number of nodes.
[[nodiscard]] Distribution grid_of(const Config& config, std::int32_t nodes);

/// A configuration with what a node has chosen where it says `auto`: a matrix's layout (as
/// layout_keys() has it), how its tiles are dealt out, and the facts. Keys that a run decides
/// about again and again (the path of messages) stay open.
[[nodiscard]] Config resolved(const Config& given, const config::Layout& layout,
                              const Distribution& distribution, const NodeFacts& facts);

/// Measured times of the kernels that most of a matrix meets here: the devices', without devices
/// the CPU workers'. Null: they were not measured.
[[nodiscard]] const KernelTimes* measured_times(const NodeFacts& facts);

/// The places whose kernels measured_times() gives, on all nodes; `devices` of each node take part.
[[nodiscard]] Workforce workforce_of(const NodeFacts& facts, std::int32_t devices);

/// What tasks are weighed by where priorities follow from the longest way: the machine file's
/// measurements, as far as there are some.
[[nodiscard]] TaskCosts task_costs(const NodeFacts& facts);

/// Where the sizes of tiles come from, for the plan: "the measurements of 2 CPU workers in it".
[[nodiscard]] std::string origin_of_sizes(const config::Layout& wanted, const NodeFacts& facts);

}  // namespace heddle
