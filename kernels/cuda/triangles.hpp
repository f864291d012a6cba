#pragma once

#include <cstdint>

#include "kernels/cuda/context.hpp"
#include "kernels/kernel.hpp"

/// What QR does with tiles element by element, and the small triangles of T. On views of the GPU's
/// memory, queued on the context's stream; any size may be 0, shapes are the caller's to check.
namespace heddle::kernel::cuda {

/// to := from, shapes equal.
void copy_elements(Context& context, const TileView& from, const TileView& to);

/// to -= from, shapes equal.
void subtract_elements(Context& context, const TileView& from, const TileView& to);

/// Every element := 0.
void clear_elements(Context& context, const TileView& a);

/// to := the upper triangle of `from`, square, and zeros below it.
void copy_upper_triangle(Context& context, const TileView& from, const TileView& to);

/// heads (inner x w) := for each block of `inner` columns of v (w x w at least) the square of the
/// block's rows and columns as unit lower triangle, zeros above, whatever v has there.
void copy_unit_heads(Context& context, const TileView& v, std::int64_t inner,
                     const TileView& heads);

/// The end of a panel a (w x w its top): R's squares of `inner` columns on the diagonal stand in r
/// already and go to a as an echo; above these squares a has R, which goes to r. Below its diagonal
/// r becomes zero.
void share_r(Context& context, const TileView& a, std::int64_t inner, const TileView& r);

/// Most columns that join_triangles() takes.
constexpr std::int64_t joined_columns_max = 128;

/// t (k x k) := the triangle of k reflectors, of which t has the triangles of blocks of `width`
/// (at most 32) on its diagonal, from the products V^T V (k x k, symmetric).
void join_triangles(Context& context, const TileView& products, std::int64_t width,
                    const TileView& t);

}  // namespace heddle::kernel::cuda
