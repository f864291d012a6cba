#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/context.hpp"

/// The innermost panels of QR: few columns, many rows, in one kernel that keeps the panel in
/// registers and meets once per column.
namespace heddle::kernel::cuda {

/// A panel [head; body] of n <= panel_columns() columns, and where its reflectors go. The head is
/// n x n, the body is below it, perhaps elsewhere: of a tile under R, the head is in R's tile.
///
/// The body becomes V's lower part; R's triangle goes to `r`, T's (zeros below its diagonal) to
/// `t`. A full head becomes the head of V with its ones and zeros, so that V is a plain matrix for
/// GEMM. Of a triangular head nothing below the diagonal is read or written, and V's head, which is
/// an identity, is not stored.
struct Panel {
  std::int64_t columns = 0;
  double* head = nullptr;
  std::int64_t head_leading = 0;
  bool head_is_triangle = false;
  double* body = nullptr;
  std::int64_t body_leading = 0;
  std::int64_t body_rows = 0;
  double* r = nullptr;  ///< the head itself if that is a triangle, otherwise apart from it
  std::int64_t r_leading = 0;
  double* t = nullptr;
  std::int64_t t_leading = 0;
  /// Rows right above a full head that are R's already: they move to the rows right above `r`, and
  /// become zeros, as V has them there.
  std::int64_t rows_above = 0;
};

/// Widest panel for that many rows, head and body together: it fits the registers of the
/// multiprocessors that a panel may take.
[[nodiscard]] std::int64_t panel_columns(std::int64_t rows, int multiprocessors);

/// Where the CTAs of panel kernels meet: device memory of panel_exchange_count() doubles, aligned
/// to 16 bytes, zero before the first panel. It may serve any number of panels of one stream.
class PanelExchange {
 public:
  explicit PanelExchange(double* memory) : memory_(memory) {}

 private:
  friend void factor_panel(Context& context, const Panel& panel, PanelExchange& exchange);
  double* memory_;
  std::uint32_t epoch_ = 0;  ///< the last one of the panels so far
};

[[nodiscard]] std::size_t panel_exchange_count(int multiprocessors);

/// Factors `panel`. Any scale of columns is safe: each is brought near 1 by a power of two first.
void factor_panel(Context& context, const Panel& panel, PanelExchange& exchange);

}  // namespace heddle::kernel::cuda
