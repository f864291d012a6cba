#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/index.hpp"
#include "node-runtime/transport/datatype/pack.hpp"
#include "node-runtime/transport/p2p/path.hpp"
#include "node-runtime/transport/p2p/path_decision.hpp"

namespace heddle::p2p {

/// How a message was received.
struct MessageReport {
  NodeId source;
  NodeId receiver;
  std::int32_t tag = 0;
  std::int64_t bytes = 0;
  std::int64_t pieces = 0;
  Path path = Path::eager;
  /// With predicted times; none for eager messages. Its texts live as long as the endpoint.
  std::optional<PathChoice> choice;
  double measured_us = 0;  ///< from the match with its receive to the end
};

/// One fragment of a message on one side.
struct FragmentReport {
  enum class Kind : std::uint8_t {
    pack,     ///< into a slot of this node, from which it is sent
    send,     ///< over the wire
    fill,     ///< into the receiver's slot or memory
    receive,  ///< over the wire
    unpack,   ///< from a slot of this node
    fetch     ///< from the sender's memory
  };
  Kind kind = Kind::pack;
  std::int64_t message = 0;   ///< number of the send, or receive, on this node
  StreamRange range;          ///< of the packed bytes
  std::int64_t begun_ns = 0;  ///< clock of now_ns()
  std::int64_t ended_ns = 0;  ///< when the progress thread noticed the end
};
/// "pack", "send", "fill", "receive", "unpack", "fetch".
[[nodiscard]] std::string_view name_of(FragmentReport::Kind kind);

/// A report as some lines of text: the path, its predicted and its measured time, and why the other
/// paths were not taken.
[[nodiscard]] std::string explain(const MessageReport& report);

}  // namespace heddle::p2p
