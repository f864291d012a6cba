#pragma once

/// Marks functions that hosts and, where nvcc compiles them, GPUs run.
#ifdef __CUDACC__
#define HEDDLE_HOST_DEVICE __host__ __device__
#else
#define HEDDLE_HOST_DEVICE
#endif
