#include "node-runtime/memory/stored_matrices.hpp"

#include "base/assert.hpp"
#include "base/require.hpp"

namespace heddle {

StoredMatrices::~StoredMatrices() {
  for (auto& slot : chunks_) {
    const std::unique_ptr<Chunk> chunk(slot.load(std::memory_order_acquire));
    if (chunk == nullptr) continue;
    for (auto& matrix : *chunk) delete matrix.load(std::memory_order_acquire);
  }
}

void StoredMatrices::require_possible(protocol::MatrixId id) {
  require(static_cast<std::size_t>(id.value()) < ids_max, "a node can make {} matrices in its life",
          ids_max);
}

void StoredMatrices::put(protocol::MatrixId id, std::unique_ptr<StoredMatrix> matrix) {
  require_possible(id);
  HEDDLE_CHECK(matrix != nullptr && matrix->table.is_valid(), "matrix {}", id.value());
  const auto index = static_cast<std::size_t>(id.value());
  std::atomic<Chunk*>& chunk = chunks_[index / matrices_per_chunk];
  if (chunk.load(std::memory_order_acquire) == nullptr) {
    chunk.store(std::make_unique<Chunk>().release(), std::memory_order_release);
  }
  std::atomic<StoredMatrix*>& of_id = *slot(id);
  HEDDLE_CHECK(of_id.load(std::memory_order_acquire) == nullptr, "matrix {} exists", id.value());
  of_id.store(matrix.release(), std::memory_order_release);
  ++count_;
}

std::unique_ptr<StoredMatrix> StoredMatrices::take(protocol::MatrixId id) {
  std::atomic<StoredMatrix*>* const of_id = slot(id);
  HEDDLE_CHECK(of_id != nullptr, "matrix {} is unknown", id.value());
  std::unique_ptr<StoredMatrix> taken(of_id->exchange(nullptr, std::memory_order_acq_rel));
  HEDDLE_CHECK(taken != nullptr, "matrix {} is unknown", id.value());
  --count_;
  return taken;
}

const StoredMatrix* StoredMatrices::find(protocol::MatrixId id) const {
  const std::atomic<StoredMatrix*>* const of_id = slot(id);
  return of_id == nullptr ? nullptr : of_id->load(std::memory_order_acquire);
}

bool StoredMatrices::is_valid() const {
  std::size_t found = 0;
  bool tables_are_valid = true;
  for_each([&](const StoredMatrix& matrix) {
    ++found;
    tables_are_valid = tables_are_valid && matrix.table.is_valid();
  });
  return tables_are_valid && found == count_;
}

}  // namespace heddle
