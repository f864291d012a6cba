#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "node-runtime/residency/residency.hpp"

namespace heddle::simulation {

/// Of a pool, in the tests' simulations.
inline constexpr std::uint64_t unit_bytes = 64;

/// A device, host memory and tasks on both around a Residency, with contents: each unit of the pool
/// and of the backings holds the number of the write it stems from, or nonsense where nobody may
/// look. A kernel finds what it reads as last written, at its begin and at its end: in frames on
/// the device, in backings on the host; transfers copy at their end, and frames that are being
/// filled hold nonsense until then. So a frame given to two, a double or lost fetch, a write-back
/// of what changes, or a stale backing is found by its content.
///
/// The test chooses what happens next; the first broken rule is kept in `failure()`.
class ResidencySimulation {
 public:
  using Uses = std::vector<Residency::Use>;

  explicit ResidencySimulation(const Residency::Options& options);

  [[nodiscard]] Residency& residency() { return residency_; }
  [[nodiscard]] const std::string& failure() const { return failure_; }

  ResidentBlock add(std::uint64_t bytes);
  /// Whether the contract allows these uses next to those requested and running.
  [[nodiscard]] bool may_use(const Uses& uses) const;
  [[nodiscard]] bool is_idle(ResidentBlock block) const;
  [[nodiscard]] bool has_content(ResidentBlock block) const { return model(block).version > 0; }

  void request(const Uses& uses);
  void request_host(const Uses& uses);
  bool try_acquire(const Uses& uses);
  void cancel(std::size_t index);
  void discard(ResidentBlock block);
  /// Of an idle block that is in no transfer.
  void remove(ResidentBlock block);

  /// Requested and not ready, oldest first; running; under way, oldest first.
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  [[nodiscard]] std::size_t running() const { return running_.size(); }
  [[nodiscard]] std::size_t transfers() const { return transfers_.size(); }
  [[nodiscard]] const Uses& running_uses(std::size_t index) const { return running_[index]; }
  [[nodiscard]] Residency::TicketId oldest() const { return waiting_.begin()->first; }
  void finish_task(std::size_t index);
  /// The same on the host.
  [[nodiscard]] std::size_t waiting_on_host() const { return waiting_on_host_.size(); }
  [[nodiscard]] std::size_t running_on_host() const { return running_on_host_.size(); }
  void finish_host_task(std::size_t index);
  /// Write-backs that uses on the host asked for, and fetches of what they left, at most.
  [[nodiscard]] std::int64_t host_write_backs() const { return host_write_backs_; }
  [[nodiscard]] std::int64_t host_fetches_max() const { return host_fetches_max_; }
  void finish_transfer(std::size_t index);
  /// Finishes tasks of the device from the `kept`-th on and transfers in an order chosen by
  /// `random` until nobody waits; tasks of the host go on, and nobody waits for those. False, and a
  /// failure, if that never comes.
  template <class Random>
  bool drain(Random& random, std::size_t kept = 0);

 private:
  using Cells = std::vector<std::int64_t>;
  struct Model {
    std::uint64_t bytes = 0;
    std::int64_t version = 0;  ///< last written; 0: no content
    Cells backing;
    std::int32_t readers = 0;
    bool written = false;
    bool in_transfer = false;
  };
  struct TransferModel {
    Residency::Transfer transfer;
    bool is_fetch = false;
    Cells cells;  ///< what the source held at the beginning
  };

  [[nodiscard]] const Model& model(ResidentBlock block) const { return blocks_.at(block); }
  [[nodiscard]] std::span<std::int64_t> frame(std::uint64_t offset, std::uint64_t bytes);
  [[nodiscard]] std::span<std::int64_t> frame(ResidentBlock block);
  void expect(bool fact, const std::string& message);
  void occupy(const Uses& uses);
  void vacate(const Uses& uses);
  void start_task(const Uses& uses);
  enum class Side : std::uint8_t { device, host };
  [[nodiscard]] std::span<std::int64_t> cells_of(ResidentBlock block, Side side);
  void check_inputs(const Uses& uses, Side side, bool at_end);
  void write_outputs(const Uses& uses, Side side);
  void start_host_task(const Uses& uses);
  void scramble(std::span<std::int64_t> cells);
  void start_transfer(const Residency::Transfer& transfer, bool is_fetch);
  void carry_out();

  Residency residency_;
  Residency::Actions actions_;
  std::size_t unit_;  ///< bytes
  Cells pool_;
  std::map<ResidentBlock, Model> blocks_;
  std::map<Residency::TicketId, Uses> waiting_;
  std::vector<Uses> running_;
  std::map<Residency::TicketId, Uses> waiting_on_host_;
  std::vector<Uses> running_on_host_;
  std::int64_t host_write_backs_ = 0;
  std::int64_t host_fetches_max_ = 0;
  std::vector<TransferModel> transfers_;
  std::int64_t next_version_ = 1;
  std::int64_t next_nonsense_ = -1;
  std::string failure_;
};

template <class Random>
bool ResidencySimulation::drain(Random& random, std::size_t kept) {
  while (waiting() + waiting_on_host() > 0 && failure_.empty()) {
    const std::size_t tasks = running() - kept;
    if (tasks + transfers() == 0) {
      expect(false, "requests wait and nothing is under way");
      break;
    }
    const std::size_t choice = random() % (tasks + transfers());
    if (choice < tasks) {
      finish_task(kept + choice);
    } else {
      finish_transfer(choice - tasks);
    }
  }
  return failure_.empty();
}

}  // namespace heddle::simulation
