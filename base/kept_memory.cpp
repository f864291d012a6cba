#include "base/kept_memory.hpp"

#include <mutex>
#include <utility>
#include <vector>

namespace heddle {
namespace {

std::mutex mutex;

}  // namespace

void keep_to_the_end(std::shared_ptr<void> memory) {
  const std::scoped_lock lock(mutex);
  // Never destroyed; reachable, so that leak checkers do not report it.
  static auto& kept = *new std::vector<std::shared_ptr<void>>;
  kept.push_back(std::move(memory));
}

}  // namespace heddle
