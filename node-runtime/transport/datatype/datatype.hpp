#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "node-runtime/transport/datatype/scalar.hpp"

namespace heddle {

class Signature;
namespace datatype {
struct Layout;
}

/// A description of data in memory with MPI's meaning: a sequence of scalars, each at an offset
/// from the address that is passed with it, in the order in which they travel. Sender and receiver
/// may differ in the offsets as long as the scalars are the same. An immutable value, cheap to
/// copy; descriptions nest at will, and share what they nest.
///
/// Units as in MPI: counts and block lengths in elements, `stride` and `displacement` in extents of
/// the element type, `*_bytes` in bytes. All are 64-bit. Every maker throws Error(usage) with the
/// value for a negative count and where a size or an offset does not fit 64 bits. Zero counts
/// are types of no scalars, with bounds 0.
///
/// Bounds: the lower bound of a type is the least of its elements' lower bounds, the upper bound
/// the greatest upper one, and the extent what lies between. Where some elements' bounds were set
/// (`resized`, `subarray`), only these count. A structure whose bounds are not set is
/// padded to a multiple of its strictest scalar's alignment. The true bounds are those of the bytes
/// that the type consists of.
///
/// Threads: any.
class Datatype {
 public:
  /// One block of an indexed type.
  struct IndexedBlock {
    std::int64_t displacement;
    std::int64_t length;
  };
  /// One member of a structure.
  struct Member;
  /// One dimension of an array: its extent, that of the part, and where the part begins.
  struct Dimension {
    std::int64_t size;
    std::int64_t subsize;
    std::int64_t start;
  };
  enum class Order : std::uint8_t {
    row_major,    ///< the last dimension is contiguous: C's arrays
    column_major  ///< the first one: Fortran's
  };
  /// Part of a column-major matrix.
  struct TriangleShape {
    enum class Part : std::uint8_t { lower, upper };
    Part part = Part::lower;
    bool diagonal = true;   ///< whether its elements belong to the part
    std::int64_t rows = 0;  ///< of the whole block: a trapezoid where they differ
    std::int64_t columns = 0;
    std::int64_t leading = 0;  ///< >= rows; from one column to the next, in elements
  };

  /// Implicitly, so that a scalar stands wherever a type may.
  Datatype(Scalar scalar);  // NOLINT(google-explicit-constructor)

  [[nodiscard]] static Datatype contiguous(std::int64_t count, const Datatype& type);
  [[nodiscard]] static Datatype vector(std::int64_t count, std::int64_t block_length,
                                       std::int64_t stride, const Datatype& type);
  [[nodiscard]] static Datatype hvector(std::int64_t count, std::int64_t block_length,
                                        std::int64_t stride_bytes, const Datatype& type);
  [[nodiscard]] static Datatype indexed(std::span<const IndexedBlock> blocks, const Datatype& type);
  /// Displacements in bytes.
  [[nodiscard]] static Datatype hindexed(std::span<const IndexedBlock> blocks,
                                         const Datatype& type);
  [[nodiscard]] static Datatype indexed_block(std::int64_t block_length,
                                              std::span<const std::int64_t> displacements,
                                              const Datatype& type);
  [[nodiscard]] static Datatype hindexed_block(std::int64_t block_length,
                                               std::span<const std::int64_t> displacements_bytes,
                                               const Datatype& type);
  [[nodiscard]] static Datatype structure(std::span<const Member> members);
  /// Its bounds are those of the whole array. 0 <= start, start + subsize <= size.
  [[nodiscard]] static Datatype subarray(std::span<const Dimension> dimensions, Order order,
                                         const Datatype& type);
  /// The same data with other bounds.
  [[nodiscard]] static Datatype resized(const Datatype& type, std::int64_t lower_bound,
                                        std::int64_t extent);
  /// Column by column, counted from the matrix's first element. Without the diagonal a lower
  /// triangle begins below the matrix's first element.
  [[nodiscard]] static Datatype triangle(const TriangleShape& shape, Scalar scalar);

  /// Bytes that travel.
  [[nodiscard]] std::int64_t size() const;
  [[nodiscard]] std::int64_t lower_bound() const;
  [[nodiscard]] std::int64_t upper_bound() const;
  [[nodiscard]] std::int64_t extent() const { return upper_bound() - lower_bound(); }
  [[nodiscard]] std::int64_t true_lower_bound() const;
  [[nodiscard]] std::int64_t true_upper_bound() const;
  [[nodiscard]] std::int64_t true_extent() const { return true_upper_bound() - true_lower_bound(); }

  // ---- for the library ------------------------------------------------------------------------
  [[nodiscard]] const Signature& signature() const;
  /// The bytes in their order.
  [[nodiscard]] const datatype::Layout& layout() const;
  /// The same for copies of this value, different from that of any other type that exists.
  [[nodiscard]] const void* identity() const { return node_.get(); }

 private:
  struct Node;
  class Bounds;

  explicit Datatype(Node node);
  [[nodiscard]] static Datatype regular(std::string_view what, std::int64_t count,
                                        std::int64_t block_length, std::int64_t stride_bytes,
                                        const Datatype& type);
  [[nodiscard]] static Datatype assembled(std::string_view what, std::span<const Member> members,
                                          bool padded);

  std::shared_ptr<const Node> node_;
};

struct Datatype::Member {
  std::int64_t displacement_bytes = 0;
  std::int64_t length = 0;
  Datatype type;
};

}  // namespace heddle
