#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "algorithms/matrix/generators.hpp"
#include "apps/run.hpp"

namespace heddle {

/// Limit of rows and columns, as in configurations.
inline constexpr std::int64_t generator_extent_max = 1'000'000'000;

struct GenerateOptions {
  GeneratorOptions matrix;
  std::string matrix_file;  ///< .npy
  std::optional<std::int64_t> sides;
  std::optional<std::string> sides_file;  ///< .npy
  std::uint64_t sides_seed = 2;
};

/// `heddle generate`: writes a generated matrix and right-hand sides panel by panel, in bounded
/// memory. Throws Error.
void generate(const GenerateOptions& options, Run& run);

}  // namespace heddle
