#pragma once

#include <cstddef>
#include <cstdio>
#include <initializer_list>
#include <starpu.h>
#include <string>

namespace heddle::peer {

/// StarPU on `workers` CPU workers and no device, from construction to destruction.
class StarpuSession {
 public:
  StarpuSession(int workers, const std::string& scheduler) {
    starpu_conf configuration{};
    starpu_conf_init(&configuration);
    configuration.ncpus = workers;
    configuration.ncuda = 0;
    configuration.nopencl = 0;
    configuration.sched_policy_name = scheduler.c_str();
    const int status = starpu_init(&configuration);
    started_ = status == 0;
    if (!started_) std::fprintf(stderr, "starpu_init failed: %d\n", status);
  }
  ~StarpuSession() {
    if (started_) starpu_shutdown();
  }
  StarpuSession(const StarpuSession&) = delete;
  StarpuSession& operator=(const StarpuSession&) = delete;

  [[nodiscard]] bool started() const { return started_; }

 private:
  bool started_ = false;
};

/// A kind of task that runs `function` on a CPU and accesses its data in the given modes.
inline starpu_codelet codelet(const char* name, starpu_cpu_func_t function,
                              std::initializer_list<starpu_data_access_mode> modes) {
  starpu_codelet result{};
  result.cpu_funcs[0] = function;
  result.nbuffers = static_cast<int>(modes.size());
  std::size_t next = 0;
  for (const starpu_data_access_mode mode : modes) result.modes[next++] = mode;
  result.name = name;
  return result;
}

}  // namespace heddle::peer
