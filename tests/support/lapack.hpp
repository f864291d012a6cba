#pragma once

#include <algorithm>
#include <cstdint>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <vector>

#include "tests/support/dense.hpp"

namespace heddle::testing {

/// R of LAPACK's dgeqrf, n x n, zeros below the diagonal; from the OpenBLAS that heddle has loaded.
inline Dense lapack_r(Dense a) {
  using Dgeqrf =
      void (*)(const int*, const int*, double*, const int*, double*, double*, const int*, int*);
  void* library = ::dlopen("libopenblas.so.0", RTLD_NOW | RTLD_NOLOAD);
  const auto dgeqrf = reinterpret_cast<Dgeqrf>(::dlsym(library, "dgeqrf_"));
  const int m = static_cast<int>(a.rows);
  const int n = static_cast<int>(a.columns);
  const int leading = std::max(1, m);
  const int size = std::max(1, 64 * n);
  std::vector<double> tau(static_cast<std::size_t>(std::max(1, n)));
  std::vector<double> work(static_cast<std::size_t>(size));
  int info = 0;
  dgeqrf(&m, &n, a.elements.data(), &leading, tau.data(), work.data(), &size, &info);
  EXPECT_EQ(info, 0);
  Dense r(n, n);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i <= j; ++i) r(i, j) = a(i, j);
  }
  return r;
}

/// What LAPACK's dpotrf says of a symmetric matrix, of which it reads the lower triangle.
inline std::int64_t lapack_cholesky_info(Dense a) {
  using Dpotrf = void (*)(const char*, const int*, double*, const int*, int*);
  void* library = ::dlopen("libopenblas.so.0", RTLD_NOW | RTLD_NOLOAD);
  const auto dpotrf = reinterpret_cast<Dpotrf>(::dlsym(library, "dpotrf_"));
  const int n = static_cast<int>(a.rows);
  const int leading = std::max(1, n);
  int info = 0;
  dpotrf("L", &n, a.elements.data(), &leading, &info);
  return info;
}

}  // namespace heddle::testing
