#pragma once

#include <optional>

#include "config/config.hpp"
#include "node-runtime/scheduling/reader_tree.hpp"

namespace heddle {

/// What `runtime.messages.readers` says; nothing: auto.
[[nodiscard]] inline ReaderWay reader_way(std::optional<config::ReaderWay> wanted) {
  if (!wanted) return ReaderWay::automatic;
  return *wanted == config::ReaderWay::home ? ReaderWay::home : ReaderWay::tree;
}

}  // namespace heddle
