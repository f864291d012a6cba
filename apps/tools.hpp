#pragma once

#include <array>
#include <string_view>

/// heddle consists of two programs: `heddle` solves, `heddle-tools` measures machines and explains
/// runs. Users type `heddle COMMAND` for both and can build the first without the second.
namespace heddle {

struct ToolCommand {
  std::string_view name;
  std::string_view purpose;  ///< text in --help
};

/// Commands that `heddle` passes to `heddle-tools`.
inline constexpr std::array<ToolCommand, 7> tool_commands{{
    {"tune", "measure this machine, so that tile sizes fit it"},
    {"doctor", "try every transfer between hosts and devices, and say what does not work"},
    {"bench", "measure messages between two nodes, and operations of all"},
    {"analyze", "say what bounded a run, from its trace"},
    {"export", "write a run's trace for other viewers and for tables"},
    {"simulate", "predict a factorization on another machine"},
    {"replay", "predict a recorded run with other settings or on another machine"},
}};

/// Text of the command in --help. `name` is in the table.
[[nodiscard]] constexpr std::string_view purpose_of(std::string_view name) {
  for (const ToolCommand& command : tool_commands) {
    if (command.name == name) return command.purpose;
  }
  return {};
}

}  // namespace heddle
