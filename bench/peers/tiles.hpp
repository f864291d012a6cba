#pragma once

#include <cblas.h>
#include <cstdint>
#include <lapack.h>

#include "bench/peers/peer.hpp"
#include "bench/peers/tile_matrix.hpp"

/// The tiles and tile kernels of the peers that run a tile Cholesky. The kernels use one thread per
/// call.
namespace heddle::peer {

/// The lower triangle of the SPD test matrix, its elements not set yet.
inline TileMatrix cholesky_tiles(const FactorOptions& options) {
  return {options.n, options.n, options.block, TileMatrix::Part::lower};
}

inline void generate_spd(TileMatrix& a, std::int64_t n) {
  a.generate([n](std::int64_t i, std::int64_t j) { return spd_element(i, j, n); });
}

/// ‖A x − L Lᵀ x‖ / ‖A x‖ when the tiles hold L.
inline double factor_error(std::int64_t n, const TileMatrix& l) {
  return factor_error(n, [&](std::int64_t i, std::int64_t j) { return l.element(i, j); });
}

/// a := L with L Lᵀ = a; the test matrices cannot fail here.
inline void factor_tile(int n, double* a) {
  int info = 0;
  LAPACK_dpotrf("L", &n, a, &n, &info);
}

/// a := a L⁻ᵀ; L is n×n, a is m×n.
inline void solve_tile(int m, int n, const double* l, double* a) {
  cblas_dtrsm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, m, n, 1.0, l, n, a,
              m);
}

/// c := c − a aᵀ, lower triangle; a is n×k.
inline void update_diagonal_tile(int n, int k, const double* a, double* c) {
  cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, n, k, -1.0, a, n, 1.0, c, n);
}

/// c := c − a bᵀ; a is m×k, b is n×k.
inline void update_tile(int m, int n, int k, const double* a, const double* b, double* c) {
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, m, n, k, -1.0, a, m, b, n, 1.0, c, m);
}

}  // namespace heddle::peer
