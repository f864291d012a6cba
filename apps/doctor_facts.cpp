#include "apps/doctor_facts.hpp"

#include <array>
#include <cstdlib>
#include <fmt/format.h>
#include <mpi.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unistd.h>

#include "config/words.hpp"
#include "kernels/cuda/loading.hpp"
#include "node-runtime/device/cuda/cuda.hpp"
#include "node-runtime/topology/cpu.hpp"
#include "node-runtime/transport/communicator.hpp"

namespace heddle {
namespace {

using nlohmann::json;

/// The rest of the line that begins with `label` in MPI's description.
std::string value_after(const std::string& text, const std::string& label) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(label)) continue;
    const auto begin = line.find_first_not_of(" \t", label.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return {};
}

std::string library_name() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  check_mpi(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
  const std::string all = text.data();
  const std::string version = value_after(all, "MPICH Version:");
  if (version.empty()) return all.substr(0, all.find('\n'));
  const std::string device = value_after(all, "MPICH Device:");
  return fmt::format("MPICH {}{}", version, device.empty() ? "" : fmt::format(" ({})", device));
}

std::string thread_level() {
  int provided = MPI_THREAD_SINGLE;
  check_mpi(MPI_Query_thread(&provided), "MPI_Query_thread");
  switch (provided) {
    case MPI_THREAD_SERIALIZED:
      return "MPI_THREAD_SERIALIZED";
    case MPI_THREAD_MULTIPLE:
      return "MPI_THREAD_MULTIPLE";
    default:
      return "less than MPI_THREAD_SERIALIZED";
  }
}

/// MPICH does not report its transport; these variables determine it.
std::string between_nodes() {
  std::string text = "MPI's shared memory";
  const char* no_local = std::getenv("MPIR_CVAR_NOLOCAL");
  if (no_local != nullptr && *no_local != '\0' && std::string(no_local) != "0") {
    text = fmt::format("the network, even within a host (MPIR_CVAR_NOLOCAL={})", no_local);
  }
  for (const char* name : {"UCX_TLS", "FI_PROVIDER"}) {
    if (const char* value = std::getenv(name)) text = fmt::format("as {}={} says", name, value);
  }
  return text;
}

json optional_to_json(const auto& value) {
  return value ? json(*value) : json();
}

template <class T>
std::optional<T> optional_from_json(const json& from) {
  if (from.is_null()) return std::nullopt;
  return from.get<T>();
}

json surroundings_to_json(const Surroundings& s) {
  return {{"user", s.user},
          {"namespaces",
           {{"pid", s.namespaces.process},
            {"ipc", s.namespaces.ipc},
            {"mnt", s.namespaces.mount},
            {"user", s.namespaces.user}}},
          {"locked_bytes_max", optional_to_json(s.locked_bytes_max)},
          {"shared_memory_bytes", optional_to_json(s.shared_memory_bytes)},
          {"shared_memory_free_bytes", s.shared_memory_free_bytes},
          {"ptrace_scope", optional_to_json(s.ptrace_scope)},
          {"mps",
           {{"folder", s.mps.folder},
            {"has_pipes", s.mps.has_pipes},
            {"has_process", s.mps.has_process},
            {"is_connected", s.mps.is_connected}}}};
}

Surroundings surroundings_from_json(const json& from) {
  Surroundings s;
  s.user = from.at("user").get<std::uint32_t>();
  const json& spaces = from.at("namespaces");
  s.namespaces = {spaces.at("pid").get<std::string>(), spaces.at("ipc").get<std::string>(),
                  spaces.at("mnt").get<std::string>(), spaces.at("user").get<std::string>()};
  s.locked_bytes_max = optional_from_json<std::uint64_t>(from.at("locked_bytes_max"));
  s.shared_memory_bytes = optional_from_json<std::uint64_t>(from.at("shared_memory_bytes"));
  s.shared_memory_free_bytes = from.at("shared_memory_free_bytes").get<std::uint64_t>();
  s.ptrace_scope = optional_from_json<std::int32_t>(from.at("ptrace_scope"));
  const json& mps = from.at("mps");
  s.mps = {mps.at("folder").get<std::string>(), mps.at("has_pipes").get<bool>(),
           mps.at("has_process").get<bool>(), mps.at("is_connected").get<bool>()};
  return s;
}

}  // namespace

NodeSheet describe_node(std::int32_t node, bool has_mpi, const DeviceSet& devices) {
  NodeSheet sheet;
  sheet.node = node;
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  sheet.host = host.data();
  sheet.process = ::getpid();
  const CpuTopology topology = CpuTopology::detect();
  sheet.cores = static_cast<std::int32_t>(topology.cores().size());
  sheet.place = place_of_node(devices, topology.cores());
  if (has_mpi) sheet.mpi = {library_name(), thread_level(), between_nodes()};
  for (const auto& device : devices.devices) {
    const DeviceInfo& info = device->info();
    sheet.devices.push_back(
        {std::string(name_of(info.backend)), info.name, info.memory_bytes, to_string(info.uuid)});
  }
  sheet.device_reason = devices.why;
  const CudaProbe cuda = probe_cuda();
  sheet.cuda_driver = cuda.driver;
  sheet.cuda_toolkit = cuda.toolkit;
  sheet.cuda_found = cuda.why;
  sheet.cuda_missing = kernel::cuda::why_not_loaded();
  sheet.surroundings = look_around();
  return sheet;
}

json to_json(const NodeSheet& sheet) {
  json devices = json::array();
  for (const NodeSheet::Device& device : sheet.devices) {
    devices.push_back({{"backend", device.backend},
                       {"name", device.name},
                       {"memory_bytes", device.memory_bytes},
                       {"uuid", device.uuid}});
  }
  json mpi;
  if (sheet.mpi) {
    mpi = {{"library", sheet.mpi->library},
           {"thread_level", sheet.mpi->thread_level},
           {"between_nodes", sheet.mpi->between_nodes}};
  }
  return {{"node", sheet.node},
          {"host", sheet.host},
          {"process", sheet.process},
          {"cores", sheet.cores},
          {"mpi", std::move(mpi)},
          {"devices", std::move(devices)},
          {"place",
           {{"gpu", sheet.place.gpu ? json(sheet.place.gpu->bytes) : json()},
            {"socket", sheet.place.socket},
            {"pci_switch", sheet.place.pci_switch},
            {"card", sheet.place.card}}},
          {"device_reason", sheet.device_reason},
          {"cuda",
           {{"driver", sheet.cuda_driver},
            {"toolkit", sheet.cuda_toolkit},
            {"found", sheet.cuda_found},
            {"missing", sheet.cuda_missing}}},
          {"surroundings", surroundings_to_json(sheet.surroundings)}};
}

NodeSheet sheet_from_json(const json& from) {
  NodeSheet sheet;
  sheet.node = from.at("node").get<std::int32_t>();
  sheet.host = from.at("host").get<std::string>();
  sheet.process = from.at("process").get<std::int32_t>();
  sheet.cores = from.at("cores").get<std::int32_t>();
  if (const json& mpi = from.at("mpi"); !mpi.is_null()) {
    sheet.mpi = {mpi.at("library").get<std::string>(), mpi.at("thread_level").get<std::string>(),
                 mpi.at("between_nodes").get<std::string>()};
  }
  for (const json& device : from.at("devices")) {
    sheet.devices.push_back(
        {device.at("backend").get<std::string>(), device.at("name").get<std::string>(),
         device.at("memory_bytes").get<std::uint64_t>(), device.at("uuid").get<std::string>()});
  }
  const json& place = from.at("place");
  if (const json& gpu = place.at("gpu"); !gpu.is_null()) {
    sheet.place.gpu = DeviceUuid{gpu.get<decltype(DeviceUuid::bytes)>()};
  }
  sheet.place.socket = place.at("socket").get<std::int32_t>();
  sheet.place.pci_switch = place.at("pci_switch").get<std::int32_t>();
  sheet.place.card = place.at("card").get<std::int32_t>();
  sheet.device_reason = from.at("device_reason").get<std::string>();
  const json& cuda = from.at("cuda");
  sheet.cuda_driver = cuda.at("driver").get<std::string>();
  sheet.cuda_toolkit = cuda.at("toolkit").get<std::string>();
  sheet.cuda_found = cuda.at("found").get<std::string>();
  sheet.cuda_missing = cuda.at("missing").get<std::string>();
  sheet.surroundings = surroundings_from_json(from.at("surroundings"));
  return sheet;
}

std::string what_separates(const NodeSheet& first, const NodeSheet& second) {
  const Surroundings& a = first.surroundings;
  const Surroundings& b = second.surroundings;
  std::vector<std::string> spaces;
  if (a.namespaces.process != b.namespaces.process) spaces.emplace_back("PID");
  if (a.namespaces.ipc != b.namespaces.ipc) spaces.emplace_back("IPC");
  if (a.namespaces.mount != b.namespaces.mount) spaces.emplace_back("mount");
  if (a.namespaces.user != b.namespaces.user) spaces.emplace_back("user");
  std::string text;
  if (!spaces.empty()) {
    text = fmt::format("the two nodes have different {} namespaces (containers)",
                       fmt::join(spaces, " and "));
  }
  if (a.user != b.user) {
    text += fmt::format("{}they run as different users, {} and {}", text.empty() ? "" : " and ",
                        a.user, b.user);
  }
  return text;
}

}  // namespace heddle
