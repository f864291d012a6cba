#pragma once

#include <string>

#include "node-runtime/machine/machine_file.hpp"

namespace heddle::test {

/// Sets that every x86-64 runs, and whose choice is the second one: trsm 44.6 against 27.7.
inline KernelChoice sample_choice() {
  KernelChoice choice;
  choice.tile = 320;
  choice.library_default = "PRESCOTT";
  choice.sets = {{"PRESCOTT", false, {50.5, 45.1, 27.7, 28.9}},
                 {"SANDYBRIDGE", false, {52.7, 46.8, 44.6, 37.5}}};
  choose_kernels(choice);
  return choice;
}

inline MachineFile sample_machine() {
  return {.host = "12",
          .cpu_model = "Loom 9000 \"Jacquard\" (1/2/3)",
          .cores = 2,
          .openblas = {"0.3.21", "OpenBLAS 0.3.21 DYNAMIC_ARCH Prescott"},
          .kernels = sample_choice(),
          .tuned = {}};
}

}  // namespace heddle::test
