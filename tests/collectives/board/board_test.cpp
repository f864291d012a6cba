#include "node-runtime/collectives/board/board.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <new>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

namespace heddle::collectives {
namespace {

/// Zeroed memory of a board.
class Memory {
 public:
  explicit Memory(std::int32_t members)
      : bytes_(Board::bytes_for(members)),
        data_(static_cast<std::byte*>(::operator new (bytes_, std::align_val_t{128}))) {
    std::memset(data_, 0, bytes_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { ::operator delete (data_, std::align_val_t{128}); }

  [[nodiscard]] std::span<std::byte> all() const { return {data_, bytes_}; }

 private:
  std::size_t bytes_;
  std::byte* data_;
};

/// What member m gives in operation k; its length differs by operation and member.
std::vector<std::byte> message(std::int32_t member, std::uint64_t number) {
  constexpr std::array<std::size_t, 6> lengths{0, 8, 40, 41, 3000, Board::slot_bytes};
  const std::size_t length = lengths.at((number + static_cast<std::size_t>(member)) % 6);
  std::vector<std::byte> bytes(length);
  for (std::size_t i = 0; i < length; ++i) {
    bytes[i] = static_cast<std::byte>(i * 7 + number * 13 + static_cast<std::size_t>(member));
  }
  return bytes;
}

void post(Board& board) {
  const std::vector<std::byte> bytes = message(board.own(), board.last() + 1);
  std::ranges::copy(bytes, board.room(bytes.size()).begin());
  board.post(board.last() + 101, bytes.size());
}

}  // namespace

/// In each operation a member takes from some of the others, as chance has it: from none, when it
/// may run ahead, to all.
TEST(Board, gives_each_member_what_others_have_posted_whoever_is_ahead) {
  for (const std::int32_t members : {1, 2, 3, 5}) {
    for (const std::int32_t looks : {0, 200}) {
      const Memory memory(members);
      std::vector<std::jthread> threads;
      std::atomic<int> mistakes{0};
      for (std::int32_t own = 0; own < members; ++own) {
        threads.emplace_back([&, own] {
          Board board(memory.all(), members, own, {looks, 0, {}});
          std::mt19937 random(static_cast<std::uint32_t>(own));
          for (std::uint64_t number = 1; number <= 300; ++number) {
            post(board);
            for (std::int32_t member = 0; member < members; ++member) {
              if (random() % 3 == 0) continue;
              const Board::Posted posted = board.take(member);
              const bool is_right = posted.digest == number + 100 &&
                                    std::ranges::equal(posted.bytes, message(member, number));
              if (!is_right) mistakes.fetch_add(1);
            }
            if (!board.is_valid()) mistakes.fetch_add(1);
          }
        });
      }
      threads.clear();
      EXPECT_EQ(mistakes.load(), 0) << members << " members";
    }
  }
}

TEST(Board, lets_nobody_run_further_ahead_than_one_operation) {
  const Memory memory(2);
  Board first(memory.all(), 2, 0, {0, 0, [] { throw std::runtime_error("enough"); }});
  Board second(memory.all(), 2, 1, {0, 0, {}});
  post(first);
  EXPECT_THROW(post(first), std::runtime_error) << "the other one has not posted the first";
  post(second);
  post(first);
  EXPECT_EQ(first.last(), 2U);
  EXPECT_TRUE(std::ranges::equal(second.take(0).bytes, message(0, 1))) << "still there";
  EXPECT_THROW(static_cast<void>(first.take(1)), std::runtime_error);
  EXPECT_THROW(post(first), std::runtime_error);
  post(second);
  EXPECT_TRUE(std::ranges::equal(first.take(1).bytes, message(1, 2)));
}

TEST(Board, wakes_members_that_sleep) {
  const Memory memory(2);
  Board first(memory.all(), 2, 0, {0, 0, {}});
  std::jthread other([&] {
    Board second(memory.all(), 2, 1, {0, 0, {}});
    post(second);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    post(second);
  });
  post(first);
  EXPECT_TRUE(std::ranges::equal(first.take(1).bytes, message(1, 1)));
  post(first);
  EXPECT_TRUE(std::ranges::equal(first.take(1).bytes, message(1, 2)));
}

}  // namespace heddle::collectives
