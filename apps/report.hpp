#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What the solver tells about a run: the report (JSON), the final table, and the progress line.
namespace heddle {

enum class RunStatus : std::uint8_t { ok, not_positive_definite, rank_deficient, failed };

/// The word in the report: "not_positive_definite".
[[nodiscard]] std::string_view status_name(RunStatus status);

/// A scaled residual below this is as good as rounding allows.
inline constexpr double residual_limit = 10;

/// Of the workers' time: what a virtual machine's host took beyond that can be seen in a
/// factorization's time.
inline constexpr double stolen_share_told = 0.01;
/// The share of all workers' time during a factorization that so many stolen seconds are; nothing
/// where it had no time.
[[nodiscard]] std::optional<double> stolen_share(double stolen_s, double workers, double factor_s);

/// Version of the program that was built.
[[nodiscard]] std::string_view heddle_version();

/// Everything that is known about one run. An empty optional was not computed or does not apply;
/// it is null in JSON, as is a number that is not finite. Sizes are bytes, times seconds.
struct Report {
  struct Seconds {
    std::optional<double> total, read, factor, solve, verify, write;
    friend bool operator==(const Seconds&, const Seconds&) = default;
  };
  struct Peak {
    std::optional<std::uint64_t> host, device;
    friend bool operator==(const Peak&, const Peak&) = default;
  };
  struct Thread {
    std::string role;  ///< "cpu worker 0", "generator"
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
  std::int64_t info = 0;  ///< LAPACK's
  std::string hint;       ///< failures: what it means and what to do

  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t nrhs = 0;
  std::string factorization = "cholesky";
  std::int64_t nodes = 1;
  std::int64_t nodes_per_host = 1;  ///< on node 0's
  NodeGrid grid;
  std::optional<std::int64_t> tile, strip, small, inner;
  std::string hierarchy = "off";              ///< on: CPU workers divided tasks into fine ones
  std::string placement = "static";           ///< dynamic: CPU workers may take devices' tasks
  std::optional<std::int64_t> virtual_tiles;  ///< `virtual`
  std::optional<std::string> tree;            ///< QR: flat, binomial
  std::vector<std::string> chosen;            ///< keys of `layout` that were left to the program
  std::int64_t cpu_workers = 0;               ///< per node
  std::int64_t window = 8192;                 ///< unfinished tasks that a node looks ahead
  std::string priorities = "program";         ///< path: by the longest path
  std::int64_t devices = 0;                   ///< per node
  std::string device_backend = "none";
  std::string blas_kernels;                 ///< OpenBLAS kernel set: "Haswell"
  std::optional<std::string> machine_file;  ///< the measurements that were used
  std::string version{heddle_version()};
  bool reproducible = true;  ///< the same input and tiles give the same bits (static placement)

  Seconds seconds;
  /// Processor time of all hosts during the factorization that what is above these virtual machines
  /// gave to others (stolen_seconds()).
  std::optional<double> stolen;
  std::optional<double> gflops;                  ///< of the factorization
  std::optional<double> gemm_gflops;             ///< of DGEMM on the same cores and devices
  std::optional<double> efficiency;              ///< gflops / gemm_gflops
  std::optional<double> residual;                ///< the largest of the two below
  std::optional<double> factorization_residual;  ///< |A - L L'| or |A - Q R|, scaled
  /// |b - A x|, scaled, largest of all columns; least squares: |A' (b - A x)|.
  std::optional<double> solution_residual;
  std::optional<std::vector<double>> residual_norms;  ///< least squares: |b - A x|_2 of each column
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
  std::optional<std::uint64_t> device_memory;  ///< bytes that each device has for tiles
  std::vector<Thread> threads;

  friend bool operator==(const Report&, const Report&) = default;
};

/// The report with the names of the documentation; every field is there.
[[nodiscard]] nlohmann::json to_json(const Report& report);

/// Reads what `to_json` made. Throws Error(usage) that names the field that is missing or wrong.
[[nodiscard]] Report report_from_json(const nlohmann::json& json);

/// A report, or another document, as the text of a file.
[[nodiscard]] std::string json_text(const nlohmann::json& document);

/// The report as a table for a terminal of 80 columns; ends with a line break.
[[nodiscard]] std::string final_table(const Report& report);

/// How far a phase has come.
struct Progress {
  std::string_view phase;  ///< "factorizing"
  double done = 0;         ///< flops
  double total = 0;        ///< flops of the phase; 0: nothing to do
  double elapsed_seconds = 0;
};

/// "factorizing  43 %  97.1 GFLOP/s  ETA 12 s"; the rate and ETA only once they are known.
[[nodiscard]] std::string progress_text(const Progress& progress);

/// One line on a terminal that is overwritten as the run goes on. On anything but a terminal it
/// writes nothing. Not thread-safe; does not own the stream.
class ProgressLine {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds interval{100};  ///< shortest time between two lines

  explicit ProgressLine(std::FILE* stream);
  /// For a stream that somebody else passes on to a terminal, or to nobody.
  ProgressLine(std::FILE* stream, bool active) : stream_(stream), active_(active) {}
  ~ProgressLine();  ///< clears the line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  [[nodiscard]] bool active() const { return active_; }

  /// Shows `progress` unless a line was shown less than `interval` before `now`; a new phase is
  /// shown at once. Cut to the terminal's width.
  void update(const Progress& progress, Clock::time_point now = Clock::now());

  /// Removes the line, so that other output can follow.
  void clear();

 private:
  std::FILE* stream_;
  bool active_;
  bool shown_ = false;
  std::string phase_;
  Clock::time_point last_{};
};

}  // namespace heddle
