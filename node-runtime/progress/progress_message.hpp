#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "node-runtime/protocol/protocol.hpp"
#include "node-runtime/threads/messenger.hpp"

namespace heddle {

/// A message between the progress threads of two nodes: what a version of a tile needs before it
/// travels, or how a job goes.
struct ProgressMessage {
  enum class Type : std::int32_t { ask, grant, offer, begun, drained, ended, cancel, heartbeat };
  struct Header {
    Type type = Type::heartbeat;
    std::uint32_t tag = 0;
    std::int32_t job = 0;
    std::int32_t matrix = 0;
    std::int32_t tile = 0;
    std::int32_t version = 0;
    std::int32_t status = 0;
    std::int32_t asked = 0;
    std::int64_t info = 0;
    double pivot = 0;
    std::int32_t code = 0;         ///< ErrorCode of a failed job
    std::uint32_t text_bytes = 0;  ///< of what was thrown, behind the header
    std::uint64_t fingerprint = 0;
  };
  static_assert(sizeof(Header) == 64);

  Header header;
  std::array<char, 448> text;  ///< only what there is of it travels

  /// Sets the text, cut off where it does not fit; bytes of the whole message.
  [[nodiscard]] std::size_t set_text(std::string_view what);

  /// A message as it has travelled.
  [[nodiscard]] static ProgressMessage of(std::span<const std::byte> bytes);
  [[nodiscard]] static Header of(const protocol::AskAction& ask);
  /// `tag`: of the data that the other node is to send.
  [[nodiscard]] static Header of(const protocol::GrantAction& grant, std::uint32_t tag);
  [[nodiscard]] static Header of(const protocol::OfferAction& offer);
  [[nodiscard]] static Header of(const JobBegin& begin);
  /// `type`: drained, ended or cancel. The text is the verdict's error.
  [[nodiscard]] static Header of(Type type, const JobVerdict& verdict);

  [[nodiscard]] JobBegin begin() const;
  [[nodiscard]] JobVerdict verdict() const;
  /// Passes an ask, a grant or an offer to the protocol.
  static void deliver(const Header& header, NodeId from, protocol::Protocol& protocol,
                      protocol::Actions& actions);
};

}  // namespace heddle
