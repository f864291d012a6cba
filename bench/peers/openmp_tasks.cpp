// What does a task that does nothing cost with OpenMP? With one thread libgomp runs tasks at once,
// without a queue or a dependence: compare the figures for two.
#include <array>
#include <omp.h>
#include <vector>

#include "bench/peers/peer.hpp"

namespace peer = heddle::peer;

namespace {

struct alignas(64) Datum {
  char byte;
};
using Data = std::array<Datum, peer::ThreeHandles::count>;

inline void nothing() {
  asm volatile("" ::: "memory");
}

void submit_independent(std::int64_t tasks) {
  for (std::int64_t i = 0; i < tasks; ++i) {
#pragma omp task
    nothing();
  }
}

void submit_three_handles(std::int64_t tasks, Data& data) {
  for (std::int64_t i = 0; i < tasks; ++i) {
    const peer::ThreeHandles use(i);
    [[maybe_unused]] Datum* left = &data.at(static_cast<std::size_t>(use.left));
    [[maybe_unused]] Datum* right = &data.at(static_cast<std::size_t>(use.right));
    [[maybe_unused]] Datum* output = &data.at(static_cast<std::size_t>(use.output));
#pragma omp task depend(in : left[0], right[0]) depend(inout : output[0])
    nothing();
  }
}

template <class Submit>
void measure(const char* kind, const peer::TaskOptions& options, Submit submit) {
  std::vector<double> total;
  std::vector<double> submission;
  for (int r = -1; r < options.repetitions; ++r) {
    double begin = 0;
    double submitted = 0;
    double end = 0;
#pragma omp parallel
    {
#pragma omp barrier
#pragma omp single
      {
        begin = peer::now();
        submit();
        submitted = peer::now();
#pragma omp taskwait
        end = peer::now();
      }
    }
    if (r < 0) continue;  // the first run starts the threads
    total.push_back(end - begin);
    submission.push_back(submitted - begin);
  }
  peer::print_tasks("openmp", kind, options.workers, options.tasks, total, submission);
}

}  // namespace

int main(int argc, char** argv) {
  peer::TaskOptions options;
  CLI::App app{"cost of an empty OpenMP task"};
  peer::add_task_options(app, options);
  CLI11_PARSE(app, argc, argv);
  omp_set_num_threads(options.workers);
  Data data{};
  measure("independent", options, [&] { submit_independent(options.tasks); });
  measure("three_handles", options, [&] { submit_three_handles(options.tasks, data); });
  return 0;
}
