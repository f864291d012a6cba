#pragma once

#include <array>
#include <string_view>

/// heddle is two programs, as git is many: `heddle` solves; `heddle-tools` measures machines and
/// explains runs. Users type `heddle COMMAND` for both, and build the first without waiting for
/// the second.
namespace heddle {

struct ToolCommand {
  std::string_view name;
  std::string_view purpose;  ///< what --help says
};

/// The commands that `heddle` hands over to `heddle-tools`.
inline constexpr std::array<ToolCommand, 7> tool_commands{{
    {"tune", "measure this machine and write the machine file that tile sizes follow from"},
    {"doctor", "try every transfer between every two places, and say what does not work and why"},
    {"bench", "measure messages between nodes"},
    {"analyze", "tell what bounded a run, from its trace"},
    {"simulate", "predict a factorization on another machine"},
    {"replay", "simulate a recorded run again, unchanged or with other settings or machines"},
    {"trace", "write a run's trace for other programs"},
}};

/// What --help says of the command. `name` is one of the table's.
[[nodiscard]] constexpr std::string_view purpose_of(std::string_view name) {
  for (const ToolCommand& command : tool_commands) {
    if (command.name == name) return command.purpose;
  }
  return {};
}

}  // namespace heddle
