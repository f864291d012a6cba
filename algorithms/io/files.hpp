#pragma once

#include <string>

#include "node-runtime/matrix.hpp"

/// Matrices from files and generators, and into files. All functions are collective; what goes
/// wrong on any node is thrown on all.
namespace heddle {

struct GeneratorOptions;

/// Reads a matrix file by the end of its name, .npy (two-dimensional, float64) or .mtx, each node
/// its own tiles. With Storage::lower the matrix in the file must be symmetric, and its lower
/// triangle is read. Throws Error(usage) for a file that is wrong, the first element that is NaN or
/// infinite, or the worst pair that is not symmetric.
[[nodiscard]] Matrix<double> read_matrix(Node& node, const std::string& path,
                                         Storage storage = Storage::full);
/// The same into a matrix that exists, which must be as large.
void read_matrix(const std::string& path, const Matrix<double>& into);

/// Writes a matrix as a .npy file; elements that are not stored are zero. The file appears complete
/// or not at all. Throws Error(usage) when the disk has too little room, and Error(internal) for an
/// element that is NaN or infinite.
void write_matrix(const Matrix<double>& matrix, const std::string& path);

/// Fills `into` with the elements of a generator (algorithms/matrix/generators.hpp): the same bits
/// however it is cut and dealt out. Its size is the matrix's, whatever `options` say.
void generate(const GeneratorOptions& options, const Matrix<double>& into);

}  // namespace heddle
