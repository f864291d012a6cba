#include "replay/collectives/link_shares.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace heddle::replay {

LinkId LinkShares::add_link(double bytes_per_s) {
  HEDDLE_CHECK(bytes_per_s > 0, "a link of {} bytes per second", bytes_per_s);
  Link& link = links_.emplace_back();
  link.rate_per_ns = bytes_per_s * 1e-9;
  return LinkId{links() - 1};
}

TransferId LinkShares::begin(std::int64_t now_ns, double bytes, double bytes_per_s,
                             std::span<const LinkId> path, std::int64_t tag) {
  HEDDLE_CHECK(!path.empty() && bytes > 0 && bytes_per_s > 0,
               "{} bytes over {} links at {} bytes per second", bytes, path.size(), bytes_per_s);
  TransferId id{static_cast<std::int32_t>(transfers_.size())};
  if (free_.empty()) {
    transfers_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  Transfer& transfer = at(id);
  transfer.path.assign(path.begin(), path.end());
  transfer.teller = *std::ranges::max_element(
      path, {}, [this](LinkId link) { return at(link).transfers.size(); });
  transfer.tag = tag;
  transfer.rate_max = bytes_per_s * 1e-9;
  transfer.rate = 0;
  transfer.left = bytes;
  transfer.since_ns = now_ns;
  transfer.end_ns = never;
  for (const LinkId link : path) {
    note_change(now_ns, link);
    at(link).transfers.push_back(id);
  }
  return id;
}

void LinkShares::end(std::int64_t now_ns, TransferId transfer) {
  for (const LinkId link : at(transfer).path) {
    note_change(now_ns, link);
    std::erase(at(link).transfers, transfer);
  }
  at(transfer).path.clear();
  free_.push_back(transfer);
}

/// Before the link's transfers change.
void LinkShares::note_change(std::int64_t now_ns, LinkId id) {
  Link& link = at(id);
  if (!link.transfers.empty()) link.busy_ns += now_ns - link.since_ns;
  link.since_ns = now_ns;
  if (link.is_changed) return;
  link.is_changed = true;
  changed_.push_back(id);
}

void LinkShares::settle(std::int64_t now_ns, std::vector<Foreseen>& foreseen) {
  for (const LinkId id : changed_) {
    at(id).is_changed = false;
    std::int64_t next_ns = never;
    for (const TransferId one : at(id).transfers) {
      Transfer& transfer = at(one);
      change(now_ns, transfer);
      if (transfer.teller == id) {
        next_ns = std::min(next_ns, transfer.end_ns);
      } else {
        tell(transfer.teller, transfer.end_ns, foreseen);
      }
    }
    tell(id, next_ns, foreseen);
  }
  changed_.clear();
}

void LinkShares::change(std::int64_t now_ns, Transfer& transfer) {
  double rate = transfer.rate_max;
  for (const LinkId link : transfer.path) rate = std::min(rate, at(link).part());
  if (rate == transfer.rate) return;
  const auto elapsed_ns = static_cast<double>(now_ns - transfer.since_ns);
  transfer.left = std::max(0.0, transfer.left - transfer.rate * elapsed_ns);
  transfer.since_ns = now_ns;
  transfer.rate = rate;
  const double rest_ns = transfer.left / rate;
  const auto whole_ns = static_cast<std::int64_t>(rest_ns);
  transfer.end_ns = now_ns + whole_ns + (static_cast<double>(whole_ns) < rest_ns ? 1 : 0);
}

/// A later end is found when the told time comes; an earlier one is told now.
void LinkShares::tell(LinkId teller, std::int64_t end_ns, std::vector<Foreseen>& foreseen) {
  Link& link = at(teller);
  if (end_ns >= link.told_ns) return;
  link.told_ns = end_ns;
  foreseen.push_back({teller, end_ns});
}

std::optional<TransferId> LinkShares::comes(const Foreseen& end, std::vector<Foreseen>& foreseen) {
  Link& link = at(end.link);
  if (link.told_ns != end.end_ns) return std::nullopt;
  link.told_ns = never;
  std::optional<TransferId> next;
  for (const TransferId id : link.transfers) {
    if (at(id).teller != end.link) continue;
    if (!next || at(id).end_ns < at(*next).end_ns) next = id;
  }
  if (!next) return std::nullopt;
  if (at(*next).end_ns <= end.end_ns) return next;
  tell(end.link, at(*next).end_ns, foreseen);
  return std::nullopt;
}

bool LinkShares::is_valid() const {
  std::size_t on_links = 0;
  for (const Link& link : links_) on_links += link.transfers.size();
  std::size_t of_paths = 0;
  for (std::size_t t = 0; t < transfers_.size(); ++t) {
    const TransferId id{static_cast<std::int32_t>(t)};
    of_paths += transfers_[t].path.size();
    for (const LinkId link : transfers_[t].path) {
      if (std::ranges::count(at(link).transfers, id) != 1) return false;
    }
  }
  return on_links == of_paths;
}

}  // namespace heddle::replay
