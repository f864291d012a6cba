#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The solver's report (JSON), final table and progress line.
namespace heddle {

enum class RunStatus : std::uint8_t { ok, not_positive_definite, rank_deficient, failed };

/// The word in the report: "not_positive_definite".
[[nodiscard]] std::string_view status_name(RunStatus status);

/// Scaled residuals below this are of the order of rounding errors.
inline constexpr double residual_limit = 10;

/// Fraction of the workers' time taken by a virtual machine's host from which on it is reported:
/// visible in a factorization's time.
inline constexpr double stolen_share_told = 0.01;
/// `stolen_s` as a fraction of the workers' time during a factorization; nothing if that is 0.
[[nodiscard]] std::optional<double> stolen_share(double stolen_s, double workers, double factor_s);

/// Version of this build.
[[nodiscard]] std::string_view heddle_version();

/// All results of a run. An empty optional was not computed or does not apply; it is null in JSON,
/// as is a non-finite number. Sizes in bytes, times in seconds.
struct Report {
  struct Seconds {
    std::optional<double> start;  ///< from the start of node 0's process to the plan
    std::optional<double> read;
    /// What the factorization needs: its memory, kernels, and the rate of DGEMM to compare it with.
    std::optional<double> prepare;
    std::optional<double> factor, solve, verify, write;
    /// What `read` and `factor` have in common: the factorization began before all was read.
    std::optional<double> overlap;
    std::optional<double> total;  ///< from the start of node 0's process
    friend bool operator==(const Seconds&, const Seconds&) = default;
  };
  struct Peak {
    std::optional<std::uint64_t> host, device;
    friend bool operator==(const Peak&, const Peak&) = default;
  };
  struct Thread {
    std::string role;  ///< "worker 0", "generation"
    std::int64_t node = 0;
    double busy = 0;     ///< seconds
    double waiting = 0;  ///< seconds
    std::uint64_t tasks = 0;
    friend bool operator==(const Thread&, const Thread&) = default;
  };
  struct NodeGrid {
    std::int64_t rows = 1;
    std::int64_t columns = 1;
    friend bool operator==(const NodeGrid&, const NodeGrid&) = default;
  };

  RunStatus status = RunStatus::failed;
  std::int64_t info = 0;  ///< as in LAPACK
  std::string hint;       ///< failures: meaning and remedy

  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t nrhs = 0;
  std::string factorization = "cholesky";
  std::int64_t nodes = 1;
  std::int64_t nodes_per_host = 1;  ///< of node 0's host
  NodeGrid grid;
  std::optional<std::int64_t> tile, strip, small, inner;
  std::string hierarchy = "off";              ///< on: CPU workers divided tasks into fine ones
  std::string placement = "static";           ///< dynamic: CPU workers may take devices' tasks
  std::optional<std::int64_t> virtual_tiles;  ///< `virtual`
  std::optional<std::string> tree;            ///< QR: flat, binomial
  std::vector<std::string> chosen;            ///< keys of `layout` that were `auto`
  std::int64_t cpu_workers = 0;               ///< per node
  std::int64_t window = 8192;                 ///< limit of unfinished tasks per node
  std::string priorities = "program";         ///< path: by the longest path
  std::int64_t devices = 0;                   ///< per node
  std::string device_backend = "none";
  std::string blas_kernels;                 ///< OpenBLAS kernel set: "Haswell"
  std::optional<std::string> machine_file;  ///< measurements in use
  std::string version{heddle_version()};
  bool reproducible = true;  ///< equal input and tiles give equal bits (static placement)

  Seconds seconds;
  /// CPU time that hypervisors took from the hosts during the factorization (stolen_seconds()).
  std::optional<double> stolen;
  std::optional<double> gflops;       ///< of the factorization
  std::optional<double> gemm_gflops;  ///< of DGEMM on the same cores and devices
  std::optional<double> efficiency;   ///< gflops / gemm_gflops
  std::string verification = "none";  ///< "auto" or "full": by what residuals are computed
  std::optional<double> residual;     ///< maximum of the two below
  std::optional<double> factorization_residual;  ///< |A - L L'| or |A - Q R|, scaled
  /// b - A x|, scaled, maximum over columns; least squares: |A' (b - A x)|.
  std::optional<double> solution_residual;
  std::optional<std::vector<double>> residual_norms;  ///< least squares: |b - A x|_2 per column
  std::optional<double> orthogonality;                ///< |I - Q' Q|, scaled; QR
  std::optional<double> log_determinant;              ///< Cholesky

  std::uint64_t tasks = 0;
  std::uint64_t messages = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t copies = 0;  ///< between host and devices
  std::uint64_t bytes_copied = 0;
  std::uint64_t evictions = 0;
  std::uint64_t tasks_lent = 0;  ///< of devices' tasks, what CPU workers ran
  Peak peak_bytes;
  std::optional<std::uint64_t> device_memory;  ///< per device, for tiles
  std::vector<Thread> threads;

  friend bool operator==(const Report&, const Report&) = default;
};

/// All fields of the report under their documented names.
[[nodiscard]] nlohmann::json to_json(const Report& report);

/// Inverse of to_json(). Throws Error(usage) with the field that is missing or wrong.
[[nodiscard]] Report report_from_json(const nlohmann::json& json);

/// A JSON document as the text of a file.
[[nodiscard]] std::string json_text(const nlohmann::json& document);

/// The report as a table for a terminal of 80 columns; ends with a line break.
[[nodiscard]] std::string final_table(const Report& report);

/// Progress of a phase.
struct Progress {
  std::string_view phase;  ///< "factorizing"
  double done = 0;         ///< flops, bytes or tasks
  double total = 0;        ///< of the phase; 0: nothing to do
  double elapsed_seconds = 0;
  std::string_view rate = "GFLOP/s";  ///< 10^9 of `done` in a second; empty: not shown
};

/// "factorizing  43 %  97.1 GFLOP/s  ETA 12 s"; rate and ETA only once known.
[[nodiscard]] std::string progress_text(const Progress& progress);

/// A terminal line that is overwritten as the run advances; does nothing on other streams. Not
/// thread-safe; does not own the stream.
class ProgressLine {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds interval{100};  ///< minimum time between two updates

  explicit ProgressLine(std::FILE* stream);
  /// For a stream that may be forwarded to a terminal.
  ProgressLine(std::FILE* stream, bool active) : stream_(stream), active_(active) {}
  ~ProgressLine();  ///< clears the line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  [[nodiscard]] bool active() const { return active_; }

  /// Shows `progress`, cut to the terminal's width, unless the last update was less than `interval`
  /// before `now`; a new phase is shown at once.
  void update(const Progress& progress, Clock::time_point now = Clock::now());

  /// Clears the line before other output.
  void clear();

 private:
  std::FILE* stream_;
  bool active_;
  bool shown_ = false;
  std::string phase_;
  Clock::time_point last_{};
};

}  // namespace heddle
