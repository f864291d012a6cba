#pragma once

#include <cstdint>

#include "base/flat_map.hpp"
#include "base/index.hpp"
#include "node-runtime/protocol/types.hpp"

namespace heddle::protocol {

struct Send;

/// Names a version in a message between this node and `peer`.
struct MessageKey {
  VersionKey version;
  NodeId peer;
  friend bool operator==(const MessageKey&, const MessageKey&) = default;

  struct Hash {
    std::size_t operator()(const MessageKey& k) const;
  };
};

/// What receivers have said about the versions that this node sends them. A grant or an ask may
/// come before the send is generated here; the ask of a receiver may come after its grant, and even
/// after the data is sent.
///
/// Invariant of an entry: either its send is not posted yet, and the send (if generated) has what
/// the receiver said; or only an ask is still to come (`awaits_ask` and no send).
class GrantTable {
 public:
  /// A send is generated: gives it what its receiver has said so far.
  void add(const MessageKey& key, Send& send);
  /// The receiver has a block. Returns the send that may go; null: it is not generated yet.
  /// `asked`: the receiver has asked before (that message may still be on its way).
  [[nodiscard]] Send* grant(const MessageKey& key, std::uint32_t tag, bool asked);
  /// The receiver has no block yet. Returns the send to offer when it has data; null: none.
  [[nodiscard]] Send* ask(const MessageKey& key);
  /// The granted send is posted.
  void posted(const MessageKey& key);

  /// Aborts if a granted send was never posted.
  void check_all_posted() const;
  void clear() { entries_.clear(); }
  [[nodiscard]] bool is_valid() const;

 private:
  struct Entry {
    Send* send = nullptr;     ///< null: not generated yet, or posted
    bool asked = false;       ///< the ask has arrived
    bool granted = false;     ///< the grant has arrived
    bool awaits_ask = false;  ///< the grant has overtaken the ask
    bool posted = false;
    std::uint32_t tag = 0;
  };
  FlatMap<MessageKey, Entry, MessageKey::Hash> entries_;
};

}  // namespace heddle::protocol
