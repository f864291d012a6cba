#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/device/device.hpp"
#include "node-runtime/transport/probe/pair_report.hpp"

namespace heddle {

struct ProbeOptions {
  std::size_t checked_bytes = std::size_t{1} << 20;  ///< as random bytes; 8 are checked too
  std::size_t timed_bytes = std::size_t{4} << 20;    ///< for the rate; at least checked_bytes
  std::int32_t repeats = 20;                         ///< of 8 bytes timed, whose median counts
  std::int32_t long_repeats = 3;                     ///< likewise of timed_bytes
  double device_seconds_max = 5;    ///< what a device does not end within is given up
  double message_seconds_max = 30;  ///< more than some of the above: the other node is lost then
};

/// The first failure in a series of steps; the later steps are skipped. Between two
/// nodes the messages of such steps are sent all the same, so that both stay in step.
class Trouble {
 public:
  template <class Step>
  void run(const Step& step) {
    if (text_) return;
    try {
      step();
    } catch (const std::exception& error) {
      text_ = error.what();
    }
  }
  /// Likewise, but what goes wrong may follow from the other side's trouble: contents are compared.
  template <class Step>
  void check(const Step& step) {
    if (text_) return;
    run(step);
    is_consequence_ = text_.has_value();
  }
  [[nodiscard]] const std::optional<std::string>& text() const { return text_; }
  [[nodiscard]] bool is_consequence() const { return is_consequence_; }

 private:
  std::optional<std::string> text_;
  bool is_consequence_ = false;
};

/// One place at the end of probing transfers: its memory, and what brings bytes to and from it in
/// bounded time. An operation that fails or does not end throws Error; the next one starts afresh.
///
/// Holds `timed_bytes` of device memory, of page-locked and of ordinary host memory. Thread: one.
class ProbedPlace {
 public:
  /// The host of a node.
  ProbedPlace(ProbePlace place, const ProbeOptions& options);
  /// A device, which outlives it. The operations that need memory that it lacks report that.
  ProbedPlace(ProbePlace place, Device& device, const ProbeOptions& options);
  ProbedPlace(const ProbedPlace&) = delete;
  ProbedPlace& operator=(const ProbedPlace&) = delete;
  /// No other process has its memory or event open any more.
  ~ProbedPlace();

  [[nodiscard]] const ProbePlace& place() const { return place_; }
  [[nodiscard]] Device* device() const { return device_; }

  // ---- contents: `bytes` from the begin of the place's memory ---------------------------------
  /// Random bytes that follow from `seed`.
  void fill(std::uint64_t seed, std::size_t bytes);
  /// On a device: queued only, and ready() recorded behind it; end with finish().
  void begin_fill(std::uint64_t seed, std::size_t bytes);
  /// Throws Error unless the bytes are those of fill(seed, bytes).
  void check(std::uint64_t seed, std::size_t bytes);

  // ---- by way of host memory ------------------------------------------------------------------
  /// Host memory that transfers by `way` (staged or host) pass through; a host's own memory.
  /// Ordinary memory where page-locked memory is refused: the copies below report that.
  [[nodiscard]] std::byte* buffer(Way way);
  /// The place's memory to the buffer and back. A host's is the buffer.
  void copy_out(Way way, std::size_t bytes);
  void copy_in(Way way, std::size_t bytes) { copy_in(way, buffer(way), bytes); }
  /// From another place's buffer.
  void copy_in(Way way, const std::byte* from, std::size_t bytes);

  // ---- devices only ---------------------------------------------------------------------------
  [[nodiscard]] const std::byte* memory() const { return memory_.address; }
  /// Throws Error that says what the device lacks.
  void require_device() const;
  /// Recorded by begin_fill() and record().
  [[nodiscard]] const Event& ready() const { return *ready_; }
  void record();
  /// Copies memory of `owner` into its own when `ready` is complete, and waits for the end.
  void pull(const std::byte* from, const Device& owner, const Event& ready, std::size_t bytes);
  /// Waits until all that was queued has ended.
  void finish();
  /// Forgets all events that pull() has waited for, so that their owners can close them.
  void start_afresh();

 private:
  void renew();
  void give_up();
  [[nodiscard]] std::byte* locked_or_throw() const;

  ProbePlace place_;
  const ProbeOptions options_;
  Device* device_ = nullptr;
  std::vector<std::byte> ordinary_;
  std::vector<std::byte> scratch_;  ///< what contents are compared with
  DeviceMemory memory_;
  std::byte* locked_ = nullptr;
  std::string lack_;         ///< why the device is of no use; empty where it is
  std::string lack_locked_;  ///< likewise its page-locked memory
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> ready_;
  std::unique_ptr<Event> done_;
};

/// Fills `bytes` at `to` with what follows from `seed`.
void fill_with_random(std::byte* to, std::size_t bytes, std::uint64_t seed);
/// Throws Error unless that is what is there; `where` begins the message.
void check_random(const std::byte* found, std::size_t bytes, std::uint64_t seed,
                  const std::string& where);

}  // namespace heddle
