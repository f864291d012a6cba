/// Reductions on the direct way whose elements do not follow each other: where they are reduced
/// where they lie, and where they are packed.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <fmt/format.h>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "node-runtime/collectives/call/direct_call.hpp"
#include "node-runtime/collectives/call/plan.hpp"
#include "node-runtime/collectives/group_calls.hpp"
#include "tests/collectives/call/device_ranks.hpp"

namespace heddle::collectives {
namespace {

constexpr std::int64_t rows = 24;
constexpr std::int64_t columns = 17;
constexpr double gap = -7;

/// Elements in the memory of a rank: where each lies, in doubles.
struct Lie {
  Datatype type = Scalar::float64;
  std::int64_t count = 1;
  std::vector<std::size_t> at{};
};

Lie sub_matrix(std::int64_t leading) {
  Lie lie{Datatype::vector(columns, rows, leading, Scalar::float64)};
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t i = 0; i < rows; ++i) {
      lie.at.push_back(static_cast<std::size_t>(j * leading + i));
    }
  }
  return lie;
}

/// As many elements as a sub-matrix has.
Lie run_of(std::int64_t count = rows * columns) {
  Lie lie{Scalar::float64, count};
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) lie.at.push_back(i);
  return lie;
}

Lie lower_triangle(std::int64_t n, std::int64_t leading) {
  Lie lie{Datatype::triangle({.rows = n, .columns = n, .leading = leading}, Scalar::float64)};
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = j; i < n; ++i) {
      lie.at.push_back(static_cast<std::size_t>(j * leading + i));
    }
  }
  return lie;
}

/// Elements at growing distances.
Lie listed() {
  std::vector<Datatype::IndexedBlock> blocks;
  Lie lie;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < rows * columns; ++i, at += 1 + i % 5 + i % 3) {
    blocks.push_back({at, 1});
    lie.at.push_back(static_cast<std::size_t>(at));
  }
  lie.type = Datatype::indexed(blocks, Scalar::float64);
  return lie;
}

struct Case {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int32_t ranks = 4;
  bool is_in_place = false;
  bool has_several_devices = false;
  std::set<std::int32_t> refuses{};
  bool is_shareable = true;
};

/// How it went.
struct Outcome {
  std::string way;
  std::int32_t packings = 0;  ///< and unpackings
  friend bool operator==(const Outcome&, const Outcome&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Outcome& of) {
    return out << of.way << ", packed " << of.packings << " times";
  }
};

class Group {
 public:
  Group(const Case& of, std::uint32_t seed)
      : of_(of), device_(make_device()), devices_(*device_), table_(*device_, seed) {
    std::vector<NodeId> nodes;
    for (std::int32_t r = 0; r < of.ranks; ++r) nodes.emplace_back(r);
    RankPlace place;
    place.gpu = 0;
    const Places places(std::vector<RankPlace>(static_cast<std::size_t>(of.ranks), place));
    CollectiveRates rates;
    rates.devices.turn_s = 140e-6;  // the direct way is predicted to be fastest
    for (std::int32_t r = 0; r < of.ranks; ++r) {
      planners_.push_back(std::make_unique<Planner>(Rank{r}, places, rates, &devices_));
      planners_.back()->set_direct({Rank{r}, nodes, std::make_shared<KnownMemory>()});
    }
    if (of.has_several_devices) {
      table_.device_of = [](std::int32_t r) { return static_cast<std::uint8_t>(r + 1); };
    }
    table_.refuses = of.refuses;
    table_.is_shareable = of.is_shareable;
  }

  /// `lies(rank)` of inputs and outputs.
  Outcome run(const std::function<Lie(std::int32_t)>& in,
              const std::function<Lie(std::int32_t)>& out) {
    begin(in, out);
    while (table_.step()) {
    }
    Outcome outcome;
    std::set<std::string> ways;
    for (std::int32_t r = 0; r < of_.ranks; ++r) {
      Execution& execution = *executions_[static_cast<std::size_t>(r)];
      EXPECT_TRUE(execution.is_over()) << "rank " << r << " waits for " << execution.waits_for();
      EXPECT_FALSE(execution.failure()) << execution.failure()->what();
      if (!execution.is_over() || execution.failure()) return outcome;
      execution.finish_task();
      const std::string way = execution.way().empty() ? "steps" : execution.way();
      ways.insert(way.substr(0, way.find(',')));
      check(r, in(r), out(r));
    }
    EXPECT_EQ(ways.size(), 1U);
    return {*ways.begin(), table_.own_works};
  }

 private:
  [[nodiscard]] bool gets(std::int32_t rank) const {
    return of_.kind != CollectiveKind::reduce || rank == 0;
  }

  void begin(const std::function<Lie(std::int32_t)>& in,
             const std::function<Lie(std::int32_t)>& out) {
    const auto filled = [&](const Lie& lie, std::int32_t rank) {
      std::vector<double> all(lie.at.back() + 10, gap);
      for (std::size_t i = 0; i < lie.at.size(); ++i) all[lie.at[i]] = value(rank, i);
      return std::make_unique<Doubles>(*device_, all, false);
    };
    for (std::int32_t r = 0; r < of_.ranks; ++r) {
      const Lie from = in(r);
      const Lie to = out(r);
      inputs_.push_back(filled(from, r));
      outputs_.push_back(filled(to, r));
      const Outgoing outgoing{inputs_.back()->address(), from.count, from.type};
      const Incoming incoming{outputs_.back()->address(), to.count, to.type};
      const auto sum = ReduceOperation::sum();
      Call call;
      switch (of_.kind) {
        case CollectiveKind::reduce:
          call = reduce_call(r, outgoing, incoming, sum, 0, {});
          break;
        case CollectiveKind::reduce_scatter:
          call = reduce_scatter_call({outgoing.memory, from.count / of_.ranks, from.type}, incoming,
                                     sum, {});
          break;
        case CollectiveKind::scan:
          call = scan_call(outgoing, incoming, sum, {});
          break;
        default:
          call = of_.is_in_place ? all_reduce_in_place_call(incoming, sum, {})
                                 : all_reduce_call(outgoing, incoming, sum, {});
      }
      couriers_.push_back(std::make_unique<RankCourier>(table_, r, [](std::int64_t) {}));
      executions_.push_back(std::make_unique<Execution>(
          std::move(planners_[static_cast<std::size_t>(r)]->plan(call, 1).task),
          *couriers_.back()));
      couriers_.back()->tell([execution = executions_.back().get()](std::int64_t ticket) {
        try {
          execution->ended(ticket);
        } catch (const Error& error) {
          execution->fail(error);
        }
      });
    }
    for (const auto& execution : executions_) execution->begin();
  }

  void check(std::int32_t rank, const Lie& in, const Lie& out) {
    std::vector<double> wanted(out.at.back() + 10, gap);
    for (std::size_t i = 0; i < out.at.size(); ++i) {
      const std::size_t offset = of_.kind == CollectiveKind::reduce_scatter
                                     ? static_cast<std::size_t>(rank) * out.at.size()
                                     : 0;
      const std::int32_t end = of_.kind == CollectiveKind::scan ? rank + 1 : of_.ranks;
      wanted[out.at[i]] = gets(rank) ? bracket(0, end, offset + i) : value(rank, i);
    }
    const auto bits = [](const std::vector<double>& all) {
      std::vector<std::uint64_t> made;
      for (const double one : all) made.push_back(std::bit_cast<std::uint64_t>(one));
      return made;
    };
    const auto r = static_cast<std::size_t>(rank);
    EXPECT_EQ(bits(outputs_[r]->get()), bits(wanted)) << "rank " << rank;
    if (of_.is_in_place) return;
    std::vector<double> untouched(in.at.back() + 10, gap);
    for (std::size_t i = 0; i < in.at.size(); ++i) untouched[in.at[i]] = value(rank, i);
    EXPECT_EQ(bits(inputs_[r]->get()), bits(untouched)) << "rank " << rank << ", its input";
  }

  Case of_;
  std::unique_ptr<Device> device_;
  OneDevice devices_;
  Table table_;
  std::vector<std::unique_ptr<Planner>> planners_;
  std::vector<std::unique_ptr<Doubles>> inputs_;
  std::vector<std::unique_ptr<Doubles>> outputs_;
  std::vector<std::unique_ptr<RankCourier>> couriers_;
  std::vector<std::unique_ptr<Execution>> executions_;
};

using Lies = std::function<Lie(std::int32_t)>;
Lies all(const Lie& lie) {
  return [lie](std::int32_t) { return lie; };
}

/// In several orders of events.
void expect(const Case& of, const Lies& in, const Lies& out, const Outcome& wanted) {
  for (std::uint32_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}, {} ranks", seed, of.ranks));
    EXPECT_EQ(Group(of, seed).run(in, out), wanted);
    if (::testing::Test::HasFailure()) return;
  }
}

const Outcome in_place{"direct", 0};

}  // namespace

TEST(DirectRows, are_reduced_where_they_lie_if_all_ranks_have_them_alike) {
  for (const std::int32_t ranks : {2, 3, 6}) {
    for (const bool has_several_devices : {false, true}) {
      Case of{CollectiveKind::all_reduce, ranks, false, has_several_devices};
      expect(of, all(sub_matrix(30)), all(sub_matrix(30)), in_place);
      expect(of, all(sub_matrix(30)), all(sub_matrix(37)), in_place);
      expect(of, all(sub_matrix(30)), all(run_of()), in_place);
      expect(of, all(run_of()), all(sub_matrix(25)), in_place);
      expect(of, all(lower_triangle(20, 20)), all(lower_triangle(20, 33)), in_place);
      of.is_in_place = true;
      expect(of, all(sub_matrix(30)), all(sub_matrix(30)), in_place);
      expect(of, all(lower_triangle(31, 40)), all(lower_triangle(31, 40)), in_place);
      of.is_in_place = false;
      of.kind = CollectiveKind::scan;
      expect(of, all(sub_matrix(30)), all(sub_matrix(26)), in_place);
    }
  }
}

TEST(DirectRows, of_the_ranks_that_have_none_do_not_count) {
  expect({CollectiveKind::reduce, 4}, all(sub_matrix(30)), all(sub_matrix(40)), in_place);
}

/// The blocks of all ranks are one range of rows.
TEST(DirectRows, of_blocks_for_each_rank_are_reduced_where_they_lie) {
  const std::int64_t ranks = 4;
  Lie in{Datatype::resized(Datatype::contiguous(rows, Scalar::float64), 0, 8 * 30), 3 * ranks};
  for (std::int64_t j = 0; j < in.count; ++j) {
    for (std::int64_t i = 0; i < rows; ++i) in.at.push_back(static_cast<std::size_t>(30 * j + i));
  }
  for (const bool has_several_devices : {false, true}) {
    expect({CollectiveKind::reduce_scatter, 4, false, has_several_devices}, all(in),
           all(run_of(3 * rows)), in_place);
  }
}

/// Each rank packs its input and unpacks its output.
TEST(DirectRows, are_packed_where_they_do_not_lie_alike) {
  const Case of{CollectiveKind::all_reduce, 3};
  const Lies unlike = [](std::int32_t r) { return sub_matrix(30 + r); };
  expect(of, unlike, all(sub_matrix(30)), {"direct", 6});
  expect(of, all(sub_matrix(30)), unlike, {"direct", 6});
  expect(of, all(listed()), all(listed()), {"direct", 6});
  expect(of, [](std::int32_t r) { return r == 1 ? run_of() : sub_matrix(30); }, all(run_of()),
         {"direct", 2});
}

TEST(DirectRows, that_cannot_be_mapped_are_packed_for_another_way) {
  Case one{CollectiveKind::all_reduce, 3};
  one.refuses = {0};
  for (const bool is_in_place : {false, true}) {
    one.is_in_place = is_in_place;
    const Outcome outcome = Group(one, 1).run(all(sub_matrix(30)), all(sub_matrix(30)));
    EXPECT_EQ(outcome.way, "gsb");
    EXPECT_GE(outcome.packings, 6);
  }
  Case several{CollectiveKind::all_reduce, 3, false, true};
  several.refuses = {2};
  EXPECT_EQ(Group(several, 1).run(all(sub_matrix(30)), all(sub_matrix(30))).way, "steps");
  several.is_shareable = false;
  EXPECT_EQ(Group(several, 1).run(all(sub_matrix(30)), all(sub_matrix(30))).way, "steps");
}

}  // namespace heddle::collectives
