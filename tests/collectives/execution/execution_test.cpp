#include "node-runtime/collectives/execution/execution.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "node-runtime/collectives/schedule/all_gather.hpp"
#include "node-runtime/collectives/schedule/all_to_all.hpp"
#include "node-runtime/collectives/schedule/barrier.hpp"
#include "node-runtime/collectives/schedule/broadcast.hpp"
#include "node-runtime/collectives/schedule/reduce.hpp"
#include "node-runtime/collectives/schedule/scan.hpp"
#include "node-runtime/collectives/schedule/scatter.hpp"
#include "tests/collectives/schedule/random_places.hpp"

/// Executions of all ranks in one thread, whose messages begin, meet and end in an order that a
/// seed decides.
namespace heddle::collectives {
namespace {

class World;

class SimulatedCourier final : public Courier {
 public:
  SimulatedCourier(World& world, Rank rank) : world_(world), rank_(rank) {}
  void send(Rank to, Name name, std::span<const std::span<const std::byte>> pieces,
            std::int64_t ticket) override;
  void receive(Rank from, Name name, std::span<const std::span<std::byte>> pieces,
               std::int64_t ticket) override;

 private:
  World& world_;
  Rank rank_;
};

/// Elements of type double; what each rank has, and where its blocks are.
struct Part {
  std::vector<double> input;
  std::vector<double> output;
  std::function<BlockPlace(std::int32_t block)> place;
  std::vector<double> slots{};
  bool is_in_place = false;  ///< the output has the input, which is there to compare with
};

struct Cutting {
  std::int64_t fragment_elements;
  std::int32_t in_flight;
};

class World {
 public:
  World(std::uint32_t seed, std::vector<Part>& parts) : random_(seed), parts_(parts) {}

  void add(Schedule schedule, const Cutting& cutting, std::int64_t element_bytes = 8) {
    Part& part = parts_[executions_.size()];
    const Rank rank{static_cast<std::int32_t>(executions_.size())};
    part.slots.assign(
        static_cast<std::size_t>(schedule.slots * cutting.in_flight * cutting.fragment_elements),
        -1);
    Task task;
    task.schedule = std::make_shared<const CompiledSchedule>(std::move(schedule));
    task.place = part.place;
    task.element_bytes = element_bytes;
    task.fragment_elements = cutting.fragment_elements;
    task.in_flight = cutting.in_flight;
    if (part.is_in_place) part.output = part.input;
    task.input = reinterpret_cast<const std::byte*>(part.is_in_place ? part.output.data()
                                                                     : part.input.data());
    task.output = reinterpret_cast<std::byte*>(part.output.data());
    task.slots = reinterpret_cast<std::byte*>(part.slots.data());
    task.scalar = Scalar::float64;
    couriers_.push_back(std::make_unique<SimulatedCourier>(*this, rank));
    executions_.push_back(std::make_unique<Execution>(std::move(task), *couriers_.back()));
  }

  /// Ranks begin, and messages end, as chance has it. Returns what some rank waits for for ever.
  std::string run() {
    std::vector<std::size_t> late;
    for (std::size_t r = 0; r < executions_.size(); ++r) late.push_back(r);
    for (;;) {
      const std::size_t choices = late.size() + met_.size();
      if (choices == 0) break;
      const std::size_t k = random_() % choices;
      if (k < late.size()) {
        const std::size_t rank = late[k];
        late.erase(late.begin() + static_cast<std::ptrdiff_t>(k));
        executions_[rank]->begin();
        continue;
      }
      deliver(k - late.size());
    }
    for (const auto& one : executions_) {
      if (!one->is_over()) return "a rank waits: " + one->waits_for();
      if (one->failure()) return one->failure()->what();
    }
    return "";
  }

  /// From, to, and the name as one number.
  using Key = std::tuple<std::int32_t, std::int32_t, std::int64_t>;
  void post_send(const Key& key, std::vector<std::span<const std::byte>> pieces,
                 std::int64_t ticket) {
    Queue& queue = queues_[key];
    queue.sends.push_back({std::move(pieces), {}, ticket});
    meet(key, queue);
  }
  void post_receive(const Key& key, std::vector<std::span<std::byte>> pieces, std::int64_t ticket) {
    Queue& queue = queues_[key];
    queue.receives.push_back({std::move(pieces), ticket});
    meet(key, queue);
  }

 private:
  struct Sent {
    std::vector<std::span<const std::byte>> pieces;
    std::vector<std::byte> bytes;  ///< once they have left
    std::int64_t ticket;
  };
  struct Received {
    std::vector<std::span<std::byte>> pieces;
    std::int64_t ticket;
  };
  struct Queue {
    std::vector<Sent> sends;
    std::vector<Received> receives;
  };
  struct Met {
    Key key;
    Sent sent;
    Received received;
    bool is_sent = false;
    bool is_received = false;
  };

  void meet(const Key& key, Queue& queue) {
    if (queue.sends.empty() || queue.receives.empty()) return;
    met_.push_back({key, std::move(queue.sends.front()), std::move(queue.receives.front())});
    queue.sends.erase(queue.sends.begin());
    queue.receives.erase(queue.receives.begin());
  }

  /// Ends one side of a message; the content comes with the receiver's.
  void deliver(std::size_t index) {
    Met& message = met_[index];
    // The sender's memory is read as late as may be: when the first of both is told.
    if (!message.is_sent && !message.is_received) {
      for (const auto& piece : message.sent.pieces) {
        message.sent.bytes.insert(message.sent.bytes.end(), piece.begin(), piece.end());
      }
    }
    const bool to_sender = !message.is_sent && (message.is_received || random_() % 2 == 0);
    const auto [from, to, place] = message.key;
    std::int64_t ticket = message.sent.ticket;
    std::int32_t rank = from;
    if (to_sender) {
      message.is_sent = true;
    } else {
      message.is_received = true;
      ticket = message.received.ticket;
      rank = to;
      std::size_t at = 0;
      for (const std::span<std::byte> piece : message.received.pieces) {
        ASSERT_LE(at + piece.size(), message.sent.bytes.size());
        std::copy_n(message.sent.bytes.begin() + static_cast<std::ptrdiff_t>(at), piece.size(),
                    piece.begin());
        at += piece.size();
      }
      ASSERT_EQ(at, message.sent.bytes.size()) << from << " to " << to;
    }
    if (message.is_sent && message.is_received) {
      met_.erase(met_.begin() + static_cast<std::ptrdiff_t>(index));
    }
    executions_[static_cast<std::size_t>(rank)]->ended(ticket);
  }

  std::mt19937 random_;
  std::vector<Part>& parts_;
  std::vector<std::unique_ptr<SimulatedCourier>> couriers_;
  std::vector<std::unique_ptr<Execution>> executions_;
  std::map<Key, Queue> queues_;
  std::vector<Met> met_;
};

std::int64_t place_of(Courier::Name name) {
  return name.fragment * name.messages + name.number;
}

void SimulatedCourier::send(Rank to, Name name, std::span<const std::span<const std::byte>> pieces,
                            std::int64_t ticket) {
  world_.post_send({rank_.value(), to.value(), place_of(name)}, {pieces.begin(), pieces.end()},
                   ticket);
}
void SimulatedCourier::receive(Rank from, Name name, std::span<const std::span<std::byte>> pieces,
                               std::int64_t ticket) {
  world_.post_receive({from.value(), rank_.value(), place_of(name)}, {pieces.begin(), pieces.end()},
                      ticket);
}

/// One case: ranks at random places, and lengths of blocks.
class Case {
 public:
  explicit Case(std::uint32_t seed)
      : seed_(seed),
        random_(seed),
        size_(1 + below(13)),
        places_(random_places(random_, size_)),
        levels_(places_, below(2) == 0 ? Levels::Sockets::counted : Levels::Sockets::ignored),
        root_(below(size_)),
        cutting_{1 + below(9), 1 + below(3)} {
    for (Tree& tree : trees_) tree = all_trees[static_cast<std::size_t>(below(5))];
    for (std::int32_t r = 0; r < size_; ++r) counts_.push_back(below(3) == 0 ? 0 : below(30));
  }

  [[nodiscard]] std::int32_t below(std::int32_t n) {
    return static_cast<std::int32_t>(random_() % static_cast<std::uint32_t>(n));
  }
  [[nodiscard]] double value() { return std::uniform_real_distribution<double>(-1, 1)(random_); }
  [[nodiscard]] std::vector<double> values(std::int64_t count) {
    std::vector<double> all;
    for (std::int64_t k = 0; k < count; ++k) all.push_back(value());
    return all;
  }

  /// Runs all ranks' schedules on `parts`.
  template <class Make>
  void run(std::vector<Part>& parts, const Make& make, std::int64_t element_bytes = 8) {
    World world(seed_, parts);
    for (Rank rank{0}; rank < Rank{size_}; ++rank) world.add(make(rank), cutting_, element_bytes);
    ASSERT_EQ(world.run(), "") << "seed " << seed_;
  }

  std::uint32_t seed_;
  std::mt19937 random_;
  std::int32_t size_;
  Places places_;
  Levels levels_;
  Rank root_;
  Cutting cutting_;
  LevelTrees trees_{};
  std::vector<std::int64_t> counts_;  ///< elements of the blocks of ranks
};

/// Blocks one behind the other.
std::vector<std::int64_t> begins_of(const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> begins{0};
  for (const std::int64_t count : counts) begins.push_back(begins.back() + count);
  return begins;
}

/// The bracket by its definition.
double bracket(const std::vector<Part>& parts, std::int32_t begin, std::int32_t end,
               std::size_t element) {
  if (end - begin == 1) return parts[static_cast<std::size_t>(begin)].input[element];
  std::int32_t left = 1;
  while (2 * left < end - begin) left *= 2;
  const double a = bracket(parts, begin, begin + left, element);
  return a + bracket(parts, begin + left, end, element);
}

std::vector<double> reduced(const std::vector<Part>& parts, std::int32_t end) {
  std::vector<double> all;
  for (std::size_t k = 0; k < parts[0].input.size(); ++k) {
    all.push_back(bracket(parts, 0, end, k));
  }
  return all;
}

std::vector<double> slice(const std::vector<double>& all, std::int64_t begin, std::int64_t end) {
  return {all.begin() + begin, all.begin() + end};
}

void for_seeds(const std::function<void(Case&)>& check) {
  for (std::uint32_t seed = 1; seed <= 400; ++seed) {
    Case one(seed);
    check(one);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace

TEST(Execution, of_broadcasts_brings_the_roots_elements_to_all) {
  for_seeds([](Case& one) {
    const std::int64_t count = one.below(60);
    const std::int32_t blocks = broadcast_blocks(one.trees_);
    const std::vector<std::int64_t> counts =
        blocks == 1 ? std::vector{count} : std::vector{count / 2, count - count / 2};
    const std::vector<std::int64_t> begins = begins_of(counts);
    std::vector<Part> parts;
    for (std::int32_t r = 0; r < one.size_; ++r) {
      parts.push_back({one.values(count), std::vector<double>(static_cast<std::size_t>(count)),
                       [=](std::int32_t b) {
                         const auto k = static_cast<std::size_t>(b);
                         return BlockPlace{counts[k], begins[k], begins[k]};
                       }});
    }
    one.run(parts,
            [&](Rank rank) { return make_broadcast(rank, one.root_, one.levels_, one.trees_); });
    for (Rank rank{0}; rank < Rank{one.size_}; ++rank) {
      if (rank == one.root_) continue;
      EXPECT_EQ(parts[static_cast<std::size_t>(rank.value())].output,
                parts[static_cast<std::size_t>(one.root_.value())].input)
          << "seed " << one.seed_;
    }
  });
}

TEST(Execution, of_scatters_and_gathers_moves_each_ranks_block) {
  for_seeds([](Case& one) {
    const std::vector<std::int64_t> begins = begins_of(one.counts_);
    const auto root = static_cast<std::size_t>(one.root_.value());
    const auto part = [&](bool is_root, std::int64_t own) {
      return static_cast<std::size_t>(is_root ? begins.back() : own);
    };
    std::vector<Part> scatter;
    std::vector<Part> gather;
    for (std::size_t r = 0; r < one.counts_.size(); ++r) {
      const std::int64_t own = one.counts_[r];
      const std::size_t at_root = part(r == root, own);
      scatter.push_back({one.values(r == root ? begins.back() : 0),
                         std::vector<double>(static_cast<std::size_t>(own)),
                         [&one, begins](std::int32_t b) {
                           const auto k = static_cast<std::size_t>(b);
                           return BlockPlace{one.counts_[k], begins[k], 0};
                         }});
      gather.push_back({one.values(own), std::vector<double>(r == root ? at_root : 0),
                        [&one, begins](std::int32_t b) {
                          const auto k = static_cast<std::size_t>(b);
                          return BlockPlace{one.counts_[k], 0, begins[k]};
                        }});
    }
    one.run(scatter,
            [&](Rank rank) { return make_scatter(rank, one.root_, one.levels_, one.trees_); });
    one.run(gather,
            [&](Rank rank) { return make_gather(rank, one.root_, one.levels_, one.trees_); });
    for (std::size_t r = 0; r < one.counts_.size(); ++r) {
      EXPECT_EQ(scatter[r].output, slice(scatter[root].input, begins[r], begins[r + 1]))
          << "seed " << one.seed_;
      EXPECT_EQ(slice(gather[root].output, begins[r], begins[r + 1]), gather[r].input)
          << "seed " << one.seed_;
    }
  });
}

TEST(Execution, of_reductions_and_scans_has_the_bits_of_the_bracket) {
  for_seeds([](Case& one) {
    const std::int64_t count = one.below(60);
    std::vector<Part> parts;
    for (std::int32_t r = 0; r < one.size_; ++r) {
      parts.push_back({one.values(count), std::vector<double>(static_cast<std::size_t>(count)),
                       [=](std::int32_t) {
                         return BlockPlace{count, 0, 0};
                       }});
    }
    const auto root = static_cast<std::size_t>(one.root_.value());
    one.run(parts,
            [&](Rank rank) { return make_reduce(rank, one.root_, one.levels_, one.trees_); });
    EXPECT_EQ(parts[root].output, reduced(parts, one.size_)) << "seed " << one.seed_;
    for (const Scan kind : {Scan::inclusive, Scan::exclusive}) {
      one.run(parts, [&](Rank rank) { return make_scan(rank, one.size_, kind); });
      const std::int32_t more = kind == Scan::inclusive ? 1 : 0;
      for (std::int32_t r = 1 - more; r < one.size_; ++r) {
        EXPECT_EQ(parts[static_cast<std::size_t>(r)].output, reduced(parts, r + more))
            << "seed " << one.seed_ << ", rank " << r;
      }
    }
  });
}

TEST(Execution, of_operations_with_results_for_all_has_them_on_all) {
  for_seeds([](Case& one) {
    const std::vector<std::int64_t> begins = begins_of(one.counts_);
    const auto in_all = [&](std::int64_t own, bool input_is_all, bool output_is_all) {
      const auto all = begins.back();
      return Part{one.values(input_is_all ? all : own),
                  std::vector<double>(static_cast<std::size_t>(output_is_all ? all : own)),
                  [&one, begins, input_is_all, output_is_all](std::int32_t b) {
                    const auto k = static_cast<std::size_t>(b);
                    return BlockPlace{one.counts_[k], input_is_all ? begins[k] : 0,
                                      output_is_all ? begins[k] : 0};
                  }};
    };
    std::vector<Part> gather;
    std::vector<Part> scatter;
    std::vector<Part> reduce;
    for (const std::int64_t own : one.counts_) {
      gather.push_back(in_all(own, false, true));
      scatter.push_back(in_all(own, true, false));
      reduce.push_back(in_all(own, true, true));
    }
    one.run(gather, [&](Rank rank) { return make_all_gather(rank, one.levels_, one.trees_); });
    one.run(scatter, [&](Rank rank) { return make_reduce_scatter(rank, one.levels_, one.trees_); });
    one.run(reduce, [&](Rank rank) {
      return make_all_reduce(rank, one.levels_, one.trees_, AllReduce::scatter_gather);
    });
    std::vector<double> gathered;
    for (const Part& part : gather) {
      gathered.insert(gathered.end(), part.input.begin(), part.input.end());
    }
    for (std::size_t r = 0; r < one.counts_.size(); ++r) {
      EXPECT_EQ(gather[r].output, gathered) << "seed " << one.seed_;
      EXPECT_EQ(scatter[r].output, slice(reduced(scatter, one.size_), begins[r], begins[r + 1]))
          << "seed " << one.seed_;
      EXPECT_EQ(reduce[r].output, reduced(reduce, one.size_)) << "seed " << one.seed_;
    }
  });
}

/// What a rank gives is read by others before their result can come back: an input and an output
/// may be the same memory.
TEST(Execution, of_reductions_for_all_may_have_one_memory_for_input_and_output) {
  for_seeds([](Case& one) {
    for (const AllReduce way : {AllReduce::reduce_broadcast, AllReduce::scatter_gather}) {
      const std::int32_t blocks = all_reduce_blocks(way, one.size_, one.trees_);
      const std::int64_t count = one.below(60);
      std::vector<Part> parts;
      for (std::int32_t r = 0; r < one.size_; ++r) {
        parts.push_back({one.values(count), {}, [count, blocks](std::int32_t b) {
                           const std::int64_t begin = count * b / blocks;
                           return BlockPlace{count * (b + 1) / blocks - begin, begin, begin};
                         }});
        parts.back().is_in_place = true;
      }
      one.run(parts,
              [&](Rank rank) { return make_all_reduce(rank, one.levels_, one.trees_, way); });
      for (const Part& part : parts) {
        EXPECT_EQ(part.output, reduced(parts, one.size_)) << "seed " << one.seed_;
      }
    }
  });
}

TEST(Execution, of_all_to_all_moves_blocks_of_any_length) {
  for_seeds([](Case& one) {
    const auto size = static_cast<std::size_t>(one.size_);
    std::vector<std::vector<std::int64_t>> counts(size, std::vector<std::int64_t>(size));
    for (auto& row : counts) {
      for (std::int64_t& count : row) count = one.below(3) == 0 ? 0 : one.below(12);
    }
    std::vector<Part> parts;
    for (std::size_t r = 0; r < size; ++r) {
      std::vector<std::int64_t> coming;
      for (std::size_t s = 0; s < size; ++s) coming.push_back(counts[s][r]);
      const std::vector<std::int64_t> out = begins_of(counts[r]);
      const std::vector<std::int64_t> in = begins_of(coming);
      parts.push_back(
          {one.values(out.back()), std::vector<double>(static_cast<std::size_t>(in.back())),
           [=](std::int32_t b) {
             const std::size_t from = static_cast<std::size_t>(b) / size;
             const std::size_t to = static_cast<std::size_t>(b) % size;
             return BlockPlace{counts[from][to], from == r ? out[to] : 0, to == r ? in[from] : 0};
           }});
    }
    for (const AllToAll way : {AllToAll::pairwise, AllToAll::leaders, AllToAll::bruck}) {
      for (Part& part : parts) std::ranges::fill(part.output, 0.0);
      one.run(parts,
              [&](Rank rank) { return make_all_to_all(rank, one.places_, one.levels_, way); });
      for (std::size_t r = 0; r < size; ++r) {
        std::vector<double> expected;
        for (std::size_t s = 0; s < size; ++s) {
          const std::int64_t begin = begins_of(counts[s])[r];
          const std::vector<double> block = slice(parts[s].input, begin, begin + counts[s][r]);
          expected.insert(expected.end(), block.begin(), block.end());
        }
        EXPECT_EQ(parts[r].output, expected) << "seed " << one.seed_;
      }
    }
  });
}

TEST(Execution, of_barriers_sends_messages_of_nothing) {
  for_seeds([](Case& one) {
    std::vector<Part> parts(static_cast<std::size_t>(one.size_));
    for (Part& part : parts) part.place = [](std::int32_t) { return BlockPlace{1, 0, 0}; };
    one.run(
        parts, [&](Rank rank) { return make_barrier(rank, one.levels_, one.trees_); }, 0);
  });
}

}  // namespace heddle::collectives
