#include "node-runtime/trace/run_folder.hpp"

#include <charconv>
#include <fmt/core.h>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/error.hpp"
#include "base/replacement.hpp"

namespace heddle::trace {
namespace {

constexpr std::string_view prefix = "node-";
constexpr std::string_view suffix = ".trace";

std::optional<NodeId> node_of(const std::string& name) {
  std::string_view text = name;
  if (!text.starts_with(prefix) || !text.ends_with(suffix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  text.remove_suffix(suffix.size());
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (!is_number || node_file_name(NodeId{number}) != name) return std::nullopt;
  return NodeId{number};
}

}  // namespace

std::string node_file_name(NodeId node) {
  return fmt::format("{}{}{}", prefix, node.value(), suffix);
}

bool is_node_file_name(const std::string& name) {
  return node_of(name).has_value();
}

std::map<NodeId, std::filesystem::path> node_files_in(const std::filesystem::path& folder) {
  std::map<NodeId, std::filesystem::path> files;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(folder, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (const auto node = node_of(entry->path().filename().string())) {
      files.emplace(*node, entry->path());
    }
  }
  if (error) {
    throw Error(ErrorCode::usage,
                fmt::format("the run '{}' cannot be read: {}", folder.string(), error.message()));
  }
  return files;
}

void make_run_folder(const std::filesystem::path& folder) {
  std::error_code error;
  // The folder may be a symbolic link to a missing target.
  const std::filesystem::path name = folder.has_filename() ? folder : folder.parent_path();
  std::filesystem::create_directory(target_of(name.string()), error);
  if (!error && !std::filesystem::is_directory(folder)) {
    error = std::make_error_code(std::errc::not_a_directory);
  }
  if (error) {
    throw Error(ErrorCode::usage, fmt::format("cannot make the folder '{}' for the trace: {}",
                                              folder.string(), error.message()));
  }
}

void remove_node_files(const std::filesystem::path& folder, NodeId first) {
  for (const auto& [node, file] : node_files_in(folder)) {
    if (node < first) continue;
    std::error_code error;
    std::filesystem::remove(file, error);
    if (!error) continue;
    throw Error(ErrorCode::usage, fmt::format("cannot remove '{}' of an older run: {}",
                                              file.string(), error.message()));
  }
}

void prepare_run_folder(const std::filesystem::path& folder) {
  make_run_folder(folder);
  remove_node_files(folder, NodeId{0});
}

}  // namespace heddle::trace
