#include "node-runtime/topology/files/topology_file.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "base/printable.hpp"
#include "node-runtime/topology/files/shipped_files.hpp"
#include "node-runtime/topology/files/topology_reader.hpp"

namespace heddle {

std::vector<std::string_view> shipped_topologies() {
  std::vector<std::string_view> names;
  for (const EmbeddedFile* file = embedded_files; file->name != nullptr; ++file) {
    const std::string_view name(file->name);
    names.push_back(name.substr(0, name.rfind('.')));
  }
  std::ranges::sort(names);
  return names;
}

GpuTopology topology_from_yaml(const std::string& text, const std::string& source) {
  const YamlReader yaml("topology " + source);
  return topology_of(yaml, yaml.load_text(text));
}

GpuTopology read_topology(const std::string& name_or_path) {
  if (name_or_path.find_first_of("./") != std::string::npos) {
    const YamlReader yaml("topology " + name_or_path);
    return topology_of(yaml, yaml.load_file(name_or_path));
  }
  for (const EmbeddedFile* file = embedded_files; file->name != nullptr; ++file) {
    if (file->name == name_or_path + ".yaml") return topology_from_yaml(file->text, file->name);
  }
  const std::vector<std::string_view> names = shipped_topologies();
  const std::string_view like = nearest(name_or_path, names);
  throw Error(ErrorCode::usage,
              fmt::format("there is no topology '{}'; expected one of {}, or the path of a file{}",
                          printable(name_or_path), fmt::join(names, ", "),
                          like.empty() ? "" : fmt::format("; did you mean '{}'?", like)));
}

}  // namespace heddle
