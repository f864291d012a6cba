#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "node-runtime/transport/p2p/path.hpp"

namespace heddle::p2p {

/// What a path decision needs to know of the memory on one side of a message.
struct SideFacts {
  bool on_device = false;
  bool is_contiguous = true;
  bool is_locked = false;  ///< host memory that devices of its node access in place
  friend bool operator==(const SideFacts&, const SideFacts&) = default;
};

/// A message that a receive has taken, as the receiver sees it.
struct PathQuery {
  std::int64_t bytes = 0;
  SideFacts sender;
  SideFacts receiver;
  bool is_self = false;  ///< a node sends to itself
  /// Both sides are on one GPU; or one side is, and the other node accesses its host memory by that
  /// GPU.
  bool same_device = false;
  /// Processes take turns on the GPU, and of the two nodes this one is to work on it.
  bool works_here = false;
  bool takes_turns = false;  ///< see works_here
  /// Why a path does not exist between the two nodes, whatever is sent; empty if it exists. The
  /// texts outlive the choice.
  std::string_view no_shared{};
  std::string_view no_get{};  ///< from a device's memory
  /// Where one side is not contiguous: why one kernel cannot copy from the sender's elements to the
  /// receiver's as they lie.
  std::string_view no_between{"the sender's and the receiver's elements are not alike"};
  std::string_view no_read{};  ///< from the sender's host memory
  std::string_view no_put{};
  std::string_view no_ring{};
  /// The mapping that get or put needs exists. Without it the message takes another path, and the
  /// mapping is made for the next message.
  bool maps_get = true;
  bool maps_put = true;
  friend bool operator==(const PathQuery&, const PathQuery&) = default;
};

/// The text of PathEstimate::lacks where only a mapping is missing.
inline constexpr std::string_view not_mapped_yet =
    "the memory is not mapped yet, but will be for the next message";

/// One considered path.
struct PathEstimate {
  Path path = Path::message;
  double predicted_us = 0;
  std::string_view lacks;  ///< why it cannot be taken; empty where it can
};

/// The considered paths, the chosen one first.
struct PathChoice {
  std::array<PathEstimate, path_count - 1> estimates;  ///< all paths but `eager`
  std::string note;                                    ///< why the wanted path was not taken

  [[nodiscard]] Path path() const { return estimates.front().path; }
  [[nodiscard]] double predicted_us() const { return estimates.front().predicted_us; }
  /// `path` lacks only a mapping.
  [[nodiscard]] bool would_map_for(Path path) const;
};

/// What the receiver does to bring a message by a path.
struct PathPlan {
  enum class Step : std::uint8_t {
    grant,  ///< the sender is asked to bring it
    fetch,  ///< this node's device reads it from the sender's device
    read    ///< this node's processor reads it from the sender's host memory
  };
  Step step = Step::grant;
  std::int64_t piece_bytes = 0;  ///< of every piece but the last
  std::int32_t slots = 0;        ///< of its own that the receiver takes before `step`
  friend bool operator==(const PathPlan&, const PathPlan&) = default;
};

/// What the sender of an expected message does with it, by its own choice.
enum class Handover : std::uint8_t {
  deliver,  ///< it goes with a note
  pieces,   ///< over the wire, into the pieces that the receiver has posted
  put,      ///< this node's device writes it into the receiver's device memory
  announce  ///< the receiver reads it, or grants places of its own
};

/// Decides by which path a message travels: a query in, a choice or a plan out. Immutable.
///
/// A path can be taken where every condition of one of its rows holds:
///   path     sender's memory        receiver's memory      conditions
///   message  any                    any                    always
///   shared   any                    any                    !no_shared
///   get      contiguous host        host                   !no_read
///   get      device                 device or locked host  !no_get, maps_get, contiguous sender or
///                                                          !no_between
///   put      device or locked host  device                 !no_put, maps_put, contiguous receiver
///                                                          or !no_between
///   ring     one of them on a device, the other there or   !no_ring
///            in locked host memory
/// The possible path with the shortest predicted time is chosen (000 section 4.3.3: stages of a
/// pipeline overlap but for the first and the last fragment), or the wanted one if it is among
/// them.
///
/// Plans (contiguous = contiguous host memory):
///   path     step   piece                        slots
///   message  grant  longest, contiguous on both  0 where the receiver's memory is contiguous or
///   the
///                   sides; else piece_bytes      message empty; else pieces, pieces_ahead at most
///   shared   grant  shared_piece()               pieces, pieces_ahead at most
///   ring     grant  ring_piece()                 pieces, ring_slots at most
///   put      grant  longest; else the message    0
///   get      fetch  longest; else the message    0    from a device
///   get      read   read_piece_bytes             0    from the host, contiguous receiver
///   get      read   piece_bytes                  1    from the host, else
class PathDecision {
 public:
  PathDecision(const PathRates& rates, const PathSizes& sizes, std::optional<Path> wanted = {})
      : rates_(rates), sizes_(sizes), wanted_(wanted) {}

  /// An empty message always travels by `message`.
  [[nodiscard]] PathChoice choose(const PathQuery& query) const;
  /// `path` is one that choose() may return.
  [[nodiscard]] PathPlan plan(const PathQuery& query, Path path) const;

  /// The receiver of an expected message, whose sender it does not know, posts the message's pieces
  /// beforehand. `query` takes the sender's memory for contiguous host memory. Only where the wire
  /// is what such a message takes: pieces cannot be taken back.
  [[nodiscard]] bool posts_pieces(const PathQuery& query, std::int64_t eager_bytes_max) const;
  /// The sender of an expected message hands it over, the first row that holds:
  ///   deliver   it is empty
  ///   pieces    the receiver has posted some
  ///   deliver   host memory, at most eager_bytes_max
  ///   put       `put` is the choice
  ///   announce  otherwise; also for `shared` and `ring`, whose slots are the receiver's to give
  [[nodiscard]] Handover hand_over(const PathQuery& query, bool are_pieces_posted,
                                   std::int64_t eager_bytes_max) const;

 private:
  PathRates rates_;
  PathSizes sizes_;
  std::optional<Path> wanted_;
};

}  // namespace heddle::p2p
