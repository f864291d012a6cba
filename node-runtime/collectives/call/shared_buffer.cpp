#include "node-runtime/collectives/call/shared_buffer.hpp"

#include <fmt/core.h>

namespace heddle::collectives {

SharedBufferSide::SharedBufferSide(const Call& call, const DirectRank& rank,
                                   const DirectMemory& memory, const BufferOptions& options,
                                   const Task& task)
    : BufferSide(call, rank, memory, options, task),
      layout_{cut_, call.reduces() ? ranks() - 1 : 0} {}

std::string SharedBufferSide::describe() const {
  return fmt::format("gsb, {} of {} copies staged", staged_, copies_);
}

std::shared_ptr<Errand> make_shared_buffer_way(const Call& call, const DirectRank& rank,
                                               const DirectMemory& memory,
                                               const BufferOptions& options, const Task& task) {
  return rank.own == options.root ? make_shared_buffer_leader(call, rank, memory, options, task)
                                  : make_shared_buffer_member(call, rank, memory, options, task);
}

}  // namespace heddle::collectives
