#pragma once

#include <cstdint>

#include "node-runtime/transport/datatype/datatype.hpp"

namespace heddle {

/// So many elements of a type: what is sent, or where it may be received.
struct TypedCount {
  const Datatype& type;
  std::int64_t count;
};

/// Whether `sent` may be received as `received`: the same scalars in the same order, and no more
/// than there is room for; the receiver may have more. Throws Error(usage) that names the first
/// difference, or both lengths where the message would be truncated, or a negative count.
void check_match(const TypedCount& sent, const TypedCount& received);

/// The same where only the number of bytes is known of what is sent: it must not exceed what is
/// received and must end behind a whole scalar of it.
void check_room(std::int64_t sent_bytes, const TypedCount& received);

}  // namespace heddle
