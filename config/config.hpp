#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// Typed configuration of a run. The initial values are the defaults. An empty optional means
/// `auto` where the option accepts it, else "left out".
namespace heddle {
namespace config {

// The choices; an enumerator's name is the word in the file (words.hpp).
enum class Tree : std::uint8_t { flat, binomial };
enum class Hierarchy : std::uint8_t { off, on };
enum class DeviceBackend : std::uint8_t { none, cuda, emulated };
/// Runs accept `program` and `path`; simulations accept all, for comparison.
enum class Priorities : std::uint8_t { program, fifo, reverse, random, path };
enum class Placement : std::uint8_t { fixed, dynamic };  ///< `fixed` is "static", a keyword of C++
enum class Wait : std::uint8_t { adaptive, spin, park };
/// How a version of a tile gets to the nodes that read it.
enum class ReaderWay : std::uint8_t { home, tree };
enum class MessagePath : std::uint8_t { message, shared, get, put, ring };
enum class ReductionOrder : std::uint8_t { ranks, places };
enum class CollectiveAlgorithm : std::uint8_t {
  flat,
  chain,
  binary,
  binomial,
  split_binary,
  reduce_broadcast,
  scatter_gather,
  pairwise,
  leaders,
  bruck
};
/// How ranks copy to and from a buffer that they share; `by_table` is "static", a keyword of C++.
enum class BufferCopies : std::uint8_t { by_table, dynamic, mapped, staged };
enum class LogLevel : std::uint8_t { off, error, warning, info, debug, trace };

struct Grid {
  std::int32_t rows = 1;
  std::int32_t columns = 1;
  friend bool operator==(const Grid&, const Grid&) = default;
};

/// Tiles and their distribution in elements; empty is `auto`.
struct Layout {
  std::optional<Grid> grid;            ///< nodes
  std::optional<std::int64_t> tile;    ///< B
  std::optional<std::int64_t> strip;   ///< columns of each tile for the CPUs; k * `small`
  std::optional<std::int64_t> small;   ///< b
  std::optional<Hierarchy> hierarchy;  ///< CPU workers divide tasks into fine ones of `small`
  std::optional<std::int64_t> inner;   ///< inner blocking of QR kernels
  std::optional<std::int64_t> virtual_tiles;  ///< `virtual`: tiles per virtual tile in QR
  std::optional<Tree> tree;                   ///< how the virtual tiles of a QR panel become one R
};

struct Devices {
  std::optional<DeviceBackend> backend;
  std::optional<std::int64_t> per_node;
  std::optional<std::uint64_t> memory;  ///< bytes of each device to use at most
  std::optional<std::int64_t> streams;  ///< concurrent kernel streams per device
  std::int64_t nodes_per_device = 1;    ///< emulated: of a host, that share one
  double turn_us = 140;                 ///< until it turns to another node's work
  double link_rate = 0;                 ///< GB/s of each one, in each direction; 0: no limit
  double link_latency_us = 0;           ///< of a copy between them
  double switch_rate = 0;               ///< GB/s of what those of a PCI switch share
  std::optional<std::int64_t> devices_per_switch;   ///< nothing: all are on one
  std::optional<std::int64_t> switches_per_socket;  ///< likewise
};

/// Messages between nodes.
struct Messages {
  std::optional<MessagePath> path;   ///< preferred path, where possible
  bool explain = false;              ///< log the path of each message and the reason
  std::optional<ReaderWay> readers;  ///< nothing: auto
  /// Bytes of each device that are set aside for the program's own messages; nothing: none.
  std::optional<std::uint64_t> device_memory;
};

/// Operations of groups of nodes, where a call does not say otherwise.
struct Collectives {
  ReductionOrder order = ReductionOrder::ranks;
  std::optional<CollectiveAlgorithm> algorithm;
  std::optional<BufferCopies> copies;
  std::optional<std::uint64_t> fragment;  ///< bytes; pieces in which messages are forwarded
  bool explain = false;                   ///< node 0 says what was chosen, and why
};

struct Runtime {
  std::optional<std::int64_t> cpu_workers;  ///< per node
  Devices devices;
  std::optional<std::int64_t> window;                     ///< generated, unfinished tasks per node
  std::optional<Placement> placement = Placement::fixed;  ///< of tasks; nothing: auto
  Priorities priorities = Priorities::program;
  Messages messages;
  Collectives collectives;
  double watchdog_seconds = 60;
  double silence_seconds = 8;
  Wait wait = Wait::adaptive;
};

struct Logging {
  LogLevel level = LogLevel::info;
  std::optional<std::string> file;
};

struct Trace {
  std::optional<std::string> file;
};

struct Problem;

/// What `heddle solve` solves (problem.hpp), or nothing. A value.
class OptionalProblem {
 public:
  OptionalProblem();
  OptionalProblem(const OptionalProblem& other);
  OptionalProblem(OptionalProblem&& other) noexcept;
  OptionalProblem& operator=(OptionalProblem other) noexcept;
  ~OptionalProblem();

  [[nodiscard]] bool has_value() const { return value_ != nullptr; }
  [[nodiscard]] explicit operator bool() const { return has_value(); }
  [[nodiscard]] const Problem& operator*() const { return *value_; }
  [[nodiscard]] const Problem* operator->() const { return value_.get(); }
  [[nodiscard]] Problem* operator->() { return value_.get(); }
  void emplace();
  void reset();

 private:
  std::unique_ptr<Problem> value_;
};

}  // namespace config

/// All settings of a run. A value: copy it, change it, pass it to a Node.
///
/// A loaded configuration has been checked: types, ranges and combinations. Check one filled by
/// hand with `from_text(to_json(config).dump(), name)`.
struct Config {
  std::string name;                 ///< its source, for messages; not a setting
  config::OptionalProblem problem;  ///< absent in files for driver programs
  config::Layout layout;
  config::Runtime runtime;
  std::optional<std::string> machine;  ///< file written by `heddle tune`; empty is `auto`
  config::Logging logging;
  config::Trace trace;

  /// Reads `path`, then applies `overrides` ("key.path=value", the value in YAML) in order. Setting
  /// `file` of a matrix or of right-hand sides clears `generate` with its options, and vice versa.
  /// Throws ConfigError with all errors of the file and the overrides.
  [[nodiscard]] static Config from_file(const std::string& path,
                                        std::span<const std::string> overrides = {});
  /// The same for `text`; `source_name` stands for the file name in messages.
  [[nodiscard]] static Config from_text(const std::string& text, const std::string& source_name,
                                        std::span<const std::string> overrides = {});
  /// The problem; throws ConfigError if the file has none.
  [[nodiscard]] const config::Problem& require_problem() const;
};

}  // namespace heddle
