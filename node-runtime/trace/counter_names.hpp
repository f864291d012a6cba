#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

/// Names of counters (CounterRecord) with several users.
namespace heddle::trace {

/// Counter of ready tasks of the host's place.
inline constexpr std::string_view ready_tasks_name = "ready tasks";

inline constexpr std::string_view generated_prefix = "generated, job ";

/// Counter of the generation thread's progress in a job; its value is the order (TaskRecord) of the
/// last generated item.
[[nodiscard]] inline std::string generated_name(std::int32_t job) {
  return std::string(generated_prefix) + std::to_string(job);
}

/// The job of a counter with such a name; nothing for another counter.
[[nodiscard]] inline std::optional<std::int32_t> job_of_generated(std::string_view name) {
  if (!name.starts_with(generated_prefix)) return std::nullopt;
  name.remove_prefix(generated_prefix.size());
  std::int32_t job = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), job);
  if (read.ec != std::errc() || read.ptr != name.data() + name.size()) return std::nullopt;
  return job;
}

}  // namespace heddle::trace
