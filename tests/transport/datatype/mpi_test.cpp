#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <memory>
#include <mpi.h>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/transport/datatype/datatype.hpp"
#include "node-runtime/transport/datatype/overlap.hpp"
#include "node-runtime/transport/datatype/pack.hpp"
#include "tests/support/seeds.hpp"
#include "tests/transport/datatype/described_type.hpp"
#include "tests/transport/datatype/random_type.hpp"

/// MPI as the reference: the same types made with its own makers, its bounds, and MPI_Pack.

namespace heddle::test {
namespace {

using Kind = DescribedType::Kind;

/// MPI for as long as the program runs.
class MpiEnvironment : public testing::Environment {
 public:
  void SetUp() override { MPI_Init(nullptr, nullptr); }
  void TearDown() override { MPI_Finalize(); }
};

[[maybe_unused]] const testing::Environment* const mpi_environment =
    testing::AddGlobalTestEnvironment(new MpiEnvironment);

/// Owns an MPI datatype.
class MpiType {
 public:
  explicit MpiType(const DescribedType& described);
  MpiType(const MpiType&) = delete;
  MpiType& operator=(const MpiType&) = delete;
  ~MpiType() {
    if (owned_) MPI_Type_free(&type_);
  }
  [[nodiscard]] MPI_Datatype get() const { return type_; }

 private:
  void make(const DescribedType& d, MPI_Datatype part);
  void make_structure(const DescribedType& d);
  void make_subarray(const DescribedType& d, MPI_Datatype part);
  void make_triangle(const DescribedType& d);

  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  bool owned_ = true;
};

MPI_Datatype mpi_scalar(Scalar scalar) {
  const std::array<MPI_Datatype, 13> types{
      MPI_BYTE,    MPI_INT8_T,          MPI_INT16_T,         MPI_INT32_T,  MPI_INT64_T,
      MPI_UINT8_T, MPI_UINT16_T,        MPI_UINT32_T,        MPI_UINT64_T, MPI_FLOAT,
      MPI_DOUBLE,  MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX};
  return types.at(static_cast<std::size_t>(scalar));
}

std::vector<MPI_Count> lengths_of(const DescribedType& d) {
  std::vector<MPI_Count> result;
  for (const auto& block : d.blocks) result.push_back(block.length);
  return result;
}

std::vector<MPI_Count> displacements_of(const DescribedType& d) {
  std::vector<MPI_Count> result;
  for (const auto& block : d.blocks) result.push_back(block.displacement);
  return result;
}

MpiType::MpiType(const DescribedType& described) {
  if (described.kind == Kind::scalar) {
    type_ = mpi_scalar(described.scalar);
    owned_ = false;
  } else if (described.kind == Kind::triangle) {
    make_triangle(described);
  } else if (described.kind == Kind::structure) {
    make_structure(described);
  } else {
    const MpiType part(described.part());
    make(described, part.get());
  }
  if (owned_) MPI_Type_commit(&type_);
}

void MpiType::make(const DescribedType& d, MPI_Datatype part) {
  const auto blocks = static_cast<MPI_Count>(d.blocks.size());
  const auto lengths = lengths_of(d);
  const auto displacements = displacements_of(d);
  switch (d.kind) {
    case Kind::contiguous:
      MPI_Type_contiguous_c(d.count, part, &type_);
      return;
    case Kind::vector:
      MPI_Type_vector_c(d.count, d.block_length, d.stride, part, &type_);
      return;
    case Kind::hvector:
      MPI_Type_create_hvector_c(d.count, d.block_length, d.stride, part, &type_);
      return;
    case Kind::indexed:
      MPI_Type_indexed_c(blocks, lengths.data(), displacements.data(), part, &type_);
      return;
    case Kind::hindexed:
      MPI_Type_create_hindexed_c(blocks, lengths.data(), displacements.data(), part, &type_);
      return;
    case Kind::indexed_block:
      MPI_Type_create_indexed_block_c(blocks, d.block_length, displacements.data(), part, &type_);
      return;
    case Kind::hindexed_block:
      MPI_Type_create_hindexed_block_c(blocks, d.block_length, displacements.data(), part, &type_);
      return;
    case Kind::subarray:
      return make_subarray(d, part);
    case Kind::resized:
      MPI_Type_create_resized_c(part, d.lower_bound, d.extent, &type_);
      return;
    default:
      FAIL() << "not a type with one part";
  }
}

void MpiType::make_structure(const DescribedType& d) {
  std::vector<std::unique_ptr<MpiType>> owners;
  std::vector<MPI_Datatype> parts;
  for (const auto& part : d.parts) {
    owners.push_back(std::make_unique<MpiType>(*part));
    parts.push_back(owners.back()->get());
  }
  const auto lengths = lengths_of(d);
  const auto displacements = displacements_of(d);
  MPI_Type_create_struct_c(static_cast<MPI_Count>(parts.size()), lengths.data(),
                           displacements.data(), parts.data(), &type_);
}

void MpiType::make_subarray(const DescribedType& d, MPI_Datatype part) {
  std::vector<MPI_Count> sizes;
  std::vector<MPI_Count> subsizes;
  std::vector<MPI_Count> starts;
  for (const auto& dimension : d.dimensions) {
    sizes.push_back(dimension.size);
    subsizes.push_back(dimension.subsize);
    starts.push_back(dimension.start);
  }
  const int order = d.order == Datatype::Order::row_major ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
  MPI_Type_create_subarray_c(static_cast<int>(sizes.size()), sizes.data(), subsizes.data(),
                             starts.data(), order, part, &type_);
}

void MpiType::make_triangle(const DescribedType& d) {
  std::vector<MPI_Count> lengths;
  std::vector<MPI_Count> displacements;
  const std::int64_t without = d.shape.diagonal ? 0 : 1;
  for (std::int64_t j = 0; j < d.shape.columns; ++j) {
    const bool lower = d.shape.part == Datatype::TriangleShape::Part::lower;
    const std::int64_t begin = lower ? j + without : 0;
    const std::int64_t end = lower ? d.shape.rows : std::min(j + 1 - without, d.shape.rows);
    if (end <= begin) continue;
    displacements.push_back(j * d.shape.leading + begin);
    lengths.push_back(end - begin);
  }
  MPI_Type_indexed_c(static_cast<MPI_Count>(lengths.size()), lengths.data(), displacements.data(),
                     mpi_scalar(d.scalar), &type_);
}

void expect_same_bounds(const Datatype& type, MPI_Datatype reference) {
  MPI_Count size = 0;
  MPI_Count lower = 0;
  MPI_Count extent = 0;
  MPI_Type_size_c(reference, &size);
  EXPECT_EQ(type.size(), size);
  MPI_Type_get_extent_c(reference, &lower, &extent);
  EXPECT_EQ(type.lower_bound(), lower);
  EXPECT_EQ(type.extent(), extent);
  MPI_Type_get_true_extent_c(reference, &lower, &extent);
  EXPECT_EQ(type.true_lower_bound(), lower);
  EXPECT_EQ(type.true_extent(), extent);
}

/// Packs `count` elements with both, and unpacks with MPI's counterpart.
void expect_same_bytes(const Datatype& type, MPI_Datatype reference, std::int64_t count) {
  const PackPlan plan = make_plan(type);
  const std::int64_t last = (count - 1) * type.extent();
  const std::int64_t low = std::min<std::int64_t>(0, last) + type.true_lower_bound();
  const std::int64_t high = std::max<std::int64_t>(0, last) + type.true_upper_bound();
  std::vector<std::byte> memory(static_cast<std::size_t>(high - low));
  for (std::size_t i = 0; i < memory.size(); ++i)
    memory[i] = static_cast<std::byte>(i * 37 + i / 256);
  std::byte* const address = memory.data() - low;
  const std::int64_t bytes = plan.stream_bytes(count);
  std::vector<std::byte> ours(static_cast<std::size_t>(bytes));
  std::vector<std::byte> theirs(static_cast<std::size_t>(bytes));
  pack(plan, count, address, {0, bytes}, ours.data());
  MPI_Count position = 0;
  MPI_Pack_c(address, count, reference, theirs.data(), bytes, &position, MPI_COMM_SELF);
  ASSERT_EQ(position, bytes);
  ASSERT_TRUE(ours == theirs);
  try {
    check_receivable(plan, count);
  } catch (const Error&) {
    return;
  }
  std::vector<std::byte> other(memory.size(), std::byte{0x5a});
  std::fill(memory.begin(), memory.end(), std::byte{0x5a});
  unpack(plan, count, {0, bytes}, ours.data(), address);
  position = 0;
  MPI_Unpack_c(ours.data(), bytes, &position, other.data() - low, count, reference, MPI_COMM_SELF);
  ASSERT_TRUE(memory == other);
}

void compare_random_types(std::uint64_t count) {
  for (const std::uint64_t seed : simulation::seeds(count)) {
    // MPICH 4.0.2 gives bounds to blocks of no length, mixes bounds that were set with others, pads
    // no structure of one type alone, and packs other bytes than the type map's where an extent is
    // negative.
    RandomType random(seed,
                      {.zero_sizes = false, .structures_resized = true, .negative_extents = false});
    const DescribedType described = random.next();
    SCOPED_TRACE(simulation::replay_hint(seed) + "\n" + to_string(described));
    const Datatype type = datatype_of(described);
    const MpiType reference(described);
    expect_same_bounds(type, reference.get());
    expect_same_bytes(type, reference.get(), random.number(1, 4));
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace

TEST(DatatypesBesideMpi, have_the_bounds_and_the_packed_bytes_of_mpi) {
  compare_random_types(4000);
}

TEST(DatatypesBesideMpi, pad_structures_alike) {
  for (int scalar = 0; scalar < 13; ++scalar) {
    DescribedType first;
    first.scalar = static_cast<Scalar>(scalar);
    DescribedType second;
    second.scalar = scalar == 1 ? Scalar::uint8 : Scalar::int8;
    DescribedType described;
    described.kind = Kind::structure;
    described.blocks = {{0, 2}, {40, 3}};
    described.parts = {std::make_shared<const DescribedType>(first),
                       std::make_shared<const DescribedType>(second)};
    const MpiType reference(described);
    expect_same_bounds(datatype_of(described), reference.get());
    expect_same_bytes(datatype_of(described), reference.get(), 3);
  }
}

TEST(DatatypesBesideMpi, transpose_alike) {
  DescribedType element;
  element.scalar = Scalar::float64;
  DescribedType row;
  row.kind = Kind::vector;
  row.count = 37;
  row.block_length = 1;
  row.stride = 53;
  row.parts = {std::make_shared<const DescribedType>(element)};
  DescribedType transposed;
  transposed.kind = Kind::hvector;
  transposed.count = 50;
  transposed.block_length = 1;
  transposed.stride = 8;
  transposed.parts = {std::make_shared<const DescribedType>(row)};
  const MpiType reference(transposed);
  expect_same_bounds(datatype_of(transposed), reference.get());
  expect_same_bytes(datatype_of(transposed), reference.get(), 1);
}

}  // namespace heddle::test
