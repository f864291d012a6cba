#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "node-runtime/transport/p2p/path_decision.hpp"
#include "node-runtime/transport/p2p/rooms.hpp"
#include "node-runtime/transport/p2p/sends.hpp"
#include "node-runtime/transport/p2p/shared_parts.hpp"

namespace heddle::p2p {

/// Agrees with receivers on how an endpoint's messages are sent: small ones go with their note,
/// others are announced and go (Sends) when and where the receiver grants it.
///
///   start --eager--> over
///   start --announce--> granted --pieces--> over
///                    |     \--> declined: this node cannot access the granted places; announced
///                    \--> fetched, refused or withdrawn: over
///   start_expected --delivered--> over
///                  --written or sent, as this node chooses--> pieces --> over
///                  --announce, as above
///
/// An expected message whose choice needs slots of the receiver is announced: they are few, and
/// only the receiver can give them so that granted messages never wait for each other. Everything
/// else needs places that the receiver has set aside already.
///
/// Invariant (`is_valid()`): that of sends(), and statistics().bytes >= 0.
///
/// Thread: the progress thread only.
class Sender {
 public:
  struct Statistics {
    std::array<std::int64_t, path_count> sent{};  ///< messages by path, counted when granted
    std::int64_t bytes = 0;
  };

  explicit Sender(const SharedParts& shared)
      : shared_(shared),
        decision_(shared.options.rates, shared.options.sizes, shared.options.path),
        sends_(shared) {}

  void start(std::shared_ptr<Send> started);
  /// Starts a send that its receiver expects: expects(to, tag, channel).
  void start_expected(std::shared_ptr<Send> started);
  /// Starts it without the last send.missing bytes of its memory, which are coming
  /// (Sends::more_is_there). False: it takes another way than by pieces of host memory, and starts
  /// when all is there.
  [[nodiscard]] bool start_arriving(const std::shared_ptr<Send>& started);
  /// A node has room for a message; the word that came with it.
  std::span<const std::byte> expected(NodeId from, const NoteHeader& header,
                                      std::span<const std::byte> payload);
  [[nodiscard]] bool expects(NodeId to, std::int32_t tag, ChannelId channel) {
    return rooms_.has({to, channel.value(), tag});
  }
  /// Sends a small message of host memory with its note. False: the receiver has no room, and the
  /// message was not sent.
  [[nodiscard]] bool send_eagerly(const Side& side, NodeId to, std::int32_t tag, ChannelId channel);
  /// Asks the receiver to forget an announcement; no effect once it is granted.
  void cancel(std::int64_t id);

  /// The receiver grants a send.
  void granted(const NoteHeader& header, std::span<const std::byte> payload);
  /// The last word on a send that was not granted: fetched, refused or withdrawn.
  void answered(const NoteHeader& header, std::span<const std::byte> payload);

  void lost(NodeId node, const Error& why);

  [[nodiscard]] Sends& sends() { return sends_; }
  [[nodiscard]] const Sends& sends() const { return sends_; }
  [[nodiscard]] const Statistics& statistics() const { return statistics_; }
  [[nodiscard]] bool is_valid() const { return sends_.is_valid() && statistics_.bytes >= 0; }

 private:
  void announce(const Send& send);
  [[nodiscard]] Handover handover(const Send& send, const Room& room);
  void send_pieces(Send& send, const Room& room);
  void deliver(Send& send, const Room& room);
  [[nodiscard]] bool put(Send& send, const Room& room);
  [[nodiscard]] std::optional<std::string> mismatch(const Send& send, const Room& room) const;
  void fail_at_once(Send& send, const Error& why);
  [[nodiscard]] bool reach(Send& send, const NoteHeader& header,
                           std::span<const std::byte> payload);

  SharedParts shared_;
  PathDecision decision_;
  Rooms rooms_;
  Sends sends_;
  Statistics statistics_;
};

}  // namespace heddle::p2p
