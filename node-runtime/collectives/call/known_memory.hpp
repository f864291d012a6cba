#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace heddle::collectives {

/// What a group's ranks have found out about each other's memory: whether those that would do a
/// direct operation on it can map it.
///
/// Operations overlap, and ranks hear of their ends in different orders. Ranks tell each other
/// what they have heard (heard_before), and use only what all have heard: then they find the same.
///
/// Threads: any.
class KnownMemory {
 public:
  enum class Knowledge : std::uint8_t {
    unknown,
    seen,  ///< an operation has had it, and nobody has mapped it for that
    mapped,
    refused,
  };
  struct Fact {
    Knowledge knowledge = Knowledge::unknown;
    std::string why;  ///< refused: what the system says; the same on all ranks
  };

  // ---- operations, by their numbers in the group, which rise ------------------------------------
  /// The operation will learn something, until it has ended. Each operation once.
  void begins(std::int64_t operation);
  void ended(std::int64_t operation);
  /// The last number up to which all operations that have begun have ended, less than `operation`.
  [[nodiscard]] std::int64_t heard_before(std::int64_t operation) const;
  /// What `operation` has found out about memory: a number for the allocations of all ranks. Before
  /// it has ended.
  void learn(std::int64_t operation, std::uint64_t memory, Fact fact);
  /// What operations up to `heard` have found out last, if that is not long ago.
  [[nodiscard]] Fact of(std::uint64_t memory, std::int64_t heard) const;

  // ---- of this rank alone -----------------------------------------------------------------------
  /// Another rank cannot map this rank's memory: a number for both.
  void learn_refused(std::uint64_t mapping);
  [[nodiscard]] bool is_refused(std::uint64_t mapping) const;
  /// Keeps memory that other ranks' devices may still write to, though nobody needs it any more: as
  /// long as the group.
  void keep(std::shared_ptr<std::byte> memory);

 private:
  /// Operations that count. A group has 64 under way, so what is twice as old is asked for no more.
  static constexpr std::int64_t operations_known = 2048;
  static constexpr std::size_t refused_max = 1024;

  void forget(std::int64_t operation);

  mutable std::mutex mutex_;
  std::set<std::int64_t> under_way_;
  std::int64_t last_ = 0;                                         ///< that has begun
  std::map<std::pair<std::uint64_t, std::int64_t>, Fact> facts_;  ///< by memory and operation
  std::set<std::uint64_t> refused_;
  std::vector<std::shared_ptr<std::byte>> kept_;
};

}  // namespace heddle::collectives
