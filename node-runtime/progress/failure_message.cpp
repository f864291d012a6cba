#include "node-runtime/progress/failure_message.hpp"

#include <algorithm>
#include <cstring>
#include <mpi.h>
#include <vector>

#include "base/clock.hpp"
#include "node-runtime/transport/communicator.hpp"

namespace heddle {

FailureMessage::FailureMessage(std::string_view text, bool elsewhere) {
  content_[0] = elsewhere ? relayed : own;
  std::copy_n(text.data(), std::min(text.size(), bytes - 2), content_.data() + 1);
}

std::string FailureMessage::text() const {
  return {content_.data() + 1, ::strnlen(content_.data() + 1, bytes - 1)};
}

void send_to_all(const Communicator& communicator, const FailureMessage& message) {
  constexpr std::int64_t patience_ns = 1'000'000'000;
  std::vector<MPI_Request> requests;
  for (int r = 0; r < communicator.size(); ++r) {
    if (r == communicator.rank()) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    if (MPI_Isend(message.data(), static_cast<int>(FailureMessage::bytes), MPI_CHAR, r,
                  FailureMessage::tag, communicator.headers(), &request) == MPI_SUCCESS) {
      requests.push_back(request);
    }
  }
  const std::int64_t until = now_ns() + patience_ns;
  int all = 0;
  while (all == 0 && now_ns() < until) {
    MPI_Testall(static_cast<int>(requests.size()), requests.data(), &all, MPI_STATUSES_IGNORE);
  }
}

}  // namespace heddle
