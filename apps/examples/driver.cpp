/// A program on heddle's library, to read from top to bottom and to begin your own with.
///
/// It keeps one node runtime alive and works with it as a long-running program would: it makes
/// three matrices, submits their factorizations at once, watches them, solves with those that are
/// finished while others run, cancels one, checks the results, fits a model to measurements by
/// least squares, twice with one factorization, and then runs an algorithm of its own, with a
/// kernel of its own, on the same runtime.
///
///   heddle_driver [N]                       one node; N is the order of the largest matrix
///   mpiexec.mpich -n 3 heddle_driver [N]    three nodes
///
/// Under mpiexec every process runs this program from main() to the end and is one node. The one
/// rule of it: all nodes make the same matrices and jobs in the same order. So whatever decides
/// what is submitted next must be known to all nodes alike; see `look()`.

#include <algorithm>
#include <base/standard_streams.hpp>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <heddle.hpp>
#include <mpi.h>
#include <numbers>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

// ---- three systems of equations ----------------------------------------------------------------

/// One A x = b: what is to be solved, and how far it has come.
struct System {
  const char* name;
  std::int64_t n;
  double range;  ///< correlation length of the covariance A, in rows
  heddle::Matrix<double> a;
  heddle::Matrix<double> x;
  std::optional<heddle::Job> factorization;
  std::optional<heddle::Job> solution;
  bool unwanted = false;  ///< to be dropped half-way, for it is not needed after all
  bool dropped = false;
  double progress = 0;     ///< of the factorization, over all nodes
  bool factored = false;   ///< on all nodes, as of the last look()
  bool solved = false;     ///< the same
  bool announced = false;  ///< told the user
};

/// Covariance of measurements along a line, with some noise: symmetric positive definite.
double covariance(std::int64_t i, std::int64_t j, double range) {
  const double distance = std::abs(static_cast<double>(i - j));
  return std::exp(-distance / range) + (i == j ? 0.01 : 0.0);
}

double right_hand_side(std::int64_t i, std::int64_t column) {
  return std::sin(0.01 * static_cast<double>((i + 1) * (column + 1)));
}

/// A symmetric matrix, which has only the tiles on and below the diagonal. The node chooses how it
/// is cut into tiles and dealt out to nodes and devices.
heddle::Matrix<double> symmetric(heddle::Node& node, std::int64_t n) {
  return node.matrix<double>(n, n, heddle::Storage::lower);
}

/// Makes A and b.
System make(heddle::Node& node, const char* name, std::int64_t n, double range) {
  // fill() asks for element (i, j), counted from 0, on the node that keeps it, from the threads of
  // the node in parallel: the function must not change anything.
  heddle::Matrix<double> a = symmetric(node, n);
  a.fill([range](std::int64_t i, std::int64_t j) { return covariance(i, j, range); });

  // Right-hand sides are dealt out like the diagonal of A; two columns here.
  heddle::Matrix<double> x = heddle::right_hand_sides(a, 2);
  x.fill(right_hand_side);

  return {name, n, range, a, x, {}, {}};
}

/// Brings what the program decides by to the same state on all nodes. done() and progress() tell
/// what this node knows now, and another node may know it a moment later: if each submitted a solve
/// whenever it saw a job done, the order of jobs could differ. So they look together.
void look(heddle::Node& node, std::vector<System>& systems) {
  std::vector<double> done;
  std::vector<double> progress;
  for (const System& s : systems) {
    done.push_back(s.factorization->done() ? 1 : 0);
    done.push_back(s.solution && s.solution->done() ? 1 : 0);
    progress.push_back(s.factorization->progress());
  }
  node.all_reduce(done, heddle::Reduction::minimum);
  node.all_reduce(progress, heddle::Reduction::sum);
  for (std::size_t k = 0; k < systems.size(); ++k) {
    systems[k].factored = done[2 * k] > 0;
    systems[k].solved = done[2 * k + 1] > 0;
    systems[k].progress = progress[k] / node.size();
  }
}

/// Throws unless the job did what it was to do.
void expect_done(const heddle::JobResult& result, const char* what) {
  using Status = heddle::JobResult::Status;
  if (result.status == Status::done) return;
  if (result.status == Status::numerical_failure) {
    throw heddle::Error(heddle::ErrorCode::numerical,
                        std::string(what) + ": the leading minor of order " +
                            std::to_string(result.info) + " is not positive definite");
  }
  throw heddle::Error(heddle::ErrorCode::internal, std::string(what) + " did not end well");
}

void print_progress(const heddle::Node& node, const std::vector<System>& systems) {
  if (node.rank() != 0) return;
  std::printf("  factored:");
  for (const System& s : systems) {
    if (s.dropped) {
      std::printf("  %s dropped", s.name);
    } else {
      std::printf("  %s %3.0f %%", s.name, 100 * s.progress);
    }
  }
  std::printf("\n");
}

/// Ends a factorization early.
void drop(const heddle::Node& node, System& s) {
  // Tasks that have not begun are skipped, on all nodes. Any node may call it, one would do. The
  // job is over when wait() returns, and the content of the matrix is then undefined.
  s.factorization->cancel();
  const heddle::JobResult& result = s.factorization->wait();
  s.dropped = true;
  if (node.rank() != 0) return;
  const bool was_in_time = result.status == heddle::JobResult::Status::cancelled;
  std::printf("  %s is not needed after all: %s at %.0f %%\n", s.name,
              was_in_time ? "cancelled" : "finished before it could be cancelled,",
              100 * s.progress);
}

/// Goes on with each system as far as it has come. False once there is nothing left to wait for.
bool advance(heddle::Node& node, std::vector<System>& systems) {
  bool more = false;
  for (System& s : systems) {
    if (s.dropped) continue;
    if (s.unwanted && s.progress > 0.5 && !s.factored) {
      drop(node, s);
      continue;
    }
    if (s.factored && !s.solution) {
      expect_done(s.factorization->wait(), "a factorization");  // it is done: returns at once
      // In place: x, which holds b, becomes the solution. The other factorizations go on.
      s.solution = node.submit(heddle::solve_cholesky(s.a, s.x));
    }
    if (s.solved && !std::exchange(s.announced, true) && node.rank() == 0) {
      std::printf("  %s is solved\n", s.name);
    }
    more = more || !s.solved;
  }
  return more;
}

/// Watches the jobs until all are over.
void watch(heddle::Node& node, std::vector<System>& systems) {
  using Clock = std::chrono::steady_clock;
  const Clock::duration interval = std::chrono::milliseconds(100);
  Clock::time_point next = Clock::now();
  do {
    look(node, systems);
    // Each node has a clock of its own, so nothing but printing may depend on it.
    if (Clock::now() >= next) {
      print_progress(node, systems);
      next = Clock::now() + interval;
    }
    // A program with work of its own would do that here. This one only watches, and leaves the
    // processor to the workers meanwhile.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  } while (advance(node, systems));
}

/// max over columns of |b - A x| / (n (|A| |x| + |b|) eps): below about 10 is as good as doubles
/// can be.
double residual(heddle::Node& node, const System& s) {
  heddle::Matrix<double> a = symmetric(node, s.n);  // s.a holds the factor now
  a.fill([&s](std::int64_t i, std::int64_t j) { return covariance(i, j, s.range); });
  heddle::Matrix<double> r = heddle::right_hand_sides(a, s.x.columns());
  r.fill(right_hand_side);
  const heddle::Norm a_norm = heddle::symmetric_one_norm(a);
  const std::vector<heddle::Norm> b_norms = heddle::column_norms(r);
  // r := r - A x. Jobs that share a matrix take effect in the order of submission.
  expect_done(node.submit(heddle::subtract_symmetric_product(r, a, s.x)).wait(), "the product");
  return heddle::scaled_solution_residual(heddle::column_norms(r), heddle::column_norms(s.x),
                                          b_norms, a_norm, static_cast<double>(s.n));
}

bool three_systems(heddle::Node& node, std::int64_t n_max) {
  std::vector<System> systems;
  systems.push_back(make(node, "small", n_max / 2, 20));
  systems.push_back(make(node, "medium", n_max * 3 / 4, 30));
  systems.push_back(make(node, "large", n_max, 40));
  systems[1].unwanted = true;
  // cholesky() only describes a job. submit() starts it and returns; three are in flight then. They
  // share the workers: whatever task of all three is most urgent runs next.
  for (System& s : systems) s.factorization = node.submit(heddle::cholesky(s.a));
  watch(node, systems);
  bool good = true;
  for (const System& s : systems) {
    if (s.dropped) continue;
    const double scaled = residual(node, s);
    const double log_determinant = heddle::log_determinant_of_factor(s.a);
    good = good && scaled < 10;
    if (node.rank() == 0) {
      std::printf("  %-6s n = %5lld  residual %.2g  log-determinant %.6f\n", s.name,
                  static_cast<long long>(s.n), scaled, log_determinant);
    }
  }
  return good;
}

// ---- results -----------------------------------------------------------------------------------

/// This node's part of a matrix, column by column; on one node all of it.
std::vector<double> part_of(const heddle::Matrix<double>& x) {
  std::vector<double> part(static_cast<std::size_t>(x.local_rows() * x.local_columns()));
  x.copy_to(part.data(), x.local_rows());
  return part;
}

/// The largest |x(i, j) - expected(i, j)|, on all nodes.
double error_of(heddle::Node& node, const heddle::Matrix<double>& x,
                const std::function<double(std::int64_t, std::int64_t)>& expected) {
  heddle::Matrix<double> right = node.matrix<double>(x.spec());  // cut and dealt out as x
  right.fill(expected);
  const std::vector<double> here = part_of(x);
  const std::vector<double> wanted = part_of(right);
  double worst = 0;
  for (std::size_t k = 0; k < here.size(); ++k) {
    worst = std::max(worst, std::abs(here[k] - wanted[k]));
  }
  node.all_reduce({&worst, 1}, heddle::Reduction::maximum);
  return worst;
}

// ---- least squares ------------------------------------------------------------------------------

/// One column of the model: a wave over the measurements' times, 0 to 1.
double wave(std::int64_t i, std::int64_t column, std::int64_t rows) {
  const double time = (static_cast<double>(i) + 0.5) / static_cast<double>(rows);
  return std::cos(std::numbers::pi * static_cast<double>(column) * time);
}

/// Fits waves to measurements: first to some whose parts we know, then to others, with the same
/// factorization. Returns the largest error of a part.
double fit_waves(heddle::Node& node, std::int64_t rows, std::int64_t waves) {
  // Cut and dealt out as the node sees fit: a tall matrix by rows.
  heddle::Matrix<double> a = node.matrix<double>(heddle::qr_spec(node, rows, waves));
  a.fill([rows](std::int64_t i, std::int64_t j) { return wave(i, j, rows); });
  // Takes the memory that the factors need beside A.
  const heddle::QrFactors q = heddle::qr(node, a);
  heddle::Job factorization = node.submit(q.factorize());

  // Right-hand sides lie beside A; their first rows, after Q^T, beside R.
  heddle::QrOperand b = q.operand(2);
  heddle::Matrix<double> x = heddle::right_hand_sides(q.r(), 2);
  double worst = 0;
  for (const double scale : {1.0, 3.0}) {
    b.x.fill([=](std::int64_t i, std::int64_t column) {
      // The second column has a part that no wave of the model can explain.
      const double other = column == 0 ? 0.0 : wave(i, waves + 5, rows);
      return scale * wave(i, 2, rows) - wave(i, waves - 1, rows) + other;
    });
    // x = inv(R) Q^T b. No waiting in between: these jobs share matrices, and take effect in the
    // order in which they were submitted.
    node.submit(q.apply_q_transposed(b));
    expect_done(node.submit(heddle::solve_upper(q.r(), x, b.top)).wait(), "the fit");
    const double error = error_of(node, x, [=](std::int64_t i, std::int64_t) {
      return i == 2 ? scale : i == waves - 1 ? -1.0 : 0.0;
    });
    // What is left of Q^T b below R is what the model cannot explain.
    const auto rest = heddle::column_two_norms(b.x, heddle::GlobalRow{waves});
    const auto expected = std::sqrt(static_cast<heddle::Norm>(rows) / 2);
    worst = std::max({worst, error, static_cast<double>(rest[0]),
                      static_cast<double>(std::abs(rest[1] - expected))});
  }
  expect_done(factorization.wait(), "the factorization");
  return worst;
}

// ---- an algorithm of our own -------------------------------------------------------------------

/// Heat in a ring: each step replaces a point by itself plus `rate` times what its neighbours have
/// more. A kernel sees its tiles in the order in which the task names them. It computes on one
/// thread, keeps no state, and returns 0, or a positive number where the mathematics fail.
std::int64_t diffuse(const heddle::KernelArguments& arguments) {
  const heddle::TileView next = arguments.tiles[0];
  const heddle::TileView before = arguments.tiles[1];
  const heddle::TileView here = arguments.tiles[2];
  const heddle::TileView after = arguments.tiles[3];
  const auto rate = arguments.parameters.as<double>();
  for (std::int64_t i = 0; i < here.rows; ++i) {
    const double left = i > 0 ? here(i - 1, 0) : before(before.rows - 1, 0);
    const double right = i + 1 < here.rows ? here(i + 1, 0) : after(0, 0);
    next(i, 0) = here(i, 0) + rate * (left - 2 * here(i, 0) + right);
  }
  return 0;
}

/// A kernel is a constant: tasks refer to it by address. The name is what a trace shows.
/// `.emulated` would let emulated devices run it; this one works on the host.
constexpr heddle::Kernel diffuse_kernel{.name = "diffuse", .host = diffuse};

/// Runs `steps` steps and returns the largest error, which is known because a wave around the ring
/// keeps its shape and only fades.
double heat_in_a_ring(heddle::Node& node, std::int64_t points, int steps) {
  constexpr double rate = 0.25;
  // A column vector in 12 tiles, dealt out round by round: our own layout this time.
  heddle::MatrixSpec spec(points, 1);
  spec.layout.tile = points / 12;
  spec.distribution = {node.size(), 1, 0};  // grid rows, grid columns, devices
  heddle::Matrix<double> now = node.matrix<double>(spec);
  heddle::Matrix<double> next = node.matrix<double>(spec);
  const double angle = 2 * std::numbers::pi / static_cast<double>(points);
  now.fill([=](std::int64_t i, std::int64_t) { return std::cos(angle * static_cast<double>(i)); });

  heddle::TaskOptions options;
  options.parameters = heddle::KernelParameters(rate);

  // The tasks of a sequential program, as one would write the loops without a runtime. Which tile
  // is sent where, which tasks may run at once, and which must wait follows from what they read
  // and write. Every node inserts all tasks; each runs those whose main output (named first) lives
  // on it. insert() waits by itself while too many tasks are unfinished.
  heddle::UserStream stream = node.stream("heat", {now, next});
  const std::int32_t tiles = now.layout().tile_rows();
  const auto tile = [tiles](const heddle::Matrix<double>& m, std::int32_t i) {
    return m(heddle::TileRow{(i + tiles) % tiles}, heddle::TileColumn{0});
  };
  for (int step = 0; step < steps; ++step) {
    for (std::int32_t i = 0; i < tiles; ++i) {
      stream.insert(diffuse_kernel,
                    {write(tile(next, i)), read(tile(now, i - 1)), read(tile(now, i)),
                     read(tile(now, i + 1))},
                    options);
    }
    std::swap(now, next);
  }
  expect_done(stream.end().wait(), "the ring");

  const double faded = std::pow(1 - 2 * rate * (1 - std::cos(angle)), steps);
  return error_of(node, now, [=](std::int64_t i, std::int64_t) {
    return faded * std::cos(angle * static_cast<double>(i));
  });
}

// ---- from the beginning to the end -------------------------------------------------------------

int run(std::int64_t n_max) {
  // A configuration from text here; Config::from_file reads one (config/presets/node.yaml). An
  // empty one leaves all to the node: workers on all cores, no devices without a GPU.
  const heddle::Config config = heddle::Config::from_text("logging: {level: warning}\n", "driver");

  // The node starts its threads here and ends them in stop(). In a process that stands alone
  // MPI_COMM_WORLD has one member; programs without MPI write Node node(config).
  heddle::Node node(config, MPI_COMM_WORLD);
  const bool first = node.rank() == 0;
  if (first) {
    std::printf("%d node%s with %d worker%s each\n", node.size(), node.size() == 1 ? "" : "s",
                node.cpu_workers(), node.cpu_workers() == 1 ? "" : "s");
    std::printf("three factorizations at once:\n");
  }
  bool good = three_systems(node, n_max);

  const double misfit = fit_waves(node, 20 * n_max, 32);
  good = good && misfit < 1e-9;
  if (first) {
    std::printf("least squares:\n  32 waves in %lld measurements, error %.2g\n",
                static_cast<long long>(20 * n_max), misfit);
  }

  constexpr int steps = 500;
  const double error = heat_in_a_ring(node, 12'000, steps);
  good = good && error < 1e-12;
  if (first) {
    std::printf("an algorithm of our own:\n  %d steps of heat in a ring, error %.2g\n", steps,
                error);
    std::printf("%s\n", good ? "all is well" : "A RESULT IS WRONG");
  }
  // All nodes end together. A node that is destroyed without this, as where an exception leaves it,
  // fails the others.
  node.stop();
  return good ? 0 : 1;
}

/// The order of the largest matrix from the command line.
std::int64_t order_from(int count, char** words) {
  if (count < 2) return 4000;
  char* end = nullptr;
  const long long n = std::strtoll(words[1], &end, 10);
  if (count > 2 || *end != '\0' || n < 4 || n > 100'000) {
    throw heddle::Error(heddle::ErrorCode::usage,
                        "usage: heddle_driver [N], the order of the largest matrix, 4 to 100000");
  }
  return n;
}

}  // namespace

int main(int count, char** words) {
  // First of all: else what is printed could go into a file or socket that has got the number.
  heddle::open_standard_streams();
  // heddle calls MPI from one thread of its own, which this level of thread support allows.
  int provided = 0;
  MPI_Init_thread(&count, &words, MPI_THREAD_SERIALIZED, &provided);
  int status = 0;
  try {
    status = run(order_from(count, words));
  } catch (const heddle::Error& error) {
    // what() says what happened, where, and what to do; code() what kind of failure it was.
    static_cast<void>(std::fprintf(stderr, "heddle_driver: %s\n", error.what()));
    status = heddle::exit_status(error.code());
  } catch (const std::exception& error) {
    static_cast<void>(std::fprintf(stderr, "heddle_driver: %s\n", error.what()));
    status = 1;
  }
  // After a failure other nodes may be gone, and MPI_Finalize would wait for them.
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Finalize();
  return status;
}
