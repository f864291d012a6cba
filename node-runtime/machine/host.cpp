#include "node-runtime/machine/host.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <iterator>
#include <sched.h>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <unistd.h>

namespace heddle {
namespace {

std::string trim(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

/// The lines of /proc/cpuinfo that tell processors apart. Hypervisors hide the marketing name
/// ("AMD EPYC" for every generation), so family, model and stepping belong to it.
std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  std::string name;
  std::string numbers;
  std::set<std::string> seen;
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = trim(line.substr(0, colon));
    if (!seen.insert(key).second) break;  // the second processor begins
    const std::string value = trim(line.substr(colon + 1));
    if (key == "model name" || key == "Model") name = value;
    if (key == "cpu family" || key == "model" || key == "stepping" || key == "CPU part") {
      numbers += (numbers.empty() ? "" : "/") + value;
    }
  }
  if (name.empty()) name = "unknown";
  return numbers.empty() ? name : name + " (" + numbers + ")";
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace

Host describe_host() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) name = {'l', 'o', 'c', 'a', 'l'};
  return {name.data(), cpu_model(), usable_cores()};
}

std::optional<double> stolen_seconds() {
  std::ifstream file("/proc/stat");
  return stolen_seconds(file);
}

std::optional<double> stolen_seconds(std::istream& stat) {
  // "cpu  user nice system idle iowait irq softirq steal ...", in ticks.
  std::string label;
  std::array<std::uint64_t, 8> ticks{};
  stat >> label;
  for (std::uint64_t& one : ticks) stat >> one;
  const auto ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  if (!stat || label != "cpu" || ticks_per_second <= 0) return std::nullopt;
  return static_cast<double>(ticks.back()) / ticks_per_second;
}

std::optional<double> seconds_of_process() {
  timespec now{};
  if (::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return std::nullopt;
  std::ifstream stat("/proc/self/stat");
  return seconds_of_process(
      stat, static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9);
}

std::optional<double> seconds_of_process(std::istream& stat, double uptime_seconds) {
  // "pid (name) state ...": the name may have any characters; the start is the 20th field behind
  // it, in ticks since the system came up.
  const std::string text{std::istreambuf_iterator<char>(stat), {}};
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int k = 0; k < 20; ++k) fields >> field;
  const auto ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  double ticks = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), ticks);
  if (!fields || error != std::errc{} || ticks_per_second <= 0) return std::nullopt;
  return std::max(0.0, uptime_seconds - ticks / ticks_per_second);
}

}  // namespace heddle
