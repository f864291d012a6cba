#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "node-runtime/transport/p2p/request.hpp"
#include "node-runtime/transport/p2p/request_count.hpp"

namespace heddle::p2p {

/// Numbers an endpoint's requests, and keeps the memory of completed requests until it can be freed
/// without delaying a message.
///
/// Invariant: is_valid() <=> |over_| <= over_max.
///
/// Threads: begin(false) and refuse(), any; the others, the progress thread only.
class Requests {
 public:
  explicit Requests(std::int32_t requests_max) : max_(requests_max), count_(requests_max) {}

  /// The number of a new request. Throws Error(usage) when requests_max are in progress.
  [[nodiscard]] std::int64_t begin(bool at_once) {
    if (const auto number = count_.begin(at_once)) return *number;
    refuse_more();
  }
  /// A request of any thread has a number, but does not begin.
  void refuse() { count_.refuse(); }
  void end() { count_.end(); }
  /// Frees `request` later, so that the progress thread's next message is not delayed.
  void end(std::shared_ptr<RequestState> request) {
    if (over_.size() == over_max) over_.clear();
    over_.push_back(std::move(request));
    count_.end();
  }
  void free_ended() { over_.clear(); }
  [[nodiscard]] bool is_zero() const { return count_.is_zero(); }
  [[nodiscard]] bool is_valid() const { return over_.size() <= over_max; }

 private:
  static constexpr std::size_t over_max = 4;  ///< few: malloc keeps about as many of a size

  [[noreturn]] void refuse_more() const;

  std::int32_t max_;
  RequestCount count_;
  std::vector<std::shared_ptr<RequestState>> over_;
};

}  // namespace heddle::p2p
