#include "algorithms/matrix/matrix_file.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/core.h>

#include "algorithms/matrix/mtx_file.hpp"
#include "base/error.hpp"

namespace heddle {

std::unique_ptr<MatrixSource> open_matrix_file(const std::string& path,
                                               OneDimensional one_dimensional) {
  std::string ending = std::filesystem::path(path).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (ending == ".npy") return std::make_unique<NpySource>(path, one_dimensional);
  if (ending == ".mtx") return std::make_unique<MtxSource>(path);
  throw Error(ErrorCode::usage,
              fmt::format("cannot read '{}': the name must end in .npy or .mtx", path));
}

}  // namespace heddle
