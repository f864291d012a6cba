#pragma once

#include <optional>

#include "algorithms/matrix/generated_source.hpp"
#include "algorithms/matrix/generators.hpp"

namespace heddle {

/// How tasks can make the tiles of such a matrix where they live, as MatrixSource::generated() has
/// it; nothing: its elements have to be read. Allocates nothing.
[[nodiscard]] std::optional<GeneratedKind> generated_kind(const GeneratorOptions& options);

}  // namespace heddle
