#include "node-runtime/transport/p2p/requests.hpp"

#include <fmt/core.h>

#include "base/error.hpp"

namespace heddle::p2p {

void Requests::refuse_more() const {
  throw Error(ErrorCode::usage,
              fmt::format("{} sends and receives are under way, which is the most at one time; "
                          "wait for some of them",
                          max_));
}

}  // namespace heddle::p2p
