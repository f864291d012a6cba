#include "node-runtime/progress/progress_message.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/assert.hpp"

namespace heddle {
namespace {

using Header = ProgressMessage::Header;
using Type = ProgressMessage::Type;

template <class Action>
Header header_of(Type type, const Action& action) {
  Header header;
  header.type = type;
  header.job = action.job.value();
  header.matrix = action.tile.matrix.value();
  header.tile = action.tile.index;
  header.version = action.number.value();
  return header;
}

}  // namespace

std::size_t ProgressMessage::set_text(std::string_view what) {
  const std::size_t bytes = std::min(what.size(), text.size());
  header.text_bytes = static_cast<std::uint32_t>(bytes);
  std::copy_n(what.data(), bytes, text.data());
  return sizeof(Header) + bytes;
}

ProgressMessage ProgressMessage::of(std::span<const std::byte> bytes) {
  HEDDLE_CHECK(bytes.size() >= sizeof(Header) && bytes.size() <= sizeof(ProgressMessage),
               "a message of {} bytes", bytes.size());
  ProgressMessage message;
  std::memcpy(&message, bytes.data(), bytes.size());
  HEDDLE_CHECK(message.header.text_bytes == bytes.size() - sizeof(Header),
               "{} bytes of text in a message of {}", message.header.text_bytes, bytes.size());
  return message;
}

Header ProgressMessage::of(const protocol::AskAction& ask) {
  return header_of(Type::ask, ask);
}

Header ProgressMessage::of(const protocol::GrantAction& grant, std::uint32_t tag) {
  Header header = header_of(Type::grant, grant);
  header.tag = tag;
  header.asked = grant.asked ? 1 : 0;
  return header;
}

Header ProgressMessage::of(const protocol::OfferAction& offer) {
  return header_of(Type::offer, offer);
}

Header ProgressMessage::of(const JobBegin& begin) {
  Header header;
  header.type = Type::begun;
  header.job = begin.job.value();
  header.fingerprint = begin.fingerprint;
  return header;
}

Header ProgressMessage::of(Type type, const JobVerdict& verdict) {
  HEDDLE_CHECK(type == Type::drained || type == Type::ended || type == Type::cancel,
               "a verdict in a message of type {}", static_cast<int>(type));
  Header header;
  header.type = type;
  header.job = verdict.job.value();
  header.status = verdict.status;
  header.info = verdict.info;
  header.pivot = verdict.pivot;
  header.code = static_cast<std::int32_t>(verdict.code);
  return header;
}

JobBegin ProgressMessage::begin() const {
  return {protocol::JobId{header.job}, header.fingerprint};
}

JobVerdict ProgressMessage::verdict() const {
  HEDDLE_CHECK(header.text_bytes <= text.size(), "{} bytes of text", header.text_bytes);
  return {protocol::JobId{header.job},
          header.status,
          header.info,
          header.pivot,
          static_cast<ErrorCode>(header.code),
          std::string(text.data(), header.text_bytes)};
}

void ProgressMessage::deliver(const Header& header, NodeId from, protocol::Protocol& protocol,
                              protocol::Actions& actions) {
  const protocol::JobId job{header.job};
  const protocol::TileId tile{protocol::MatrixId{header.matrix}, header.tile};
  const Version number{header.version};
  switch (header.type) {
    case Type::ask:
      return protocol.ask_arrived(job, tile, number, from, actions);
    case Type::grant:
      return protocol.grant_arrived(job, tile, number, from, header.tag, header.asked != 0,
                                    actions);
    case Type::offer:
      return protocol.offer_arrived(job, tile, number, from, actions);
    default:
      HEDDLE_CHECK(false, "a message of type {} names no version", static_cast<int>(header.type));
  }
}

}  // namespace heddle
