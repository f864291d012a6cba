#include "base/companions.hpp"

#include <fmt/core.h>

#include "base/error.hpp"

namespace heddle {

void Companions::add(const std::function<void(const Conversation&)>& life) {
  processes_.push_back(
      std::make_unique<ChildProcess>(fmt::format("be one that {} beside this one", deed_), life));
}

void Companions::hear(std::size_t i, std::span<std::byte> to) const {
  if (processes_[i]->conversation().receive(to, patience) == to.size()) return;
  throw Error(ErrorCode::internal,
              fmt::format("a process that {} beside this one, as the nodes of a host do, ended or "
                          "was silent for {} s",
                          deed_, patience.count()));
}

}  // namespace heddle
