#include "node-runtime/trace/labels.hpp"

#include <nlohmann/json.hpp>

namespace heddle::trace {

std::string as_utf8(std::string_view text) {
  using nlohmann::json;
  const std::string quoted = json(text).dump(-1, ' ', false, json::error_handler_t::replace);
  return json::parse(quoted).get<std::string>();
}

Labels::Labels(const NodeTrace& trace, Prepare prepare) {
  names_.reserve(trace.names.size());
  for (const std::string& text : trace.names) names_.push_back(prepare(text));
  for (const MatrixDescription& matrix : trace.matrices) {
    matrices_[matrix.matrix] = {prepare(matrix.name), matrix.tile_rows};
  }
}

std::size_t Labels::color(NameId kernel, std::size_t count) const {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : name(kernel)) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  }
  return hash % count;
}

void Labels::put_task(Text& to, const TaskRecord& task) const {
  if (task.fine > 0) to << "fine ";
  to << name(task.kernel);
  if (task.tile.index >= 0) put_position(to, task.tile);
}

void Labels::put_tile(Text& to, const Tile& tile) const {
  const auto found = matrices_.find(tile.matrix);
  if (found == matrices_.end()) {
    to << "matrix " << tile.matrix;
  } else {
    to << found->second.name;
  }
  put_position(to, tile);
}

void Labels::put_counter(Text& to, const CounterRecord& counter) const {
  to << name(counter.name) << ", ";
  put_place(to, counter.place);
}

void Labels::put_place(Text& to, PlaceId place) {
  if (place == host_place) {
    to << "host";
  } else {
    to << "device " << place.value() - 1;
  }
}

void Labels::put_position(Text& to, const Tile& tile) const {
  const auto found = matrices_.find(tile.matrix);
  if (found == matrices_.end() || found->second.tile_rows == 0 || tile.index < 0) {
    to << " tile " << tile.index;
    return;
  }
  const std::int32_t rows = found->second.tile_rows;
  to << " (" << tile.index % rows << ", " << tile.index / rows << ')';
}

}  // namespace heddle::trace
