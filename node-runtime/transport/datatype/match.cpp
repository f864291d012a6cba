#include "node-runtime/transport/datatype/match.hpp"

#include <fmt/core.h>
#include <optional>

#include "base/error.hpp"

namespace heddle {
namespace {

Signature signature_of(const TypedCount& data, std::string_view what) {
  if (data.count < 0) {
    throw Error(ErrorCode::usage,
                fmt::format("{} elements are {}; a count must not be negative", data.count, what));
  }
  return data.type.signature().repeated(data.count);
}

}  // namespace

void check_match(const TypedCount& sent, const TypedCount& received) {
  const Signature from = signature_of(sent, "sent");
  const Signature to = signature_of(received, "received");
  if (const auto difference = Signature::first_difference(from, to); difference.has_value()) {
    throw Error(
        ErrorCode::usage,
        fmt::format("the signatures of what is sent and where it is received differ: "
                    "scalar {} is sent as {} and received as {}; both sides must describe "
                    "the same scalars in the same order",
                    difference->position, name_of(difference->left), name_of(difference->right)));
  }
  if (from.scalars() > to.scalars()) {
    throw Error(ErrorCode::usage,
                fmt::format("the message would be truncated: {} scalars ({} bytes) are sent and {} "
                            "({} bytes) fit where they are received; receive into a larger type "
                            "or more elements",
                            from.scalars(), from.bytes(), to.scalars(), to.bytes()));
  }
}

void check_room(std::int64_t sent_bytes, const TypedCount& received) {
  const Signature to = signature_of(received, "received");
  if (sent_bytes > to.bytes()) {
    throw Error(ErrorCode::usage,
                fmt::format("the message would be truncated: {} bytes are sent and {} fit where "
                            "they are received; receive into a larger type or more elements",
                            sent_bytes, to.bytes()));
  }
  if (sent_bytes < 0 || !to.ends_scalar_at(sent_bytes)) {
    throw Error(ErrorCode::usage,
                fmt::format("a message of {} bytes ends within a scalar of the type it is received "
                            "as; both sides must describe the same scalars in the same order",
                            sent_bytes));
  }
}

}  // namespace heddle
