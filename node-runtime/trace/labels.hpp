#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "node-runtime/trace/node_trace.hpp"
#include "node-runtime/trace/text.hpp"

namespace heddle::trace {

/// `text` with U+FFFD for invalid UTF-8.
[[nodiscard]] std::string as_utf8(std::string_view text);

/// The texts of one node, escaped once for a format so that records only copy them.
class Labels {
 public:
  /// Escapes a name for the format.
  using Prepare = std::string (*)(std::string_view);
  Labels(const NodeTrace& trace, Prepare prepare);

  [[nodiscard]] std::string_view name(NameId id) const { return names_[id.value()]; }
  /// An index below `count` for each kernel, the same on all nodes and in all runs.
  [[nodiscard]] std::size_t color(NameId kernel, std::size_t count) const;

  /// "gsmm (5, 3)", "fine gsmm (5, 3)"
  void put_task(Text& to, const TaskRecord& task) const;
  /// "A (5, 3)", or what is known of it
  void put_tile(Text& to, const Tile& tile) const;
  /// "ready tasks, device 0"
  void put_counter(Text& to, const CounterRecord& counter) const;
  /// "host", "device 0"
  static void put_place(Text& to, PlaceId place);

 private:
  struct Matrix {
    std::string name;
    std::int32_t tile_rows = 0;
  };

  void put_position(Text& to, const Tile& tile) const;

  std::vector<std::string> names_;
  std::unordered_map<std::int32_t, Matrix> matrices_;
};

}  // namespace heddle::trace
