#pragma once

#include <cstdint>
#include <optional>

#include "node-runtime/matrix.hpp"

/// Cholesky with inverse blocks that the caller makes: for plans and simulations.
namespace heddle {

/// cholesky() with given `inverses` for the inverse blocks of the remainders (TileLayout), which
/// devices factorize, or without inverse blocks. Where a node's part of the matrix does not fit
/// into its devices, priorities follow from `device_memory`, the bytes of each device (0: it fits).
/// The default is that of the matrix's node; a matrix without a node has no default.
[[nodiscard]] JobSpec cholesky(const Matrix<double>& a,
                               const std::optional<Matrix<double>>& inverses,
                               std::optional<std::uint64_t> device_memory = std::nullopt);

/// What a matrix for inverse blocks of `inner` columns looks like, `inner` >= 1.
[[nodiscard]] MatrixSpec inverses_spec(const Matrix<double>& a, std::int64_t inner);

}  // namespace heddle
