// How fast is the same tile Cholesky when StarPU finds the dependences and schedules the tasks?
#include <starpu.h>
#include <string>
#include <vector>

#include "bench/peers/starpu_session.hpp"
#include "bench/peers/tiles.hpp"

namespace peer = heddle::peer;

namespace {

double* data(void* buffer) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): StarPU hands addresses out as integers
  return reinterpret_cast<double*>(STARPU_MATRIX_GET_PTR(buffer));
}
int rows(void* buffer) {
  return static_cast<int>(STARPU_MATRIX_GET_NX(buffer));
}
int columns(void* buffer) {
  return static_cast<int>(STARPU_MATRIX_GET_NY(buffer));
}

void factor(void** buffers, void*) {
  peer::factor_tile(rows(buffers[0]), data(buffers[0]));
}
void solve(void** buffers, void*) {
  peer::solve_tile(rows(buffers[1]), columns(buffers[1]), data(buffers[0]), data(buffers[1]));
}
void update_diagonal(void** buffers, void*) {
  peer::update_diagonal_tile(rows(buffers[0]), columns(buffers[0]), data(buffers[0]),
                             data(buffers[1]));
}
void update(void** buffers, void*) {
  peer::update_tile(rows(buffers[2]), columns(buffers[2]), columns(buffers[0]), data(buffers[0]),
                    data(buffers[1]), data(buffers[2]));
}

/// The tiles of a matrix as StarPU knows them, from construction to destruction.
class Handles {
 public:
  explicit Handles(const peer::TileMatrix& a) : count_(a.tile_rows()) {
    const auto count = static_cast<std::size_t>(count_);
    handles_.resize(count * count);
    for (int j = 0; j < count_; ++j) {
      for (int i = j; i < count_; ++i) {
        const auto m = static_cast<std::uint32_t>(a.rows(i));
        const auto n = static_cast<std::uint32_t>(a.rows(j));
        starpu_matrix_data_register(&handles_[at(i, j)], STARPU_MAIN_RAM,
                                    reinterpret_cast<std::uintptr_t>(a.tile(i, j)), m, m, n,
                                    sizeof(double));
      }
    }
  }
  ~Handles() {
    for (int j = 0; j < count_; ++j) {
      for (int i = j; i < count_; ++i) starpu_data_unregister(handles_[at(i, j)]);
    }
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  starpu_data_handle_t operator()(int i, int j) const { return handles_[at(i, j)]; }

 private:
  [[nodiscard]] std::size_t at(int i, int j) const {
    return static_cast<std::size_t>(i) +
           static_cast<std::size_t>(j) * static_cast<std::size_t>(count_);
  }

  int count_;
  std::vector<starpu_data_handle_t> handles_;
};

/// The four kinds of task. StarPU keeps pointers to them until it shuts down.
struct Codelets {
  starpu_codelet factor = peer::codelet("potrf", ::factor, {STARPU_RW});
  starpu_codelet solve = peer::codelet("trsm", ::solve, {STARPU_R, STARPU_RW});
  starpu_codelet update_diagonal = peer::codelet("syrk", ::update_diagonal, {STARPU_R, STARPU_RW});
  starpu_codelet update = peer::codelet("gemm", ::update, {STARPU_R, STARPU_R, STARPU_RW});
};

void factorize(Codelets& codelets, const Handles& a, int count) {
  for (int k = 0; k < count; ++k) {
    starpu_task_insert(&codelets.factor, STARPU_PRIORITY, 3, STARPU_RW, a(k, k), 0);
    for (int i = k + 1; i < count; ++i) {
      starpu_task_insert(&codelets.solve, STARPU_PRIORITY, 2, STARPU_R, a(k, k), STARPU_RW, a(i, k),
                         0);
    }
    for (int j = k + 1; j < count; ++j) {
      const int priority = j == k + 1 ? 1 : 0;
      starpu_task_insert(&codelets.update_diagonal, STARPU_PRIORITY, priority, STARPU_R, a(j, k),
                         STARPU_RW, a(j, j), 0);
      for (int i = j + 1; i < count; ++i) {
        starpu_task_insert(&codelets.update, STARPU_PRIORITY, priority, STARPU_R, a(i, k), STARPU_R,
                           a(j, k), STARPU_RW, a(i, j), 0);
      }
    }
  }
  starpu_task_wait_for_all();
}

}  // namespace

int main(int argc, char** argv) {
  peer::FactorOptions options;
  std::string scheduler = "lws";
  CLI::App app{"tile Cholesky with StarPU"};
  peer::add_factor_options(app, options);
  app.add_option("--scheduler", scheduler, "StarPU's scheduling policy");
  CLI11_PARSE(app, argc, argv);
  openblas_set_num_threads(1);

  peer::TileMatrix a = peer::cholesky_tiles(options);
  Codelets codelets;
  const peer::StarpuSession session(options.threads, scheduler);
  if (!session.started()) return 1;
  std::vector<double> seconds;
  for (int i = -options.warm_up; i < options.repetitions; ++i) {
    peer::generate_spd(a, options.n);
    const Handles handles(a);
    const double begin = peer::now();
    factorize(codelets, handles, a.tile_rows());
    if (i >= 0) seconds.push_back(peer::now() - begin);
  }
  peer::print_cholesky("starpu",
                       "threads=" + std::to_string(options.threads) + " scheduler=" + scheduler,
                       options, seconds);
  return !options.check || peer::judge_factor(options.n, peer::factor_error(options.n, a)) ? 0 : 1;
}
