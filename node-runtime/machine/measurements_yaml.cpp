#include "node-runtime/machine/measurements_yaml.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <iterator>
#include <limits>
#include <string_view>
#include <vector>

#include "base/nearest.hpp"
#include "kernels/kernels.hpp"

namespace heddle {
namespace {

constexpr const char* time_text = "a time in microseconds";
constexpr const char* rate_text = "a rate in GB/s";

// ---- reading ---------------------------------------------------------------------------------

std::int32_t whole32(const YamlReader& reader, const YAML::Node& map, const char* key,
                     std::int64_t least) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  return static_cast<std::int32_t>(reader.whole(map, key, least, most));
}

KernelTimes read_times(const YamlReader& reader, const YAML::Node& node, const char* name) {
  reader.expect_list(node, name);
  KernelTimes times;
  for (const auto& entry : node) {
    reader.expect_map(entry, name, {"kernel", "rows", "columns", "inner", "us"});
    KernelTime time;
    time.kernel = read_measured_kernel(reader, entry);
    time.rows = reader.whole(entry, "rows", 1);
    time.columns = reader.whole(entry, "columns", 1);
    if (entry["inner"]) time.inner = reader.whole(entry, "inner", 1);
    time.microseconds = reader.positive(entry, "us", time_text);
    times.push_back(time);
  }
  return times;
}

CpuMeasurement read_cpu(const YamlReader& reader, const YAML::Node& node) {
  reader.expect_map(node, "cpu", {"workers", "one_worker", "all_workers"});
  CpuMeasurement cpu;
  cpu.workers = whole32(reader, node, "workers", 1);
  cpu.one_worker = read_times(reader, reader.member(node, "one_worker"), "one_worker");
  cpu.all_workers = read_times(reader, reader.member(node, "all_workers"), "all_workers");
  return cpu;
}

kernel::cuda::ProductChoices read_products(const YamlReader& reader, const YAML::Node& node) {
  reader.expect_list(node, "products");
  kernel::cuda::ProductChoices choices;
  for (const auto& entry : node) {
    reader.expect_map(entry, "products", {"size_min", "tile", "stages"});
    kernel::cuda::ProductChoice choice;
    choice.size_min = whole32(reader, entry, "size_min", 1);
    choice.tile = whole32(reader, entry, "tile", 0);
    choice.stages = whole32(reader, entry, "stages", 0);
    if (!choices.empty() && choices.back().size_min >= choice.size_min) {
      reader.fail(entry.Mark(), "the values of 'size_min' must rise");
    }
    choices.push_back(choice);
  }
  return choices;
}

CopyRates read_copies(const YamlReader& reader, const YAML::Node& node) {
  reader.expect_map(
      node, "copies",
      {"to_device", "to_host", "both_ways", "to_peer", "within", "packing", "short_us"});
  CopyRates rates;
  rates.to_device = reader.positive(node, "to_device", rate_text);
  rates.to_host = reader.positive(node, "to_host", rate_text);
  rates.both_ways = reader.positive(node, "both_ways", rate_text);
  if (node["to_peer"]) rates.to_peer = reader.positive(node, "to_peer", rate_text);
  if (node["within"]) rates.within = reader.positive(node, "within", rate_text);
  if (node["packing"]) rates.packing = reader.positive(node, "packing", rate_text);
  if (node["short_us"]) rates.short_us = reader.positive(node, "short_us", time_text);
  return rates;
}

MessageMeasurement read_messages(const YamlReader& reader, const YAML::Node& node) {
  reader.expect_map(node, "messages", {"latency_us", "rate", "host", "reading"});
  MessageMeasurement messages;
  messages.latency_us = reader.positive(node, "latency_us", time_text);
  messages.rate = reader.positive(node, "rate", rate_text);
  if (const YAML::Node host = node["host"]) {
    reader.expect_map(host, "host", {"note_us", "packing"});
    messages.host = {reader.positive(host, "note_us", time_text),
                     reader.positive(host, "packing", rate_text)};
  }
  if (const YAML::Node reading = node["reading"]) {
    reader.expect_map(reading, "reading", {"short_us", "rate"});
    messages.reading = {reader.positive(reading, "short_us", time_text),
                        reader.positive(reading, "rate", rate_text)};
  }
  return messages;
}

std::vector<StagedCopies> read_group_copies(const YamlReader& reader, const YAML::Node& node) {
  constexpr std::array<std::string_view, 3> operations{"broadcast", "reduce", "all_reduce"};
  reader.expect_list(node, "group_copies");
  std::vector<StagedCopies> rows;
  for (const auto& entry : node) {
    reader.expect_map(entry, "group_copies", {"operation", "ranks", "bytes", "staged"});
    StagedCopies row;
    row.operation = reader.scalar<std::string>(entry, "operation", "an operation's name");
    if (std::ranges::find(operations, row.operation) == operations.end()) {
      reader.fail(entry["operation"].Mark(),
                  fmt::format("'operation' must be one of {}", fmt::join(operations, ", ")));
    }
    row.ranks = whole32(reader, entry, "ranks", 2);
    row.bytes = reader.whole(entry, "bytes", 1);
    row.staged = whole32(reader, entry, "staged", 0);
    if (row.staged >= row.ranks) {
      reader.fail(
          entry["staged"].Mark(),
          fmt::format("'staged' must be less than 'ranks', {}: one does not copy", row.ranks));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

DeviceMeasurement read_device(const YamlReader& reader, const YAML::Node& node) {
  reader.expect_map(
      node, "devices",
      {"backend", "name", "library", "streams", "kernels", "products", "copies", "group_copies"});
  DeviceMeasurement device;
  device.backend = reader.scalar<std::string>(node, "backend", "a backend");
  if (device.backend != "cuda" && device.backend != "emulated") {
    reader.fail(node["backend"].Mark(), "'backend' must be cuda or emulated");
  }
  device.name = reader.scalar<std::string>(node, "name", "a device's name");
  device.library = reader.scalar<std::string>(node, "library", "a library's name");
  device.streams = whole32(reader, node, "streams", 1);
  if (device.streams > 16) reader.fail(node["streams"].Mark(), "'streams' must be at most 16");
  device.kernels = read_times(reader, reader.member(node, "kernels"), "kernels");
  if (node["products"]) device.products = read_products(reader, node["products"]);
  device.copies = read_copies(reader, reader.member(node, "copies"));
  if (node["group_copies"]) device.group_copies = read_group_copies(reader, node["group_copies"]);
  return device;
}

// ---- writing ---------------------------------------------------------------------------------

template <class T>
void put(YAML::Emitter& out, const char* key, const T& value) {
  out << YAML::Key << key << YAML::Value << fmt::format("{}", value);
}

void put_text(YAML::Emitter& out, const char* key, const std::string& value) {
  out << YAML::Key << key << YAML::Value << YAML::DoubleQuoted << value;
}

void put_times(YAML::Emitter& out, const char* key, const KernelTimes& times) {
  out << YAML::Key << key << YAML::Value << YAML::BeginSeq;
  for (const KernelTime& time : times) {
    out << YAML::Flow << YAML::BeginMap;
    put(out, "kernel", time.kernel->name);
    put(out, "rows", time.rows);
    put(out, "columns", time.columns);
    if (time.inner > 0) put(out, "inner", time.inner);
    put(out, "us", time.microseconds);
    out << YAML::EndMap;
  }
  out << YAML::EndSeq;
}

void put_products(YAML::Emitter& out, const kernel::cuda::ProductChoices& choices) {
  out << YAML::Key << "products" << YAML::Value
      << YAML::Comment("cublasLt's numbers; tile 0: what it chooses itself") << YAML::BeginSeq;
  for (const kernel::cuda::ProductChoice& choice : choices) {
    out << YAML::Flow << YAML::BeginMap;
    put(out, "size_min", choice.size_min);
    put(out, "tile", choice.tile);
    put(out, "stages", choice.stages);
    out << YAML::EndMap;
  }
  out << YAML::EndSeq;
}

void put_group_copies(YAML::Emitter& out, const std::vector<StagedCopies>& rows) {
  out << YAML::Key << "group_copies" << YAML::Value
      << YAML::Comment("of ranks - 1, to and from a buffer that ranks share") << YAML::BeginSeq;
  for (const StagedCopies& row : rows) {
    out << YAML::Flow << YAML::BeginMap;
    put(out, "operation", row.operation);
    put(out, "ranks", row.ranks);
    put(out, "bytes", row.bytes);
    put(out, "staged", row.staged);
    out << YAML::EndMap;
  }
  out << YAML::EndSeq;
}

void put_device(YAML::Emitter& out, const DeviceMeasurement& device) {
  out << YAML::BeginMap;
  put_text(out, "backend", device.backend);
  put_text(out, "name", device.name);
  put_text(out, "library", device.library);
  put(out, "streams", device.streams);
  put_times(out, "kernels", device.kernels);
  if (!device.products.empty()) put_products(out, device.products);
  out << YAML::Key << "copies" << YAML::Value << YAML::Comment("GB/s") << YAML::BeginMap;
  put(out, "to_device", device.copies.to_device);
  put(out, "to_host", device.copies.to_host);
  put(out, "both_ways", device.copies.both_ways);
  if (device.copies.to_peer) put(out, "to_peer", *device.copies.to_peer);
  if (device.copies.within) put(out, "within", *device.copies.within);
  if (device.copies.packing) put(out, "packing", *device.copies.packing);
  if (device.copies.short_us) put(out, "short_us", *device.copies.short_us);
  out << YAML::EndMap;
  if (!device.group_copies.empty()) put_group_copies(out, device.group_copies);
  out << YAML::EndMap;
}

}  // namespace

const Kernel* read_measured_kernel(const YamlReader& reader, const YAML::Node& entry) {
  const auto name = reader.scalar<std::string>(entry, "kernel", "a kernel's name");
  const auto found = std::ranges::find(factorization_kernels, name, &Kernel::name);
  if (found != factorization_kernels.end()) return *found;
  std::vector<std::string_view> known;
  std::ranges::transform(factorization_kernels, std::back_inserter(known), &Kernel::name);
  const std::string_view like = nearest(name, known);
  reader.fail(entry["kernel"].Mark(),
              fmt::format("no factorization has a kernel '{}'; expected one of {}{}", name,
                          fmt::join(known, ", "),
                          like.empty() ? "" : fmt::format("; did you mean '{}'?", like)));
}

Measurements read_measurements(const YamlReader& reader, const YAML::Node& node) {
  Measurements measured;
  reader.expect_map(node, "measured", {"cpu", "devices", "messages"});
  if (node["cpu"]) measured.cpu = read_cpu(reader, node["cpu"]);
  if (node["devices"]) {
    reader.expect_list(node["devices"], "devices");
    for (const auto& entry : node["devices"]) {
      DeviceMeasurement device = read_device(reader, entry);
      if (measured.device(device.backend, device.name) != nullptr) {
        reader.fail(entry.Mark(), fmt::format("device '{}' is there twice", device.name));
      }
      measured.devices.push_back(std::move(device));
    }
  }
  if (node["messages"]) measured.messages = read_messages(reader, node["messages"]);
  return measured;
}

void write_measurements(YAML::Emitter& out, const Measurements& measured) {
  out << YAML::BeginMap;
  if (measured.cpu) {
    out << YAML::Key << "cpu" << YAML::Value << YAML::BeginMap;
    put(out, "workers", measured.cpu->workers);
    put_times(out, "one_worker", measured.cpu->one_worker);
    put_times(out, "all_workers", measured.cpu->all_workers);
    out << YAML::EndMap;
  }
  if (!measured.devices.empty()) {
    out << YAML::Key << "devices" << YAML::Value << YAML::BeginSeq;
    for (const DeviceMeasurement& device : measured.devices) put_device(out, device);
    out << YAML::EndSeq;
  }
  if (measured.messages) {
    out << YAML::Key << "messages" << YAML::Value << YAML::BeginMap;
    put(out, "latency_us", measured.messages->latency_us);
    put(out, "rate", measured.messages->rate);
    if (const auto& host = measured.messages->host) {
      out << YAML::Key << "host" << YAML::Value << YAML::Flow << YAML::BeginMap;
      put(out, "note_us", host->note_us);
      put(out, "packing", host->packing);
      out << YAML::EndMap;
    }
    if (const auto& reading = measured.messages->reading) {
      out << YAML::Key << "reading" << YAML::Value << YAML::Flow << YAML::BeginMap;
      put(out, "short_us", reading->short_us);
      put(out, "rate", reading->rate);
      out << YAML::EndMap;
    }
    out << YAML::EndMap;
  }
  out << YAML::EndMap;
}

}  // namespace heddle
