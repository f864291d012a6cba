#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/index.hpp"

namespace heddle::replay {

/// A direction of a link that messages share: out of a host's card, up a GPU's lane.
using LinkId = Index<struct LinkTag, std::int32_t>;
/// A message under way over one or more links.
using TransferId = Index<struct TransferTag, std::int32_t>;

/// Progress of messages over paths of shared links: a message gets an equal share of each link of
/// its path, at most its own rate, and advances at the smallest of these. (What it leaves of the
/// others is not redistributed.) SharedRates is the same for flows over two resources; here a
/// path has as many links as the machine has between two GPUs.
///
/// Rates change when messages begin or end, in settle(): once for all that begin or end at one
/// time. So ten thousand equal messages into one link cost ten thousand changes, not their square.
/// Predicted ends are told by link: each message is told by the link of its path that was shared
/// most when it began, and that link tells its next end only.
///
/// Invariant (is_valid()): a link's transfers are those whose path has it. Pure; not thread-safe.
class LinkShares {
 public:
  LinkId add_link(double bytes_per_s);

  /// The predicted next end among the messages that `link` tells: pass it to comes() at that time.
  struct Foreseen {
    LinkId link;
    std::int64_t end_ns = 0;
  };
  /// Begins a message of more than 0 bytes, at most at `bytes_per_s`; the path has at least one
  /// link, each once. `tag` comes back from tag(). Before time goes on: settle().
  TransferId begin(std::int64_t now_ns, double bytes, double bytes_per_s,
                   std::span<const LinkId> path, std::int64_t tag);
  /// The message that ends now, for which the caller calls end() next. Otherwise it was slowed
  /// down, and a later end is appended.
  [[nodiscard]] std::optional<TransferId> comes(const Foreseen& end,
                                                std::vector<Foreseen>& foreseen);
  /// Before time goes on: settle(). Numbers of ended messages are used again.
  void end(std::int64_t now_ns, TransferId transfer);
  /// New rates after all that began and ended at `now_ns`; appends the ends that this moves
  /// forward.
  void settle(std::int64_t now_ns, std::vector<Foreseen>& foreseen);
  [[nodiscard]] bool is_settled() const { return changed_.empty(); }

  [[nodiscard]] std::int64_t tag(TransferId transfer) const { return at(transfer).tag; }
  /// Nanoseconds in which at least one message was on the link, up to the last begin or end there.
  [[nodiscard]] std::int64_t busy_ns(LinkId link) const { return at(link).busy_ns; }
  [[nodiscard]] std::int32_t links() const { return static_cast<std::int32_t>(links_.size()); }
  [[nodiscard]] bool is_valid() const;

 private:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  struct Link {
    double rate_per_ns = 0;
    std::int64_t told_ns = never;  ///< told end that has not come yet
    std::int64_t since_ns = 0;     ///< of the last begin or end
    std::int64_t busy_ns = 0;
    bool is_changed = false;
    std::vector<TransferId> transfers;
    [[nodiscard]] double part() const {
      return rate_per_ns / static_cast<double>(transfers.size());
    }
  };
  struct Transfer {
    std::vector<LinkId> path;  ///< empty: the number is free
    LinkId teller;             ///< of the path
    std::int64_t tag = 0;
    double rate_max = 0;  ///< all rates per ns
    double rate = 0;
    double left = 0;
    std::int64_t since_ns = 0;
    std::int64_t end_ns = never;
  };

  [[nodiscard]] Link& at(LinkId id) { return links_[static_cast<std::size_t>(id.value())]; }
  [[nodiscard]] const Link& at(LinkId id) const {
    return links_[static_cast<std::size_t>(id.value())];
  }
  [[nodiscard]] Transfer& at(TransferId id) {
    return transfers_[static_cast<std::size_t>(id.value())];
  }
  [[nodiscard]] const Transfer& at(TransferId id) const {
    return transfers_[static_cast<std::size_t>(id.value())];
  }
  void note_change(std::int64_t now_ns, LinkId id);
  void change(std::int64_t now_ns, Transfer& transfer);
  void tell(LinkId teller, std::int64_t end_ns, std::vector<Foreseen>& foreseen);

  std::vector<Link> links_;
  std::vector<Transfer> transfers_;
  std::vector<TransferId> free_;
  std::vector<LinkId> changed_;  ///< since the last settle()
};

}  // namespace heddle::replay
