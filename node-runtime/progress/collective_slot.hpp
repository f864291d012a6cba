#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/futex.hpp"
#include "node-runtime/transport/reduction.hpp"

namespace heddle {

/// The reduction over nodes that one thread waits for and the progress thread carries out.
///
/// A Collective belongs to both threads: where the waiting one gives up, since the node has failed,
/// MPI may still write to its values.
///
/// Invariant: the slot holds at most one collective;  is_done => it is not in the slot;
/// is_posted => the progress thread has a request for it, or it is done.
///
/// Threads: begin() and wait() by one at a time; the other functions by the progress thread.
class CollectiveSlot {
 public:
  struct Collective {
    std::vector<double> values;
    Reduction reduction = Reduction::sum;
    bool is_posted = false;  ///< the progress thread's
    /// Release when the progress thread has the result, acquire where it is waited for.
    std::atomic<bool> is_done{false};
  };

  /// Puts a collective into the slot. Throws Error(usage) when there is one.
  [[nodiscard]] std::shared_ptr<Collective> begin(std::span<const double> values,
                                                  Reduction reduction);
  /// Blocks until it is done. Before each pause `may_wait` is called, which throws to give up.
  void wait(const Collective& collective, const std::function<void()>& may_wait);
  /// Lets wait() look again.
  void wake() { bell_.ring_all(); }

  [[nodiscard]] bool is_empty() const;
  /// The collective, the first time that it is asked for; null otherwise.
  [[nodiscard]] std::shared_ptr<Collective> take_to_post();
  /// The result of the posted collective is there: empties the slot.
  void finish();

 private:
  mutable std::mutex mutex_;  ///< of the next one
  std::shared_ptr<Collective> collective_;
  Doorbell bell_;
};

}  // namespace heddle
