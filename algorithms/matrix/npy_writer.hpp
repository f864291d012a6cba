#pragma once

#include <cstdint>
#include <string>

#include "base/index.hpp"
#include "kernels/kernel.hpp"

namespace heddle {

/// How NumPy is to see the result.
enum class NpyShape : std::uint8_t {
  matrix,  ///< two dimensions
  vector,  ///< one dimension; columns == 1
};

/// Writes a matrix, by several processes at once, as a NumPy .npy file (float64, Fortran order).
///
/// One process creates the file under a temporary name next to the final one, the others open it;
/// each writes its own blocks, from any of its threads. When all have called `flush`, the creator
/// commits: the file gets its final name, at once and complete. Until then nothing is under the
/// final name, and an older file of that name stays as it was. Links, and the older file's mode and
/// owner, are kept (base/replacement.hpp).
class NpyWriter {
 public:
  /// Creates the temporary file, reserves the space of the whole matrix on the disk and writes the
  /// header. `run_tag` is unique among runs that write to the same folder (launcher's job id and
  /// process id) and made of characters that a file name may have.
  /// Throws Error(usage) with the numbers when the disk has too little room, and as
  /// check_output_path.
  [[nodiscard]] static NpyWriter create(const std::string& final_path, std::int64_t rows,
                                        std::int64_t columns, const std::string& run_tag,
                                        NpyShape shape = NpyShape::matrix);

  /// Opens the file that another process has created. Throws Error(internal) when it is not there
  /// or has another size: the processes do not see the same folder.
  [[nodiscard]] static NpyWriter open(const std::string& temporary_path, std::int64_t rows,
                                      std::int64_t columns);

  /// The temporary name that `create` uses: "x.npy.<run_tag>.heddle-part", beside the file that
  /// links lead to.
  [[nodiscard]] static std::string temporary_path_of(const std::string& final_path,
                                                     const std::string& run_tag);

  NpyWriter(const NpyWriter&) = delete;
  NpyWriter& operator=(const NpyWriter&) = delete;
  NpyWriter(NpyWriter&& other) noexcept;
  NpyWriter& operator=(NpyWriter&&) = delete;

  /// As abandon() in the creator when it has not committed; else only closes the file.
  ~NpyWriter();

  [[nodiscard]] const std::string& temporary_path() const { return temporary_path_; }

  /// Writes `block` where the matrix has (row, column). Thread-safe; blocks of different calls do
  /// not overlap. Throws Error(internal) that names the file when the system refuses.
  void write(GlobalRow row, GlobalColumn column, TileView block) const;

  /// Puts what this process wrote on the disk; each process calls it before the creator commits.
  void flush() const;

  /// Flushes and gives the file its final name. The creator alone calls it, once, after all others
  /// have flushed. Throws Error(internal); the temporary file then goes with the writer.
  void commit();

  /// Leaves the complete file under its temporary name, for somebody who renames several together;
  /// the creator calls it after all have flushed. Ends the use of this writer.
  void keep() noexcept;

  /// Removes the temporary file, in any process and even where another did so already: what is left
  /// to do for the survivors of a lost node. Ends the use of this writer.
  void abandon() noexcept;

 private:
  NpyWriter(int file, std::string temporary_path, std::string final_path, std::int64_t rows,
            std::int64_t columns);

  [[nodiscard]] std::int64_t position(GlobalRow row, GlobalColumn column) const;
  void write_columns(GlobalColumn column, TileView block) const;
  void close() noexcept;

  int file_ = -1;
  std::string temporary_path_;
  std::string final_path_;  ///< empty unless this is the creator and it has not committed
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
};

}  // namespace heddle
