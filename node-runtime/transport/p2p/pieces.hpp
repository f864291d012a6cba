#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/clock.hpp"
#include "base/id_table.hpp"
#include "node-runtime/transport/p2p/report.hpp"
#include "node-runtime/transport/p2p/staging.hpp"
#include "node-runtime/transport/p2p/wire.hpp"

namespace heddle::p2p {

/// A piece of a message that the wire or a device works on.
struct Piece {
  using Kind = FragmentReport::Kind;
  Kind kind = Kind::send;
  std::int64_t request = 0;
  StreamRange range;
  std::optional<Staging::Slot> slot;
  std::optional<Staging::Slot> between{};  ///< fill: the slot on this node's device on the way
  std::optional<NodeId> blank_to{};        ///< an empty piece to that node, of no request
  std::int64_t begun_ns = 0;               ///< only where fragments are reported
  [[nodiscard]] bool is_of_send() const { return kind <= Kind::fill; }
};

/// The pieces that the wire and the devices work on, by the number that they report the end with.
///
/// Thread: the progress thread only.
class Pieces {
 public:
  /// `report` may be null.
  explicit Pieces(std::function<void(const FragmentReport&)> report) : report_(std::move(report)) {}

  [[nodiscard]] OperationId add(const Piece& piece) {
    Piece& added = under_way_.emplace(next_, piece);
    if (report_) added.begun_ns = now_ns();
    return OperationId{next_++};
  }
  /// The piece has ended. Each ends once.
  [[nodiscard]] Piece take(OperationId id) {
    const Piece piece = under_way_.extract(id.value());
    if (report_ && !piece.blank_to) {
      report_({piece.kind, piece.request, piece.range, piece.begun_ns, now_ns()});
    }
    return piece;
  }
  /// The piece never ends: its node is lost.
  void drop(OperationId id) { under_way_.erase(id.value()); }

  [[nodiscard]] bool empty() const { return under_way_.empty(); }
  /// Calls `visit(id, piece)`.
  template <class Visit>
  void for_each(const Visit& visit) const {
    under_way_.for_each(
        [&](std::int64_t id, const Piece& piece) { visit(OperationId{id}, piece); });
  }

 private:
  std::function<void(const FragmentReport&)> report_;
  IdTable<Piece> under_way_;
  std::int64_t next_ = 1;
};

}  // namespace heddle::p2p
