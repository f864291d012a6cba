#pragma once

#include <cstddef>
#include <cstdint>
#include <mpi.h>
#include <vector>

#include "base/assert.hpp"
#include "node-runtime/transport/communicator.hpp"

namespace heddle {

/// MPI requests in flight, each with a note of what it is for.
///
/// Invariant, between calls: as many notes as requests; no request is MPI_REQUEST_NULL.
///
/// Thread: one that may call MPI.
template <class Note>
class MpiFlights {
 public:
  void add(MPI_Request request, Note note) {
    HEDDLE_CHECK(request != MPI_REQUEST_NULL);
    requests_.push_back(request);
    notes_.push_back(note);
  }
  [[nodiscard]] std::size_t count() const { return requests_.size(); }

  /// Calls `completed(note, status)` for each request that has completed; it may add others. False:
  /// there was none.
  template <class Completed>
  bool poll(const Completed& completed) {
    indices_.resize(requests_.size());
    statuses_.resize(requests_.size());
    int count = 0;
    check_mpi(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                           indices_.data(), statuses_.data()),
              "waiting for messages");
    if (count <= 0) return false;  // MPI_UNDEFINED: there is no request
    for (int i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      completed(Note(notes_[static_cast<std::size_t>(indices_[at])]), statuses_[at]);
    }
    compact();
    return true;
  }
  /// Cancels the requests for which `is_endless(note)`, and waits for all.
  template <class IsEndless>
  void end(const IsEndless& is_endless) {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (is_endless(notes_[i])) MPI_Cancel(&requests_[i]);
    }
    check_mpi(
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE),
        "ending");
    compact();
  }

 private:
  /// Completed requests are null now; those added meanwhile are at the end.
  void compact() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (requests_[i] == MPI_REQUEST_NULL) continue;
      requests_[kept] = requests_[i];
      notes_[kept] = notes_[i];
      ++kept;
    }
    requests_.resize(kept);
    notes_.resize(kept);
  }

  std::vector<MPI_Request> requests_;
  std::vector<Note> notes_;           ///< of requests_, by index
  std::vector<int> indices_;          ///< scratch
  std::vector<MPI_Status> statuses_;  ///< scratch
};

}  // namespace heddle
