#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "config/enums.hpp"

/// The typed configuration of a run. The initial values below are the defaults: the option table
/// (options.hpp) takes them from here for the help text and the JSON Schema. An empty optional
/// means `auto` where the file may say `auto`, else "left out".
namespace heddle {
namespace config {

/// Where the matrix comes from. Exactly one of `file` and `generate` is set; the other members
/// count only with `generate`, and only for the kinds that the option table lists.
struct Matrix {
  std::optional<std::string> file;     ///< .npy or .mtx, relative to the current directory
  std::optional<MatrixKind> generate;  ///< made tile by tile from `seed`
  std::int64_t n = 0;                  ///< columns
  std::optional<std::int64_t> m;       ///< rows; a loaded configuration always has them
  double condition = 1.0e4;            ///< spd, conditioned: 2-norm condition number; graded:
                                       ///< largest over smallest scale of a column
  std::uint64_t seed = 1;
  double range = 0.1;                ///< kriging: correlation length, points lie in the unit square
  double smoothness = 1.5;           ///< kriging: Matern order
  double nugget = 1.0e-2;            ///< kriging: added to the diagonal
  std::optional<std::int64_t> rank;  ///< dependent: independent columns; always there once loaded
  double distance = 1.0e-10;         ///< dependent: largest deviation from the linear dependence

  [[nodiscard]] std::int64_t rows() const { return m.value_or(n); }
  [[nodiscard]] std::int64_t independent_columns() const {
    return rank.value_or(n > 0 ? n - 1 : 0);
  }
};

/// Where the right-hand sides come from. Exactly one of `file` and `generate` is set.
struct Rhs {
  std::optional<std::string> file;  ///< .npy or .mtx
  std::optional<RhsKind> generate;
  std::int64_t columns = 1;
  std::uint64_t seed = 2;
};

/// What is written; each may be left out.
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

/// Tiles and their distribution; empty is `auto`. Elements are counted, not bytes.
struct Layout {
  std::optional<Grid> grid;            ///< nodes
  std::optional<std::int64_t> tile;    ///< B
  std::optional<std::int64_t> strip;   ///< columns of each tile kept by the CPUs; s * small
  std::optional<std::int64_t> small;   ///< b
  std::optional<Hierarchy> hierarchy;  ///< CPU workers divide tasks into fine ones of `small`
  std::optional<std::int64_t> inner;   ///< inner blocking of QR kernels
  std::optional<std::int64_t> virtual_tiles;  ///< `virtual`: tiles per virtual tile in QR
  std::optional<Tree> tree;                   ///< how the virtual tiles of a QR panel become one R
};

/// Keys of `layout` that are left to the program, in the order above.
[[nodiscard]] std::vector<std::string> keys_left_open(const Layout& layout);

struct Devices {
  std::optional<DeviceBackend> backend;
  std::optional<std::int64_t> per_node;
  std::optional<std::uint64_t> memory;  ///< bytes of each device that may be used
  std::optional<std::int64_t> streams;  ///< of each device that kernels run on side by side
};

/// Between nodes.
struct Messages {
  std::optional<MessagePath> path;  ///< taken wherever it can be
  bool explain = false;             ///< tell how messages came, and why that way
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
  Wait wait = Wait::adaptive;
};

struct Logging {
  LogLevel level = LogLevel::info;
  std::optional<std::string> file;
};

struct Trace {
  std::optional<std::string> file;
};

/// One thing that is wrong with a configuration.
struct Diagnostic {
  std::string source;   ///< the file's name, or "--set 1: layout.tlie=7"
  int line = 0;         ///< from 1; 0 when the source as a whole is meant
  int column = 0;       ///< from 1, in characters
  std::string path;     ///< dotted path of the key, empty for the whole document
  std::string message;  ///< what was expected and what was found
  std::string nearest;  ///< nearest valid key or value, or empty

  /// "file:3:5: problem.matrx: unknown key; expected ...; did you mean 'matrix'?"
  [[nodiscard]] std::string to_string() const;
};

}  // namespace config

/// Every error of a configuration at once; `what()` has one line for each. Exit status 2.
class ConfigError : public Error {
 public:
  explicit ConfigError(std::vector<config::Diagnostic> diagnostics);

  /// Ordered by source (file first, then each --set), line and column; never empty.
  [[nodiscard]] const std::vector<config::Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  std::vector<config::Diagnostic> diagnostics_;
};

/// Everything that a run can be told. A value: copy it, change it, hand it to a Node.
///
/// A loaded configuration has been checked: types, ranges and combinations hold. Whoever fills one
/// by hand can check it with `from_text(to_json(config).dump(), name)`.
struct Config {
  std::string name;  ///< where it was read from, for messages; no effective value
  std::optional<config::Problem> problem;  ///< absent in a file for driver programs
  config::Layout layout;
  config::Runtime runtime;
  std::optional<std::string> machine;  ///< a file that `heddle tune` wrote; empty is `auto`
  config::Logging logging;
  config::Trace trace;

  /// Reads `path`, then applies `overrides` ("key.path=value", the value in YAML) in order; a later
  /// one replaces an earlier one and the file. Setting `file` of a matrix or of right-hand sides
  /// clears `generate` and vice versa, with the file's options that no longer apply.
  /// Throws ConfigError with all errors of the file and the overrides.
  [[nodiscard]] static Config from_file(const std::string& path,
                                        std::span<const std::string> overrides = {});

  /// The same for `text`; `source_name` stands for the file's name in messages.
  [[nodiscard]] static Config from_text(const std::string& text, const std::string& source_name,
                                        std::span<const std::string> overrides = {});

  /// The problem, or a ConfigError that says that the file has none.
  [[nodiscard]] const config::Problem& require_problem() const;
};

/// The effective values, every default filled in, nested as in the file. It is a valid
/// configuration file itself, and loading it gives the same values again.
[[nodiscard]] nlohmann::json to_json(const Config& config);

/// Hash of the effective values. Equal for equal values on every node and in every run of the same
/// version; nodes compare it at start to find that they were started differently.
[[nodiscard]] std::uint64_t fingerprint(const Config& config);

}  // namespace heddle
