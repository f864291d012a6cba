#pragma once

#include <cblas.h>
#include <cstdint>
#include <lapack.h>
#include <vector>

#include "bench/peers/peer.hpp"

/// The tiles and tile kernels of the peers that run a tile Cholesky: square tiles, shorter at the
/// edge, column-major and contiguous each. The kernels use one thread per call.
namespace heddle::peer {

/// The lower triangle of the SPD test matrix, cut into tiles.
class TileMatrix {
 public:
  TileMatrix(std::int64_t n, std::int64_t block)
      : n_(n), block_(block), count_(static_cast<int>((n + block - 1) / block)) {
    tiles_.resize(static_cast<std::size_t>(count_) * static_cast<std::size_t>(count_));
    for (int j = 0; j < count_; ++j) {
      for (int i = j; i < count_; ++i) {
        tiles_[at(i, j)] = Buffer(std::int64_t{rows(i)} * rows(j));
      }
    }
  }

  /// Rows (and columns) of tiles.
  [[nodiscard]] int count() const { return count_; }
  /// Rows in tile row i, which are also the columns of tile column i.
  [[nodiscard]] int rows(int i) const {
    return static_cast<int>(std::min(block_, n_ - i * block_));
  }
  [[nodiscard]] double* tile(int i, int j) const { return tiles_[at(i, j)].data(); }

  void generate() {
    for (int j = 0; j < count_; ++j) {
      for (int i = j; i < count_; ++i) generate_tile(i, j);
    }
  }

  /// ‖A x − L Lᵀ x‖ / ‖A x‖ when the tiles hold L.
  [[nodiscard]] double error() const {
    return factor_error(n_, [this](std::int64_t i, std::int64_t j) {
      const auto tile_row = static_cast<int>(i / block_);
      return tile(tile_row, static_cast<int>(j / block_))[i % block_ + j % block_ * rows(tile_row)];
    });
  }

 private:
  [[nodiscard]] std::size_t at(int i, int j) const {
    return static_cast<std::size_t>(i) +
           static_cast<std::size_t>(j) * static_cast<std::size_t>(count_);
  }

  void generate_tile(int i, int j) {
    double* element = tile(i, j);
    for (std::int64_t column = j * block_; column < j * block_ + rows(j); ++column) {
      for (std::int64_t row = i * block_; row < i * block_ + rows(i); ++row) {
        *element++ = spd_element(row, column, n_);
      }
    }
  }

  std::int64_t n_;
  std::int64_t block_;
  int count_;
  std::vector<Buffer> tiles_;
};

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
