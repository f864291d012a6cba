#include "node-runtime/collectives/reduce/device_reduction.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/collectives/reduce/own_operations.hpp"
#include "tests/collectives/reduce/own_cases.hpp"
#include "tests/collectives/reduce/reduce_cases.hpp"
#include "tests/device/device_fixture.hpp"

namespace heddle::test {
namespace {

/// Memory of a device, or page-locked memory of the host, with an image of it.
class Arena {
 public:
  static constexpr std::size_t bytes_max = std::size_t{2} << 20U;

  Arena(Device& owner, bool is_on_host)
      : owner_(owner),
        host_(static_cast<std::byte*>(owner.allocate_host(bytes_max))),
        stream_(owner.create_stream()) {
    if (!is_on_host) memory_ = std::make_unique<DeviceBuffer>(owner, bytes_max);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { owner_.free_host(host_); }

  [[nodiscard]] Destination at(std::size_t offset) const {
    if (memory_ == nullptr) return {host_ + offset, nullptr};
    return {memory_->address() + offset, &owner_};
  }
  /// While no other stream works on it.
  void set(const std::vector<std::byte>& image) const {
    std::copy(image.begin(), image.end(), host_);
    if (memory_ == nullptr) return;
    stream_->copy(at(0), {host_, nullptr}, image.size());
    stream_->synchronize();
  }
  [[nodiscard]] std::vector<std::byte> get(std::size_t bytes) const {
    if (memory_ != nullptr) {
      stream_->copy({host_, nullptr}, {memory_->address(), &owner_}, bytes);
      stream_->synchronize();
    }
    return {host_, host_ + bytes};
  }

 private:
  Device& owner_;
  std::byte* host_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<DeviceBuffer> memory_;
};

struct Shape {
  std::size_t inputs = 1, outputs = 1;
  std::size_t count = 0;
  std::size_t distance = 0,
              other_distance = 0;  ///< of even and odd ones from a multiple of 16 bytes
  std::size_t arenas = 1;          ///< of which inputs and outputs lie in the first so many
  bool is_in_place = false;        ///< output 0 is the last input
  std::uint32_t blocks_max = 0;
  reduction::Arrangement in{};
  reduction::Arrangement out{};
};

class DeviceReductionTest : public testing::DeviceTest {
 protected:
  void SetUp() override {
    testing::DeviceTest::SetUp();
    if (IsSkipped()) return;
    stream_ = device().create_stream();
    arenas_.push_back(std::make_unique<Arena>(device(), false));
    arenas_.push_back(std::make_unique<Arena>(device(), true));
    if (device().can_access_peer(other())) {
      arenas_.push_back(std::make_unique<Arena>(other(), false));
    }
  }
  void TearDown() override {
    stream_.reset();
    arenas_.clear();
  }

  [[nodiscard]] Stream& stream() const { return *stream_; }
  [[nodiscard]] std::size_t arena_count() const { return arenas_.size(); }
  [[nodiscard]] const Arena& arena(std::size_t a) const { return *arenas_[a]; }

  /// Draws inputs, reduces them on the device, and compares all memory with what must be there.
  void check(const ReduceCase& what, const Shape& shape, std::mt19937_64& random) {
    SCOPED_TRACE(::testing::Message()
                 << what.operation.name() << " of " << name_of(what.scalar) << ", " << shape.inputs
                 << " inputs, " << shape.outputs << " outputs, " << shape.count
                 << " elements, distances " << shape.distance << " and " << shape.other_distance
                 << ", " << shape.arenas << " arenas" << (shape.is_in_place ? ", in place" : ""));
    const auto place = [&](std::size_t k, std::size_t i) {
      return walked_place(k < shape.inputs ? shape.in : shape.out, i * what.bytes);
    };
    const std::size_t last = std::max<std::size_t>(shape.count, 1) - 1;
    const std::size_t slot_bytes =
        (std::max(place(0, last), place(shape.inputs, last)) + what.bytes + 64) / 16 * 16;
    const std::size_t slots = shape.inputs + shape.outputs;
    const std::size_t image_bytes = (slots / shape.arenas + 1) * slot_bytes;
    ASSERT_LE(image_bytes, Arena::bytes_max);
    std::vector<std::vector<std::byte>> images(
        shape.arenas, std::vector<std::byte>(image_bytes, std::byte{0x5a}));
    struct Spot {
      std::size_t arena, offset;
    };
    std::vector<Spot> spots;
    for (std::size_t k = 0; k < slots; ++k) {
      spots.push_back({k % shape.arenas, k / shape.arenas * slot_bytes + 16 +
                                             (k % 2 == 0 ? shape.distance : shape.other_distance)});
    }
    const auto element = [&](std::size_t k, std::size_t i) {
      return images[spots[k].arena].data() + spots[k].offset + place(k, i);
    };
    if (shape.is_in_place) spots[shape.inputs] = spots[shape.inputs - 1];
    for (std::size_t k = 0; k < shape.inputs; ++k) {
      for (std::size_t i = 0; i < shape.count; ++i) what.draw(random, element(k, i));
    }
    for (std::size_t a = 0; a < shape.arenas; ++a) arena(a).set(images[a]);

    std::vector<Source> inputs;
    std::vector<Destination> outputs;
    for (std::size_t k = 0; k < slots; ++k) {
      const Destination at = arena(spots[k].arena).at(spots[k].offset);
      if (k < shape.inputs) inputs.push_back({at.address, at.device});
      if (k >= shape.inputs) outputs.push_back(at);
    }
    queue_reduction(stream(), what.operation, what.scalar, outputs, inputs,
                    static_cast<std::int64_t>(shape.count),
                    {shape.blocks_max, shape.in, shape.out});
    stream().synchronize();

    std::vector<std::vector<std::byte>> results;
    for (std::size_t a = 0; a < shape.arenas; ++a) results.push_back(arena(a).get(image_bytes));
    for (std::size_t i = 0; i < shape.count; ++i) {
      std::vector<const std::byte*> elements;
      for (std::size_t k = 0; k < shape.inputs; ++k) elements.push_back(element(k, i));
      const std::vector<std::byte> wanted = bracketed(what, elements);
      for (std::size_t k = shape.inputs; k < slots; ++k) {
        const std::byte* const is = results[spots[k].arena].data() + spots[k].offset + place(k, i);
        ASSERT_TRUE(what.same(is, wanted.data()))
            << "output " << k - shape.inputs << ", element " << i;
        std::memcpy(element(k, i), is, what.bytes);
      }
    }
    for (std::size_t a = 0; a < shape.arenas; ++a) {
      ASSERT_EQ(results[a], images[a]) << "something else was written in arena " << a;
    }
  }

  /// What queueing one element of float64 throws.
  [[nodiscard]] std::string refusal_of(const ReduceOperation& operation) const {
    std::array<std::byte, 64> host{};
    const Destination nowhere{host.data(), nullptr};
    return testing::error_of([&] {
      queue_reduction(stream(), operation, Scalar::float64, std::array{nowhere},
                      std::array{Source{host.data(), nullptr}}, 1);
    });
  }

 private:
  std::unique_ptr<Stream> stream_;
  std::vector<std::unique_ptr<Arena>> arenas_;
};

std::vector<ReduceCase> all_cases() {
  std::vector<ReduceCase> all = built_in_cases();
  for (ReduceCase& one : own_cases()) all.push_back(std::move(one));
  return all;
}

}  // namespace

TEST_P(DeviceReductionTest, has_the_bits_of_the_reference_for_all_operations_and_shapes) {
  std::mt19937_64 random(46);
  constexpr std::array<std::size_t, 6> counts{0, 1, 2, 13, 61, 509};
  for (const ReduceCase& what : all_cases()) {
    for (std::size_t inputs = 1; inputs <= ReduceOperation::inputs_max; ++inputs) {
      Shape shape{};
      shape.inputs = inputs;
      shape.outputs = random() % 3 == 0 ? 1 + random() % ReduceOperation::inputs_max : 1;
      shape.count = counts[random() % counts.size()];
      shape.distance = random() % 3 == 0 ? random() % 16 : 0;
      shape.other_distance = random() % 4 == 0 ? random() % 16 : shape.distance;
      shape.arenas = 1 + random() % arena_count();
      shape.is_in_place = random() % 3 == 0;
      check(what, shape, random);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(DeviceReductionTest, has_the_bits_of_the_reference_for_long_ranges) {
  std::mt19937_64 random(47);
  for (const ReduceCase& what : all_cases()) {
    const bool is_typical = (what.operation == ReduceOperation::sum() &&
                             (what.scalar == Scalar::float64 || what.scalar == Scalar::uint8)) ||
                            (what.operation == ReduceOperation::minimum_with_index() &&
                             what.scalar == Scalar::float32) ||
                            what.operation.name() == "matrix product";
    if (!is_typical) continue;
    for (const std::size_t inputs : {2U, 3U, 8U, 16U}) {
      const std::size_t count = (std::size_t{1} << 20U) / (inputs + 2) / what.bytes;
      check(what, {inputs, 2, count, 0, 0, 1, false}, random);
      check(what, {inputs, 1, count - 3, 8, 8, arena_count(), true, 2}, random);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(DeviceReductionTest, has_the_bits_of_the_reference_for_rows_of_all_shapes) {
  std::mt19937_64 random(49);
  for (const ReduceCase& what : all_cases()) {
    const auto bytes = static_cast<std::int64_t>(what.bytes);
    for (int repeat = 0; repeat < 6; ++repeat) {
      Shape shape{};
      shape.inputs = 1 + random() % ReduceOperation::inputs_max;
      shape.outputs = random() % 2 == 0 ? 1 : 1 + random() % ReduceOperation::inputs_max;
      shape.count = 1 + random() % 70;
      shape.arenas = 1 + random() % arena_count();
      shape.is_in_place = random() % 3 == 0;
      shape.in = drawn_arrangement(random, bytes, static_cast<std::int64_t>(shape.count));
      shape.out = shape.is_in_place
                      ? shape.in
                      : drawn_arrangement(random, bytes, static_cast<std::int64_t>(shape.count));
      check(what, shape, random);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(DeviceReductionTest, tells_rows_that_interleave_from_rows_that_overlap) {
  const Arena& own = arena(0);
  const std::array from{Source{own.at(0).address, &device()}};
  const auto reduce = [&](const reduction::Arrangement& in, std::size_t to,
                          const reduction::Arrangement& out) {
    queue_reduction(stream(), ReduceOperation::sum(), Scalar::float64, std::array{own.at(to)}, from,
                    20, {0, in, out});
  };
  const reduction::Arrangement half{{32, 0, 64}, 0};
  reduce(half, 32, half);  // the other half of each row
  reduce(half, 0, half);   // in place
  reduce(half, 32 + 64, half);
  reduce(half, 4096, {});
  const auto refused = [&](std::size_t to, const reduction::Arrangement& out) {
    EXPECT_EQ(testing::error_of([&] { reduce(half, to, out); }),
              "a reduction by sum: output 0 overlaps input 0, without being it");
  };
  refused(24, half);
  refused(40, half);
  refused(0, {{32, 0, 128}, 0});
  refused(32, {{16, 0, 64}, 0});  // rows of another length: nobody looks closer
  EXPECT_EQ(testing::error_of([&] {
              reduce({{36, 0, 64}, 0}, 4096, {});
            }),
            "a reduction of elements of 8 bytes in rows of 36 bytes, each 0 longer than the one "
            "before, behind 0 bytes: elements do not lie in one row each");
  stream().synchronize();
}

TEST_P(DeviceReductionTest, copies_one_input_to_all_outputs) {
  std::mt19937_64 random(48);
  for (const ReduceCase& what : own_cases()) {
    check(what, {1, 16, 1000, 0, 0, arena_count(), false}, random);
    check(what, {1, 3, 1000, 5, 0, arena_count(), true}, random);
  }
}

TEST_P(DeviceReductionTest, refuses_what_it_cannot_do_before_anything_is_queued) {
  const Arena& own = arena(0);
  const auto sum = ReduceOperation::sum();
  const std::array from{Source{own.at(0).address, &device()}};
  const std::array to{own.at(256)};
  const auto error = [&](const ReduceOperation& operation, Scalar scalar,
                         std::span<const Destination> outputs, std::span<const Source> inputs,
                         std::int64_t count) {
    return testing::error_of(
        [&] { queue_reduction(stream(), operation, scalar, outputs, inputs, count); });
  };
  EXPECT_EQ(error(ReduceOperation::bit_or(), Scalar::float64, to, from, 1),
            "a reduction by bit_or of float64 elements; it takes none of these");
  EXPECT_EQ(error(sum, Scalar::float64, to, {}, 1),
            "a reduction of 0 inputs to 1 outputs on a device; 1 to 16 are possible of both");
  EXPECT_EQ(error(sum, Scalar::float64, std::vector<Destination>(17), from, 1),
            "a reduction of 1 inputs to 17 outputs on a device; 1 to 16 are possible of both");
  EXPECT_EQ(error(sum, Scalar::float64, to, from, -1),
            "a reduction of -1 elements of 8 bytes on a device");
  EXPECT_EQ(error(sum, Scalar::float64, std::array{own.at(8)}, from, 2),
            "a reduction by sum: output 0 overlaps input 0, without being it");
  EXPECT_EQ(error(sum, Scalar::float64, std::array{own.at(256), own.at(264)}, from, 2),
            "a reduction by sum: outputs 0 and 1 overlap");
  double elsewhere = 0;
  EXPECT_NE(error(sum, Scalar::float64, std::array{Destination{&elsewhere, nullptr}}, from, 1)
                .find("of kernel 'reduce'"),
            std::string::npos);
  const ReduceOperation on_host = make_host_reduce_operation<double>(
      [](double a, double b) { return a + b; }, {.name = "on the host"});
  const std::string why = refusal_of(on_host);
  EXPECT_NE(why.find("reduce operation on the host has no form for devices"), std::string::npos)
      << why;
  if (GetParam().backend == DeviceBackend::cuda) {
    const ReduceOperation here = make_reduce_operation<double>(
        [](double a, double b) { return a + b; }, {.name = "of this source"});
    EXPECT_NE(refusal_of(here).find("has to be compiled by nvcc"), std::string::npos);
  }
  stream().synchronize();
}

TEST_P(DeviceReductionTest, needs_the_operation_only_while_it_is_called) {
  std::vector<double> image(std::size_t{4} * 64);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<double>(i % 7) - 2;
  std::vector<std::byte> bytes(image.size() * sizeof(double));
  std::memcpy(bytes.data(), image.data(), bytes.size());
  arena(0).set(bytes);
  testing::Gate gate;
  gate.close(stream());
  {
    const ReduceOperation product = matrix_product();
    queue_reduction(stream(), product, Scalar::float64, std::array{arena(0).at(1024)},
                    std::array{Source{arena(0).at(0).address, &device()},
                               Source{arena(0).at(512).address, &device()}},
                    16);
  }
  gate.open();
  stream().synchronize();
  const std::vector<std::byte> result = arena(0).get(bytes.size());
  std::array<Matrix2, 16> a{};
  std::array<Matrix2, 16> b{};
  std::array<Matrix2, 16> c{};
  std::memcpy(a.data(), result.data(), 512);
  std::memcpy(b.data(), result.data() + 512, 512);
  std::memcpy(c.data(), result.data() + 1024, 512);
  for (std::size_t i = 0; i < 16; ++i) {
    const Matrix2 wanted = MatrixProduct{}(a[i], b[i]);
    EXPECT_EQ(std::memcmp(&c[i], &wanted, sizeof(wanted)), 0) << i;  // NOLINT(bugprone-*)
  }
}

HEDDLE_ON_ALL_BACKENDS(DeviceReductionTest);

}  // namespace heddle::test
