#pragma once

#include <string>

#include "kernels/kernels.hpp"
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

/// Of two workers, a GPU and an emulated device.
inline Measurements sample_measurements() {
  DeviceMeasurement gpu{
      .backend = "cuda",
      .name = "Loom GPU",
      .library = "cuBLAS 13.1.0",
      .streams = 3,
      .kernels = {{&kernel::gsmm, 1024, 1024, 0, 43.25}, {&kernel::geqrt, 4096, 512, 256, 900}},
      .products = {{768, 0, 0}, {1536, 17, 3}, {3072, 20, 15}},
      .copies = {55, 52.5, 98, 130.25, 1800, 1600.5, 9.5},
      .group_copies = {{"all_reduce", 4, 8192, 3}, {"all_reduce", 4, 1048576, 0}}};
  DeviceMeasurement emulated{.backend = "emulated",
                             .name = "emulated",
                             .library = "",
                             .streams = 1,
                             .kernels = {},
                             .products = {},
                             .copies = {9, 8, 10, {}, {}, {}, {}}};
  return {.cpu = CpuMeasurement{.workers = 2,
                                .one_worker = {{&kernel::gsmm, 320, 320, 0, 600.125}},
                                .all_workers = {{&kernel::gsmm, 320, 320, 0, 655.5},
                                                {&kernel::tsmqr, 2048, 144, 48, 1.0 / 3}}},
          .devices = {gpu, emulated},
          .messages = MessageMeasurement{1.5, 11, MessageMeasurement::Host{0.5, 7},
                                         MessageMeasurement::Reading{1.25, 12}}};
}

}  // namespace heddle::test
