// Which rate of DGEMM can a GPU hold, and by which of its library's kernels? C := C - A B^T, the
// update of a tile, on normally distributed numbers: cublasDgemm on one and several streams, then
// every algorithm that cublasLt proposes. A long run meets the power limit, a short one after a
// pause does not.
#include <array>
#include <chrono>
#include <cstdlib>
#include <cublasLt.h>
#include <exception>
#include <functional>
#include <limits>
#include <thread>

#include "bench/peers/cuda_support.hpp"

namespace peer = heddle::peer;

namespace {

constexpr double minus_one = -1;
constexpr double one = 1;
constexpr double zero = 0;
constexpr std::size_t workspace_bytes = std::size_t{32} << 20;  // what cuBLAS itself has on Hopper

struct Options {
  std::vector<std::int64_t> sizes{512, 1024, 1536, 2048, 3072, 4096, 8192};
  std::int64_t k = 0;
  std::vector<int> streams{1, 2, 4};
  double sustained = 1;
  bool burst = false;
  int algorithms = 24;
  int finalists = 3;
  double time_limit = 0;
};

struct Shape {
  std::int64_t m = 0;  ///< and n
  std::int64_t k = 0;

  [[nodiscard]] double flops() const {
    return 2 * static_cast<double>(m) * static_cast<double>(m) * static_cast<double>(k);
  }
};

/// A stream, and cuBLAS on it with workspace of its own.
class Lane {
 public:
  Lane() : blas_(peer::make_blas()), workspace_(workspace_bytes) {
    peer::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    peer::check(cublasSetStream(blas_.get(), stream_), "cublasSetStream");
    peer::check(cublasSetWorkspace(blas_.get(), workspace_.data(), workspace_.bytes()),
                "cublasSetWorkspace");
  }
  ~Lane() { cudaStreamDestroy(stream_); }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  [[nodiscard]] cudaStream_t stream() const { return stream_; }
  [[nodiscard]] cublasHandle_t blas() const { return blas_.get(); }
  [[nodiscard]] void* workspace() const { return workspace_.data(); }

 private:
  peer::BlasHandle blas_;
  peer::DeviceArray<std::byte> workspace_;
  cudaStream_t stream_ = nullptr;
};

/// Operands of many products, used in turns: more than caches hold where tiles are small, as in a
/// factorization.
class Operands {
 public:
  explicit Operands(const Shape& shape) : shape_(shape) {
    constexpr std::int64_t wanted_bytes = std::int64_t{512} << 20;
    const std::int64_t fitting = wanted_bytes / (shape.m * shape.m * 8);
    // A multiple of every number of streams, so that none works on another one's C.
    count_ = std::clamp<std::int64_t>(fitting, streams_max, 32) / streams_max * streams_max;
    a_ = peer::DeviceArray<double>(count_ * shape.m * shape.k);
    b_ = peer::DeviceArray<double>(count_ * shape.m * shape.k);
    c_ = peer::DeviceArray<double>(count_ * shape.m * shape.m);
    peer::fill_normal(columns_of(a_, 0));
    peer::fill_normal(columns_of(b_, a_.count() / shape.m));
    generate_c();
  }

  static constexpr std::int64_t streams_max = 4;

  [[nodiscard]] const double* a(std::int64_t call) const {
    return a_.data() + call % count_ * shape_.m * shape_.k;
  }
  [[nodiscard]] const double* b(std::int64_t call) const {
    return b_.data() + (call + 1) % count_ * shape_.m * shape_.k;
  }
  [[nodiscard]] double* c(std::int64_t call) const {
    return c_.data() + call % count_ * shape_.m * shape_.m;
  }

  /// The products of a configuration start from the same C as those of any other.
  void generate_c() {
    peer::fill_normal(columns_of(c_, 2 * a_.count() / shape_.m));
    peer::synchronize();
  }

 private:
  /// All of the matrices of an array as the columns of one.
  [[nodiscard]] peer::Block columns_of(const peer::DeviceArray<double>& all,
                                       std::int64_t first) const {
    return {.data = all.data(),
            .rows = shape_.m,
            .columns = all.count() / shape_.m,
            .leading = shape_.m,
            .column = first};
  }

  Shape shape_;
  std::int64_t count_ = 0;
  peer::DeviceArray<double> a_;
  peer::DeviceArray<double> b_;
  peer::DeviceArray<double> c_;
};

/// One way to multiply.
struct Contender {
  using Multiply =
      std::function<void(const Lane& lane, const double* a, const double* b, double* c)>;

  std::string peer;
  std::string details;  ///< " name=value" for each
  int streams = 1;
  Multiply multiply;
};

Contender blas_contender(const Shape& shape, int streams) {
  return {"cublas", "", streams,
          [shape](const Lane& lane, const double* a, const double* b, double* c) {
            peer::check(
                cublasDgemm_64(lane.blas(), CUBLAS_OP_N, CUBLAS_OP_T, shape.m, shape.m, shape.k,
                               &minus_one, a, shape.m, b, shape.m, &one, c, shape.m),
                "dgemm");
          }};
}

/// cublasLt's description of one shape, and the algorithms that it proposes.
class LtProducts {
 public:
  LtProducts(const Shape& shape, int algorithms) {
    const auto rows = static_cast<std::uint64_t>(shape.m);
    const auto inner = static_cast<std::uint64_t>(shape.k);
    const cublasOperation_t transposed = CUBLAS_OP_T;
    peer::check(cublasLtCreate(&handle_), "cublasLtCreate");
    peer::check(cublasLtMatmulDescCreate(&product_, CUBLAS_COMPUTE_64F, CUDA_R_64F), "the product");
    peer::check(cublasLtMatmulDescSetAttribute(product_, CUBLASLT_MATMUL_DESC_TRANSB, &transposed,
                                               sizeof transposed),
                "the product's transposition");
    peer::check(cublasLtMatrixLayoutCreate(&ab_, CUDA_R_64F, rows, inner, shape.m), "A's layout");
    peer::check(cublasLtMatrixLayoutCreate(&c_, CUDA_R_64F, rows, rows, shape.m), "C's layout");
    peer::check(cublasLtMatmulPreferenceCreate(&preference_), "the preference");
    peer::check(
        cublasLtMatmulPreferenceSetAttribute(preference_, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &workspace_bytes, sizeof workspace_bytes),
        "the preference's workspace");
    int count = 0;
    found_.resize(static_cast<std::size_t>(algorithms));
    peer::check(cublasLtMatmulAlgoGetHeuristic(handle_, product_, ab_, ab_, c_, c_, preference_,
                                               algorithms, found_.data(), &count),
                "cublasLtMatmulAlgoGetHeuristic");
    found_.resize(static_cast<std::size_t>(count));
  }
  ~LtProducts() {
    cublasLtMatmulPreferenceDestroy(preference_);
    cublasLtMatrixLayoutDestroy(c_);
    cublasLtMatrixLayoutDestroy(ab_);
    cublasLtMatmulDescDestroy(product_);
    cublasLtDestroy(handle_);
  }
  LtProducts(const LtProducts&) = delete;
  LtProducts& operator=(const LtProducts&) = delete;

  /// Valid as long as this object.
  [[nodiscard]] std::vector<Contender> contenders() const {
    std::vector<Contender> result;
    for (std::size_t index = 0; index < found_.size(); ++index) {
      const cublasLtMatmulHeuristicResult_t& found = found_[index];
      if (found.state != CUBLAS_STATUS_SUCCESS) continue;
      result.push_back(
          {"cublaslt", " index=" + std::to_string(index) + name_of(found), 1,
           [this, &found](const Lane& lane, const double* a, const double* b, double* c) {
             peer::check(
                 cublasLtMatmul(handle_, product_, &minus_one, a, ab_, b, ab_, &one, c, c_, c, c_,
                                &found.algo, lane.workspace(), workspace_bytes, lane.stream()),
                 "cublasLtMatmul");
           }});
    }
    return result;
  }

 private:
  /// All that distinguishes an algorithm, to be named elsewhere.
  static std::string name_of(const cublasLtMatmulHeuristicResult_t& found) {
    struct Attribute {
      const char* name;
      cublasLtMatmulAlgoConfigAttributes_t attribute;
      std::size_t size;
    };
    constexpr std::array<Attribute, 9> attributes{{
        {"algo", CUBLASLT_ALGO_CONFIG_ID, 4},
        {"tile", CUBLASLT_ALGO_CONFIG_TILE_ID, 4},
        {"stages", CUBLASLT_ALGO_CONFIG_STAGES_ID, 4},
        {"splitk", CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4},
        {"reduction", CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 4},
        {"swizzle", CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4},
        {"custom", CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4},
        {"inner", CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2},
        {"cluster", CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2},
    }};
    std::string text;
    for (const Attribute& a : attributes) {
      std::uint32_t value = 0;  // the two bytes of the short ones are its lower ones
      std::size_t written = 0;
      const cublasStatus_t status =
          cublasLtMatmulAlgoConfigGetAttribute(&found.algo, a.attribute, &value, a.size, &written);
      text += std::string(" ") + a.name + "=" +
              (status == CUBLAS_STATUS_SUCCESS ? std::to_string(value) : "none");
    }
    return text + " workspace=" + std::to_string(found.workspaceSize);
  }

  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatrixLayout_t ab_ = nullptr;
  cublasLtMatrixLayout_t c_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
  std::vector<cublasLtMatmulHeuristicResult_t> found_;
};

/// ‖(C − A Bᵀ) x − C' x‖ / (k ‖C' x‖ eps) with the C' that one call makes of C.
class ProductCheck {
 public:
  explicit ProductCheck(const Shape& shape)
      : shape_(shape), x_(shape.m), inner_(shape.k), expected_(shape.m), actual_(shape.m) {
    peer::fill_probes(x_.data(), shape.m, 1);
    peer::synchronize();
  }

  double residual(const Contender& contender, const Lane& lane, const Operands& operands) {
    const double* a = operands.a(0);
    const double* b = operands.b(0);
    double* c = operands.c(0);
    const std::int64_t m = shape_.m;
    apply(lane, CUBLAS_OP_N, m, c, x_, zero, one, expected_);
    apply(lane, CUBLAS_OP_T, shape_.k, b, x_, zero, one, inner_);
    apply(lane, CUBLAS_OP_N, shape_.k, a, inner_, one, minus_one, expected_);
    contender.multiply(lane, a, b, c);
    apply(lane, CUBLAS_OP_N, m, c, x_, zero, one, actual_);
    peer::synchronize();
    return peer::relative_difference(actual_.to_host(), expected_.to_host()) /
           (static_cast<double>(shape_.k) * std::numeric_limits<double>::epsilon());
  }

 private:
  /// y := beta y + alpha op(M) x; M has the shape's rows and `columns`.
  void apply(const Lane& lane, cublasOperation_t op, std::int64_t columns, const double* matrix,
             const peer::DeviceArray<double>& x, double beta, double alpha,
             const peer::DeviceArray<double>& y) const {
    peer::check(cublasDgemv_64(lane.blas(), op, shape_.m, columns, &alpha, matrix, shape_.m,
                               x.data(), 1, &beta, y.data(), 1),
                "dgemv");
  }

  Shape shape_;
  peer::DeviceArray<double> x_;
  peer::DeviceArray<double> inner_;
  peer::DeviceArray<double> expected_;
  peer::DeviceArray<double> actual_;
};

struct Rate {
  double median = 0;   ///< of batches in the second half of the run, GFLOP/s
  double best = 0;     ///< of all
  double clock = 0;    ///< at the end, MHz
  double seconds = 0;  ///< that the run lasted
};

/// All contenders of one shape, one after the other.
class Contest {
 public:
  Contest(const Shape& shape, const std::vector<Lane>& lanes, bool burst)
      : shape_(shape), lanes_(lanes), burst_(burst), operands_(shape), check_(shape) {}

  /// Runs a contender for `seconds`, checks one of its results, prints the line.
  void run(const Contender& contender, double seconds, const std::string& pass) {
    operands_.generate_c();
    const double residual = check_.residual(contender, lanes_.front(), operands_);
    const bool is_right = residual < peer::residual_max;
    is_right_ = is_right_ && is_right;
    const Rate rate = measure(contender, seconds);
    const std::string line = contender.details + " streams=" + std::to_string(contender.streams) +
                             " pass=" + pass + peer::figure("residual", residual) +
                             peer::figure("sm_mhz", rate.clock);
    print(contender.peer, "dgemm", line, rate);
    if (is_right && rate.median > best_rate_.median && pass != "first") {
      best_rate_ = rate;
      best_line_ = " of=" + contender.peer + line;
    }
    last_ = is_right ? rate.median : 0;
  }

  /// Of the last contender; 0 if its result was wrong.
  [[nodiscard]] double last_rate() const { return last_; }
  [[nodiscard]] bool is_right() const { return is_right_; }
  void print_best() const {
    if (best_rate_.median > 0) print("best", "dgemm_best", best_line_, best_rate_);
  }

 private:
  void call(const Contender& contender, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i, ++calls_) {
      contender.multiply(lanes_[static_cast<std::size_t>(calls_ % contender.streams)],
                         operands_.a(calls_), operands_.b(calls_), operands_.c(calls_));
    }
  }

  double seconds_of(const Contender& contender, std::int64_t count) {
    const double begin = peer::now();
    call(contender, count);
    peer::synchronize();
    return peer::now() - begin;
  }

  /// Batches that are short beside the run and long beside waiting for each of them.
  Rate measure(const Contender& contender, double seconds) {
    calls_ = 0;
    const std::int64_t least = contender.streams;
    seconds_of(contender, least);
    const double one_call = seconds_of(contender, 2 * least) / static_cast<double>(2 * least);
    const double batch_seconds = std::min(0.02, seconds / 8);
    const auto wanted = static_cast<std::int64_t>(batch_seconds / one_call) / least * least;
    const std::int64_t batch = std::clamp<std::int64_t>(wanted, least, 4096);
    // What a cool GPU does at first is what a burst asks for.
    if (burst_) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    std::vector<double> late;
    Rate rate;
    const double begin = peer::now();
    while (rate.seconds < seconds || late.empty()) {
      const bool is_late = burst_ || rate.seconds >= seconds / 2;
      const double gflops =
          shape_.flops() * static_cast<double>(batch) * 1e-9 / seconds_of(contender, batch);
      rate.seconds = peer::now() - begin;
      rate.best = std::max(rate.best, gflops);
      if (is_late) late.push_back(gflops);
    }
    rate.clock = peer::clock_now();
    rate.median = peer::median(late);
    return rate;
  }

  void print(const std::string& name, const char* operation, const std::string& details,
             const Rate& rate) const {
    std::printf(
        "peer=%s op=%s m=%lld n=%lld k=%lld%s gflops_median=%.1f gflops_best=%.1f "
        "seconds=%.3f\n",
        name.c_str(), operation, static_cast<long long>(shape_.m), static_cast<long long>(shape_.m),
        static_cast<long long>(shape_.k), details.c_str(), rate.median, rate.best, rate.seconds);
    std::fflush(stdout);
  }

  Shape shape_;
  const std::vector<Lane>& lanes_;
  bool burst_;
  Operands operands_;
  ProductCheck check_;
  std::int64_t calls_ = 0;
  Rate best_rate_;
  std::string best_line_;
  double last_ = 0;
  bool is_right_ = true;
};

/// cublasLt's algorithms in a short first pass; the fastest again for as long as all others, and
/// the winner on several streams.
void run_algorithms(Contest& contest, const LtProducts& products, const Options& options,
                    double seconds) {
  struct Candidate {
    Contender contender;
    double rate = 0;
  };
  std::vector<Candidate> candidates;
  for (const Contender& contender : products.contenders()) {
    try {
      contest.run(contender, seconds / 10, "first");
      candidates.push_back({contender, contest.last_rate()});
    } catch (const std::exception& error) {  // what is proposed need not run
      std::fprintf(stderr, "dgemm_gpu:%s: %s", contender.details.c_str(), error.what());
    }
  }
  const auto by_rate = [](const Candidate& a, const Candidate& b) { return a.rate > b.rate; };
  std::sort(candidates.begin(), candidates.end(), by_rate);
  candidates.resize(
      std::min(candidates.size(), static_cast<std::size_t>(std::max(0, options.finalists))));
  for (Candidate& candidate : candidates) {
    contest.run(candidate.contender, seconds, "full");
    candidate.rate = contest.last_rate();
  }
  if (candidates.empty()) return;
  std::sort(candidates.begin(), candidates.end(), by_rate);
  for (const int streams : options.streams) {
    Contender winner = candidates.front().contender;
    winner.streams = streams;
    if (streams > 1) contest.run(winner, seconds, "full");
  }
}

/// Seconds for one configuration: what is asked for, or less if all would not fit into the limit.
double seconds_each(const Options& options) {
  const double wanted = options.burst ? 0.03 : options.sustained;
  if (options.time_limit == 0) return wanted;
  // Runs at full length, and beside them a first pass at a tenth each.
  const double full = 2 * static_cast<double>(options.streams.size()) + options.finalists;
  const double runs = (full + 0.1 * options.algorithms) * static_cast<double>(options.sizes.size());
  const double overhead = 0.85;  // of the limit is left for them by what is around them
  return std::min(wanted, overhead * options.time_limit / runs);
}

bool run(const Options& options) {
  const double begin = peer::now();
  const double seconds = seconds_each(options);
  const std::vector<Lane> lanes(static_cast<std::size_t>(Operands::streams_max));
  bool is_right = true;
  for (const std::int64_t size : options.sizes) {
    const Shape shape{size, options.k > 0 ? options.k : size};
    if (options.time_limit > 0 && peer::now() - begin > options.time_limit) {
      std::fprintf(stderr, "dgemm_gpu: no time left for %lld\n", static_cast<long long>(size));
      continue;
    }
    Contest contest(shape, lanes, options.burst);
    for (const int streams : options.streams) {
      contest.run(blas_contender(shape, streams), seconds, "full");
    }
    if (options.algorithms > 0) {
      const LtProducts products(shape, options.algorithms);
      run_algorithms(contest, products, options, seconds);
    }
    contest.print_best();
    is_right = is_right && contest.is_right();
  }
  return is_right;
}

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  CLI::App app{"rates of C := C - A B^T on one GPU"};
  app.add_option("-n,--n", options.sizes, "rows and columns of C, one or several")
      ->check(CLI::Range(1, 1 << 15));
  app.add_option("-k,--k", options.k, "columns of A and B; left out: as many as C has")
      ->check(CLI::Range(1, 1 << 15));
  app.add_option("--streams", options.streams, "streams that share the products")
      ->check(CLI::IsMember({1, 2, 4}));
  app.add_option("--sustained", options.sustained, "seconds of each configuration")
      ->check(CLI::Range(0.01, 600.0));
  app.add_flag("--burst", options.burst, "instead: 0.03 seconds each, after a pause");
  app.add_option("--algorithms", options.algorithms, "of cublasLt, at most; 0 for none")
      ->check(CLI::Range(0, 256));
  app.add_option("--finalists", options.finalists,
                 "of these, the fastest in a pass of a tenth of the time, that run for all of it");
  app.add_option("--time-limit", options.time_limit,
                 "seconds in all; configurations are shortened to fit in");
  CLI11_PARSE(app, argc, argv);
  if (run(options)) return EXIT_SUCCESS;
  std::fputs("dgemm_gpu: a result is WRONG: see residual\n", stderr);
  return EXIT_FAILURE;
} catch (const std::exception& error) {
  std::fputs(error.what(), stderr);
  return EXIT_FAILURE;
}
