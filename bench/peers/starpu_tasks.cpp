// What does a task that does nothing cost with StarPU?
#include <array>
#include <starpu.h>
#include <string>
#include <vector>

#include "bench/peers/peer.hpp"
#include "bench/peers/starpu_session.hpp"

namespace peer = heddle::peer;

namespace {

void nothing(void**, void*) {}

template <class Submit>
void measure(const std::string& name, const char* kind, const peer::TaskOptions& options,
             Submit submit) {
  std::vector<double> total;
  std::vector<double> submission;
  for (int r = -1; r < options.repetitions; ++r) {
    const double begin = peer::now();
    for (std::int64_t i = 0; i < options.tasks; ++i) submit(i);
    const double submitted = peer::now();
    starpu_task_wait_for_all();
    const double end = peer::now();
    if (r < 0) continue;
    total.push_back(end - begin);
    submission.push_back(submitted - begin);
  }
  peer::print_tasks(name, kind, options.workers, options.tasks, total, submission);
}

}  // namespace

int main(int argc, char** argv) {
  peer::TaskOptions options;
  options.tasks = 50000;
  std::string scheduler = "lws";
  CLI::App app{"cost of an empty StarPU task"};
  peer::add_task_options(app, options);
  app.add_option("--scheduler", scheduler, "StarPU's scheduling policy");
  CLI11_PARSE(app, argc, argv);

  starpu_codelet alone = peer::codelet("alone", nothing, {});
  starpu_codelet three = peer::codelet("three", nothing, {STARPU_R, STARPU_R, STARPU_RW});
  std::array<double, peer::ThreeHandles::count> data{};
  std::array<starpu_data_handle_t, peer::ThreeHandles::count> handles{};
  const peer::StarpuSession session(options.workers, scheduler);
  if (!session.started()) return 1;
  for (std::size_t i = 0; i < data.size(); ++i) {
    starpu_variable_data_register(&handles.at(i), STARPU_MAIN_RAM,
                                  reinterpret_cast<std::uintptr_t>(&data.at(i)), sizeof(double));
  }
  const std::string name = "starpu-" + scheduler;
  measure(name, "independent", options, [&](std::int64_t) { starpu_task_insert(&alone, 0); });
  measure(name, "three_handles", options, [&](std::int64_t i) {
    const peer::ThreeHandles use(i);
    starpu_task_insert(&three, STARPU_R, handles.at(static_cast<std::size_t>(use.left)), STARPU_R,
                       handles.at(static_cast<std::size_t>(use.right)), STARPU_RW,
                       handles.at(static_cast<std::size_t>(use.output)), 0);
  });
  for (starpu_data_handle_t handle : handles) starpu_data_unregister(handle);
  return 0;
}
