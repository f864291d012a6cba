#pragma once

#include <cstdint>
#include <memory>

#include "algorithms/matrix/generators.hpp"

/// Generated matrices on which QR and least squares are tried, of any shape. `make_generator`
/// checks the options and says what each kind is. Internal to this folder.
namespace heddle {

/// `rows` x options.n with options.condition and options.seed.
[[nodiscard]] std::unique_ptr<MatrixSource> make_conditioned(std::int64_t rows,
                                                             const GeneratorOptions& options);

/// `rows` x options.n with options.condition and options.seed.
[[nodiscard]] std::unique_ptr<MatrixSource> make_graded(std::int64_t rows,
                                                        const GeneratorOptions& options);

/// `rows` x options.n with options.rank, options.distance and options.seed.
[[nodiscard]] std::unique_ptr<MatrixSource> make_dependent(std::int64_t rows,
                                                           const GeneratorOptions& options);

/// `rows` x options.n.
[[nodiscard]] std::unique_ptr<MatrixSource> make_polynomial(std::int64_t rows,
                                                            const GeneratorOptions& options);

}  // namespace heddle
