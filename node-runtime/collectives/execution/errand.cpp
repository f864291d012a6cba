#include <utility>

#include "node-runtime/collectives/execution/execution.hpp"

/// What an Execution does in place of a schedule's steps.
namespace heddle::collectives {

std::int64_t Execution::ErrandCourier::count(std::int64_t ticket) const {
  ++of_.messages_;
  return errand_tickets - ticket;
}

void Execution::ErrandCourier::send(Rank to, Name name,
                                    std::span<const std::span<const std::byte>> pieces,
                                    std::int64_t ticket) {
  of_.courier_.send(to, name, pieces, count(ticket));
}

void Execution::ErrandCourier::receive(Rank from, Name name,
                                       std::span<const std::span<std::byte>> pieces,
                                       std::int64_t ticket) {
  of_.courier_.receive(from, name, pieces, count(ticket));
}

void Execution::ErrandCourier::work(p2p::DeviceWork work, std::int64_t ticket) {
  of_.courier_.work(std::move(work), count(ticket));
}

void Execution::ErrandCourier::refer(std::shared_ptr<p2p::Referral> referral, std::int64_t ticket) {
  of_.courier_.refer(std::move(referral), count(ticket));
}

void Execution::skip_steps() {
  first_ = next_ = fragment_count_;
  enter(Phase::steps);
}

/// The stages before are over.
void Execution::choose_way() {
  if (task_.has_all && task_.has_all()) {
    way_ = "direct";
    return skip_steps();
  }
  if (task_.why_not) why_not_ = task_.why_not();
  try {
    if (task_.errand) errand_ = task_.errand();
  } catch (...) {
    is_going_on_ = false;
    throw;
  }
  enter(errand_ != nullptr ? Phase::errand : Phase::steps);
  if (errand_ != nullptr) return;
  way_ = task_.way_of_steps;
  open_fragments();
}

/// Whether it is over.
bool Execution::run_errand() {
  Errand& errand = *errand_;
  try {
    if (!std::exchange(errand_has_begun_, true)) errand.begin(errand_courier_);
    while (!errand_ended_.empty() && !failure_) {
      const std::int64_t ticket = errand_ended_.front();
      errand_ended_.pop_front();
      errand.ended(ticket);
    }
  } catch (...) {
    is_going_on_ = false;
    throw;
  }
  return errand.is_over();
}

}  // namespace heddle::collectives
