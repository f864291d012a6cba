#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "config/enums.hpp"

/// Typed configuration of a run. The initial values are the defaults; the option table
/// (options.hpp) takes them from here for the help text and the JSON Schema. An empty optional
/// means `auto` where the option accepts it, else "left out".
namespace heddle {
namespace config {

/// Source of the matrix. Exactly one of `file` and `generate` is set; the other members apply only
/// with `generate`, for the kinds that the option table lists.
struct Matrix {
  std::optional<std::string> file;     ///< .npy or .mtx, relative to the current directory
  std::optional<MatrixKind> generate;  ///< made tile by tile from `seed`
  std::int64_t n = 0;                  ///< columns
  std::optional<std::int64_t> m;       ///< rows; always set once loaded
  double condition = 1.0e4;            ///< spd, conditioned: 2-norm condition number; graded:
                                       ///< largest over smallest scale of a column
  std::uint64_t seed = 1;
  double range = 0.1;                ///< kriging: correlation length; points lie in the unit square
  double smoothness = 1.5;           ///< kriging: Matern order
  double nugget = 1.0e-2;            ///< kriging: added to the diagonal
  std::optional<std::int64_t> rank;  ///< dependent: independent columns; always set once loaded
  double distance = 1.0e-10;         ///< dependent: largest deviation from the linear dependence

  [[nodiscard]] std::int64_t rows() const { return m.value_or(n); }
  [[nodiscard]] std::int64_t independent_columns() const {
    return rank.value_or(n > 0 ? n - 1 : 0);
  }
};

/// Source of the right-hand sides. Exactly one of `file` and `generate` is set.
struct Rhs {
  std::optional<std::string> file;  ///< .npy or .mtx
  std::optional<RhsKind> generate;
  std::int64_t columns = 1;
  std::uint64_t seed = 2;
};

/// Files to write; each is optional.
struct Output {
  std::optional<std::string> solution;  ///< .npy
  std::optional<std::string> factor;    ///< .npy; of QR: R, n x n
  std::optional<std::string> q;         ///< .npy; QR only: the thin Q, m x n
};

struct Problem {
  Factorization factorization = Factorization::cholesky;
  Matrix matrix;
  std::optional<Rhs> rhs;
  Output output;
  bool verify = true;
};

struct Grid {
  std::int32_t rows = 1;
  std::int32_t columns = 1;
  friend bool operator==(const Grid&, const Grid&) = default;
};

/// Tiles and their distribution in elements; empty is `auto`.
struct Layout {
  std::optional<Grid> grid;          ///< nodes
  std::optional<std::int64_t> tile;  ///< B
  std::optional<std::int64_t>
      strip;  ///< columns of each tile kept by the CPUs; a multiple of `small`
  std::optional<std::int64_t> small;   ///< b
  std::optional<Hierarchy> hierarchy;  ///< CPU workers divide tasks into fine ones of `small`
  std::optional<std::int64_t> inner;   ///< inner blocking of QR kernels
  std::optional<std::int64_t> virtual_tiles;  ///< `virtual`: tiles per virtual tile in QR
  std::optional<Tree> tree;                   ///< how the virtual tiles of a QR panel become one R
};

/// Keys of `layout` that are `auto`, in the order above.
[[nodiscard]] std::vector<std::string> keys_left_open(const Layout& layout);

struct Devices {
  std::optional<DeviceBackend> backend;
  std::optional<std::int64_t> per_node;
  std::optional<std::uint64_t> memory;  ///< bytes of each device to use at most
  std::optional<std::int64_t> streams;  ///< concurrent kernel streams per device
};

/// Messages between nodes.
struct Messages {
  std::optional<MessagePath> path;  ///< preferred path, where possible
  bool explain = false;             ///< log the path of each message and the reason
  /// Bytes of each device that are set aside for the program's own messages; nothing: none.
  std::optional<std::uint64_t> device_memory;
};

struct Runtime {
  std::optional<std::int64_t> cpu_workers;  ///< per node
  Devices devices;
  std::optional<std::int64_t> window;                     ///< generated, unfinished tasks per node
  std::optional<Placement> placement = Placement::fixed;  ///< of tasks; nothing: auto
  Priorities priorities = Priorities::program;
  Messages messages;
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

/// One error of a configuration.
struct Diagnostic {
  std::string source;   ///< file name, or "--set 1: layout.tlie=7"
  int line = 0;         ///< from 1; 0: the whole source
  int column = 0;       ///< from 1, in characters
  std::string path;     ///< dotted path of the key, empty for the whole document
  std::string message;  ///< what was expected and what was found
  std::string nearest;  ///< nearest valid key or value, or empty

  /// "file:3:5: problem.matrx: unknown key; expected ...; did you mean 'matrix'?"
  [[nodiscard]] std::string to_string() const;
};

}  // namespace config

/// All errors of a configuration; `what()` has one line for each. Exit status 2.
class ConfigError : public Error {
 public:
  explicit ConfigError(std::vector<config::Diagnostic> diagnostics);

  /// Ordered by source (file first, then each --set), line and column; never empty.
  [[nodiscard]] const std::vector<config::Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  std::vector<config::Diagnostic> diagnostics_;
};

/// All settings of a run. A value: copy it, change it, pass it to a Node.
///
/// A loaded configuration has been checked: types, ranges and combinations. Check one filled by
/// hand with `from_text(to_json(config).dump(), name)`.
struct Config {
  std::string name;                        ///< its source, for messages; not a setting
  std::optional<config::Problem> problem;  ///< absent in files for driver programs
  config::Layout layout;
  config::Runtime runtime;
  std::optional<std::string> machine;  ///< file written by `heddle tune`; empty is `auto`
  config::Logging logging;
  config::Trace trace;

  /// Reads `path`, then applies `overrides` ("key.path=value", the value in YAML) in order; later
  /// ones win. Setting `file` of a matrix or of right-hand sides clears `generate` and vice versa,
  /// along with the file's options that no longer apply. Throws ConfigError with all errors of the
  /// file and the overrides.
  [[nodiscard]] static Config from_file(const std::string& path,
                                        std::span<const std::string> overrides = {});

  /// The same for `text`; `source_name` stands for the file name in messages.
  [[nodiscard]] static Config from_text(const std::string& text, const std::string& source_name,
                                        std::span<const std::string> overrides = {});

  /// The problem; throws ConfigError if the file has none.
  [[nodiscard]] const config::Problem& require_problem() const;
};

/// The effective values with all defaults, nested as in the file: a valid configuration that loads
/// to the same values.
[[nodiscard]] nlohmann::json to_json(const Config& config);

/// Hash of the effective values, equal for equal values on every node and in every run of the same
/// version. Nodes compare it at start to detect that they were started differently.
[[nodiscard]] std::uint64_t fingerprint(const Config& config);

}  // namespace heddle
