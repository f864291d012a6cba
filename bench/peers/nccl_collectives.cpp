// How long do NCCL's collectives take? A process for each GPU, started by MPICH; float64 sums. Each
// call is waited for on the host, as heddle's blocking operations are, and counts as long as on the
// slowest rank.
//
//   mpiexec.mpich -n 4 nccl_collectives --bytes-max 268435456 --check
#include <cstdlib>
#include <cuda_runtime_api.h>
#include <exception>
#include <mpi.h>
#include <nccl.h>
#include <stdexcept>

#include "bench/peers/peer.hpp"

namespace peer = heddle::peer;

namespace {

struct Options {
  std::vector<std::string> operations{"all_reduce", "reduce", "broadcast", "all_gather",
                                      "reduce_scatter"};
  std::int64_t bytes_min = 8;
  std::int64_t bytes_max = std::int64_t{16} << 20;
  int repetitions = 3;
  double seconds = 0.05;
  bool check = false;
};

void check(cudaError_t status, const char* operation) {
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string(operation) + ": " + cudaGetErrorString(status));
}

void check(ncclResult_t status, const char* operation) {
  if (status == ncclSuccess) return;
  throw std::runtime_error(std::string(operation) + ": " + ncclGetErrorString(status));
}

/// Numbers whose sums over a few thousand ranks are exact.
double element(int rank, std::int64_t i) {
  return static_cast<double>(std::int64_t{rank} * 31 + i % 1009);
}

/// This process among all, on a GPU of its own.
class Place {
 public:
  Place() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Comm host = MPI_COMM_NULL;
    int on_host = 0;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &on_host);
    MPI_Comm_free(&host);
    int gpus = 0;
    check(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
    // Launchers may show each process one GPU.
    if (gpus > 1 && on_host >= gpus) {
      throw std::runtime_error("NCCL needs a GPU for each process: the host has " +
                               std::to_string(gpus));
    }
    check(cudaSetDevice(gpus > 1 ? on_host : 0), "cudaSetDevice");
    ncclUniqueId id{};
    if (rank_ == 0) check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    check(ncclCommInitRank(&communicator_, size_, id, rank_), "ncclCommInitRank");
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  ~Place() {
    cudaStreamDestroy(stream_);
    ncclCommDestroy(communicator_);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] ncclComm_t communicator() const { return communicator_; }
  [[nodiscard]] cudaStream_t stream() const { return stream_; }
  void wait() const { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  int rank_ = 0;
  int size_ = 1;
  ncclComm_t communicator_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

/// Doubles of the GPU's memory.
class Doubles {
 public:
  explicit Doubles(std::int64_t count) : count_(count) {
    void* memory = nullptr;
    check(cudaMalloc(&memory, bytes(count)), "cudaMalloc");
    data_ = static_cast<double*>(memory);
    check(cudaMemset(data_, 0, bytes(count)), "cudaMemset");
  }
  ~Doubles() { cudaFree(data_); }
  Doubles(const Doubles&) = delete;
  Doubles& operator=(const Doubles&) = delete;

  [[nodiscard]] double* data() const { return data_; }
  void set(const std::vector<double>& values) const {
    check(cudaMemcpy(data_, values.data(), bytes(std::ssize(values)), cudaMemcpyHostToDevice),
          "cudaMemcpy");
  }
  [[nodiscard]] std::vector<double> get(std::int64_t count) const {
    std::vector<double> values(static_cast<std::size_t>(std::min(count, count_)));
    check(cudaMemcpy(values.data(), data_, bytes(std::ssize(values)), cudaMemcpyDeviceToHost),
          "cudaMemcpy");
    return values;
  }

 private:
  static std::size_t bytes(std::int64_t count) {
    return static_cast<std::size_t>(count) * sizeof(double);
  }

  double* data_ = nullptr;
  std::int64_t count_;
};

class Collectives {
 public:
  Collectives(const Options& options, const Place& place)
      : options_(options),
        place_(place),
        input_(options.bytes_max / 8 * place.size()),
        output_(options.bytes_max / 8 * place.size()) {}

  /// Whether all elements were right.
  [[nodiscard]] bool run() const {
    bool is_right = true;
    for (const std::string& operation : options_.operations) {
      for (std::int64_t bytes = options_.bytes_min; bytes <= options_.bytes_max; bytes *= 4) {
        is_right = measure(operation, bytes / 8) && is_right;
      }
    }
    return is_right;
  }

 private:
  void call(const std::string& operation, std::int64_t count) const {
    const auto n = static_cast<std::size_t>(count);
    const double* const in = input_.data();
    double* const out = output_.data();
    const ncclComm_t all = place_.communicator();
    const cudaStream_t stream = place_.stream();
    const ncclDataType_t type = ncclDouble;
    if (operation == "all_reduce") {
      check(ncclAllReduce(in, out, n, type, ncclSum, all, stream), "ncclAllReduce");
    } else if (operation == "reduce") {
      check(ncclReduce(in, out, n, type, ncclSum, 0, all, stream), "ncclReduce");
    } else if (operation == "broadcast") {
      check(ncclBroadcast(in, out, n, type, 0, all, stream), "ncclBroadcast");
    } else if (operation == "all_gather") {
      check(ncclAllGather(in, out, n, type, all, stream), "ncclAllGather");
    } else {
      check(ncclReduceScatter(in, out, n, type, ncclSum, all, stream), "ncclReduceScatter");
    }
    place_.wait();
  }

  [[nodiscard]] double once(const std::string& operation, std::int64_t count) const {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = peer::now();
    call(operation, count);
    return peer::now() - begin;
  }

  [[nodiscard]] bool measure(const std::string& operation, std::int64_t count) const {
    const bool is_right = !options_.check || validate(operation, count);
    std::vector<double> medians;
    for (int turn = 0; turn < options_.repetitions; ++turn) {
      for (int i = 0; i < 2; ++i) static_cast<void>(once(operation, count));
      std::vector<double> times;
      double elapsed = 0;
      // The largest of all ranks decides how many more there are.
      while (times.size() < 5 || (elapsed < options_.seconds && times.size() < 20000)) {
        std::vector<double> some(20);
        for (double& one : some) one = once(operation, count);
        MPI_Allreduce(MPI_IN_PLACE, some.data(), static_cast<int>(some.size()), MPI_DOUBLE, MPI_MAX,
                      MPI_COMM_WORLD);
        for (const double one : some) elapsed += one;
        times.insert(times.end(), some.begin(), some.end());
      }
      medians.push_back(peer::median(std::move(times)));
    }
    if (place_.rank() == 0) print(operation, count, peer::median(std::move(medians)), is_right);
    return is_right;
  }

  void print(const std::string& operation, std::int64_t count, double seconds,
             bool is_right) const {
    const double n = place_.size();
    double bytes = 8 * static_cast<double>(count);
    double factor = 1;
    if (operation == "all_reduce") factor = 2 * (n - 1) / n;
    if (operation == "all_gather" || operation == "reduce_scatter") {
      factor = (n - 1) / n;
      bytes *= n;
    }
    std::printf("peer=nccl op=%s bytes=%lld ranks=%d us_median=%.2f gb_per_second=%.3f check=%s\n",
                operation.c_str(), static_cast<long long>(8 * count), place_.size(), seconds * 1e6,
                factor * bytes / seconds * 1e-9,
                !options_.check ? "none" : (is_right ? "right" : "WRONG"));
    std::fflush(stdout);
  }

  /// Every element that comes to any rank.
  [[nodiscard]] bool validate(const std::string& operation, std::int64_t count) const {
    const int rank = place_.rank();
    const int size = place_.size();
    const std::int64_t in = operation == "reduce_scatter" ? count * size : count;
    const std::int64_t out = operation == "all_gather" ? count * size : count;
    std::vector<double> values(static_cast<std::size_t>(in));
    for (std::int64_t i = 0; i < in; ++i) values[static_cast<std::size_t>(i)] = element(rank, i);
    input_.set(values);
    output_.set(std::vector<double>(static_cast<std::size_t>(out), -1));
    call(operation, count);
    const auto expected = [&](std::int64_t i) {
      if (operation == "broadcast") return element(0, i);
      if (operation == "all_gather") return element(static_cast<int>(i / count), i % count);
      double sum = 0;
      for (int r = 0; r < size; ++r) {
        sum += element(r, operation == "reduce_scatter" ? rank * count + i : i);
      }
      return sum;
    };
    int is_right = 1;
    if (operation != "reduce" || rank == 0) {
      const std::vector<double> got = output_.get(out);
      for (std::int64_t i = 0; i < out; ++i) {
        if (got[static_cast<std::size_t>(i)] != expected(i)) is_right = 0;
      }
    }
    MPI_Allreduce(MPI_IN_PLACE, &is_right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return is_right == 1;
  }

  const Options& options_;
  const Place& place_;
  Doubles input_;
  Doubles output_;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Options options;
  CLI::App app("NCCL's collectives on a GPU for each process");
  app.add_option("--operation", options.operations, "these; default: all")
      ->check(CLI::IsMember(options.operations));
  app.add_option("--bytes-min", options.bytes_min, "of a rank's smallest block")
      ->check(CLI::Range(std::int64_t{8}, std::int64_t{1} << 30));
  app.add_option("--bytes-max", options.bytes_max, "of the largest; each is four times the former")
      ->check(CLI::Range(std::int64_t{8}, std::int64_t{1} << 30));
  app.add_option("--repetitions", options.repetitions, "turns, of which the median counts")
      ->check(CLI::Range(1, 1000));
  app.add_option("--seconds", options.seconds, "of each operation, size and turn");
  app.add_flag("--check", options.check, "see whether all elements are right; exit 1 if not");
  int status = 0;
  try {
    app.parse(argc, argv);
    const Place place;
    status = Collectives(options, place).run() ? 0 : 1;
  } catch (const CLI::ParseError& error) {
    status = app.exit(error);
  } catch (const std::exception& error) {
    // The others wait in the communicator.
    std::fprintf(stderr, "nccl_collectives: %s\n", error.what());
    std::fflush(nullptr);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return status;
}
