#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/assert.hpp"
#include "node-runtime/memory/tile_table.hpp"
#include "node-runtime/protocol/types.hpp"

namespace heddle {

/// A matrix and the pools that hold its tiles, by place; none of a temporary matrix.
struct StoredMatrix {
  TileTable table;
  std::size_t largest_bytes = 0;  ///< of a tile
  std::vector<std::int32_t> pools;
};

/// The matrices of a node by id. Ids are never reused, since all nodes count alike; so the table
/// grows, by chunks that stay where they are.
///
/// Invariant (`is_valid()`): count = number of matrices in all chunks; each has a valid TileTable.
///
/// Threads: put() and take() by one at a time; find() and at() by any. A reader finds the matrix
/// that was put before it learned the id.
class StoredMatrices {
 public:
  static constexpr std::size_t ids_max = std::size_t{4096} * 1024;

  StoredMatrices() = default;
  StoredMatrices(const StoredMatrices&) = delete;
  StoredMatrices& operator=(const StoredMatrices&) = delete;
  ~StoredMatrices();

  /// Throws Error(usage) when no matrix can have the id.
  static void require_possible(protocol::MatrixId id);
  void put(protocol::MatrixId id, std::unique_ptr<StoredMatrix> matrix);
  /// Takes a matrix out that was put in.
  [[nodiscard]] std::unique_ptr<StoredMatrix> take(protocol::MatrixId id);
  /// Null: it was never put in, or was taken.
  [[nodiscard]] const StoredMatrix* find(protocol::MatrixId id) const;
  /// The matrix was put in.
  [[nodiscard]] const StoredMatrix& at(protocol::MatrixId id) const {
    const auto index = static_cast<std::size_t>(id.value());
    const Chunk* const chunk = chunks_[index / matrices_per_chunk].load(std::memory_order_acquire);
    HEDDLE_DEBUG(chunk != nullptr, "matrix {} is unknown", id.value());
    const StoredMatrix* const matrix =
        (*chunk)[index % matrices_per_chunk].load(std::memory_order_acquire);
    HEDDLE_DEBUG(matrix != nullptr, "matrix {} is unknown", id.value());
    return *matrix;
  }

  [[nodiscard]] std::size_t count() const { return count_; }
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const auto& slot : chunks_) {
      const Chunk* const chunk = slot.load(std::memory_order_acquire);
      if (chunk == nullptr) continue;
      for (const auto& one : *chunk) {
        const StoredMatrix* const matrix = one.load(std::memory_order_acquire);
        if (matrix != nullptr) visit(*matrix);
      }
    }
  }
  [[nodiscard]] bool is_valid() const;

 private:
  static constexpr std::size_t chunk_count = 4096;
  static constexpr std::size_t matrices_per_chunk = ids_max / chunk_count;
  /// Release when a matrix is put in, acquire where it is found: a reader that sees the pointer
  /// sees the matrix.
  using Chunk = std::array<std::atomic<StoredMatrix*>, matrices_per_chunk>;

  /// Null: no matrix of its chunk was ever put in.
  [[nodiscard]] std::atomic<StoredMatrix*>* slot(protocol::MatrixId id) const {
    const auto index = static_cast<std::size_t>(id.value());
    if (index >= ids_max) return nullptr;
    Chunk* const chunk = chunks_[index / matrices_per_chunk].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : &(*chunk)[index % matrices_per_chunk];
  }

  std::array<std::atomic<Chunk*>, chunk_count> chunks_{};
  std::size_t count_ = 0;
};

}  // namespace heddle
