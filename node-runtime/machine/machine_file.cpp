#include "node-runtime/machine/machine_file.hpp"

#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fmt/core.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include "base/error.hpp"
#include "base/replacement.hpp"
#include "node-runtime/machine/measurements_yaml.hpp"
#include "node-runtime/machine/yaml_reader.hpp"

namespace heddle {
namespace {

/// The optional entries, for reader and writer alike.
struct TunedEntry {
  const char* key = nullptr;
  std::optional<std::int64_t> TunedValues::*value = nullptr;
  std::int64_t least = 0;
  std::int64_t most = std::int64_t{1} << 30;
};
constexpr std::array<TunedEntry, 6> tuned_entries{{{"tile", &TunedValues::tile, 1},
                                                   {"strip", &TunedValues::strip, 0},
                                                   {"small", &TunedValues::small, 1},
                                                   {"inner", &TunedValues::inner, 1},
                                                   {"virtual", &TunedValues::virtual_tiles, 1},
                                                   {"streams", &TunedValues::streams, 1, 16}}};

YamlReader machine_file_reader(const std::string& name) {
  return YamlReader("machine file " + name, "; `heddle tune` writes a new one");
}

KernelSet read_set(const YamlReader& reader, const YAML::Node& node) {
  reader.expect_map(node, "sets",
                    {"name", "own", compared_kernels[0].key, compared_kernels[1].key,
                     compared_kernels[2].key, compared_kernels[3].key});
  KernelSet set;
  set.name = reader.scalar<std::string>(node, "name", "a name");
  set.own = reader.scalar<bool>(node, "own", "true or false");
  for (std::size_t i = 0; i < compared_kernels.size(); ++i) {
    set.rates[i] = reader.positive(node, compared_kernels[i].key, "a rate in GFLOP/s");
  }
  return set;
}

KernelChoice read_kernels(const YamlReader& reader, const YAML::Node& node) {
  reader.expect_map(node, "kernels",
                    {"tile", "library_default", "core_type", "tile_kernels", "sets"});
  KernelChoice kernels;
  kernels.tile = reader.scalar<std::int64_t>(node, "tile", "a number of rows");
  kernels.library_default = reader.scalar<std::string>(node, "library_default", "a set's name");
  kernels.core_type = reader.scalar<std::string>(node, "core_type", "a set's name");
  kernels.tile_kernels = reader.scalar<std::string>(node, "tile_kernels", "a set's name");
  const YAML::Node sets = reader.member(node, "sets");
  reader.expect_list(sets, "sets");
  for (const auto& set : sets) kernels.sets.push_back(read_set(reader, set));
  if (!kernels.is_valid()) {
    reader.fail(node.Mark(),
                "'tile' is not positive, or 'core_type' or 'tile_kernels' (\"avx2 but gemm\") "
                "names a set that is not in the list of 'sets'");
  }
  return kernels;
}

TunedValues read_tuned(const YamlReader& reader, const YAML::Node& node) {
  TunedValues tuned;
  if (node.IsNull()) return tuned;
  reader.expect_map(node, "tuned", {"tile", "strip", "small", "inner", "virtual", "streams"});
  for (const TunedEntry& entry : tuned_entries) {
    if (!node[entry.key]) continue;
    const std::int64_t value = reader.whole(node, entry.key, entry.least);
    if (value > entry.most) {
      reader.fail(node[entry.key].Mark(),
                  fmt::format("'{}' must be at most {}", entry.key, entry.most));
    }
    tuned.*entry.value = value;
  }
  return tuned;
}

MachineFile read_contents(const YamlReader& reader, const std::filesystem::path& path) {
  const YAML::Node root = reader.load_file(path);
  reader.expect_map(
      root, "the file",
      {"heddle_machine", "host", "cpu", "cores", "openblas", "kernels", "tuned", "measured"});
  const int format = reader.scalar<int>(root, "heddle_machine", "the format's version");
  if (format != MachineFile::format) {
    reader.fail(root["heddle_machine"].Mark(),
                fmt::format("it has format {}, this heddle reads {}", format, MachineFile::format));
  }
  MachineFile contents;
  contents.host = reader.scalar<std::string>(root, "host", "a name");
  contents.cpu_model = reader.scalar<std::string>(root, "cpu", "a processor's name");
  contents.cores = reader.scalar<int>(root, "cores", "a number");
  if (contents.cores < 1) reader.fail(root["cores"].Mark(), "'cores' must be at least 1");
  const YAML::Node openblas = reader.member(root, "openblas");
  reader.expect_map(openblas, "openblas", {"version", "configuration"});
  contents.openblas.version = reader.scalar<std::string>(openblas, "version", "a version");
  contents.openblas.configuration = reader.scalar<std::string>(openblas, "configuration", "a text");
  contents.kernels = read_kernels(reader, reader.member(root, "kernels"));
  if (root["tuned"]) contents.tuned = read_tuned(reader, root["tuned"]);
  if (root["measured"]) contents.measured = read_measurements(reader, root["measured"]);
  return contents;
}

void write_tuning(YAML::Emitter& out, const TunedValues& tuned, const Measurements& measured) {
  if (tuned != TunedValues{}) {
    out << YAML::Key << "tuned" << YAML::Value << YAML::BeginMap;
    for (const TunedEntry& entry : tuned_entries) {
      const auto& value = tuned.*entry.value;
      if (value) out << YAML::Key << entry.key << YAML::Value << *value;
    }
    out << YAML::EndMap;
  }
  if (!measured.empty()) {
    out << YAML::Key << "measured" << YAML::Value;
    write_measurements(out, measured);
  }
}

/// Strings in quotes, so that no host name reads as a number; rates with one decimal.
std::string to_yaml(const MachineFile& contents) {
  YAML::Emitter out;
  const auto text = [&out](const char* key, const std::string& value) {
    out << YAML::Key << key << YAML::Value << YAML::DoubleQuoted << value;
  };
  out << YAML::Comment("Measured by heddle on this machine; may be deleted at any time.")
      << YAML::BeginMap;
  out << YAML::Key << "heddle_machine" << YAML::Value << MachineFile::format;
  text("host", contents.host);
  text("cpu", contents.cpu_model);
  out << YAML::Key << "cores" << YAML::Value << contents.cores;
  out << YAML::Key << "openblas" << YAML::Value << YAML::BeginMap;
  text("version", contents.openblas.version);
  text("configuration", contents.openblas.configuration);
  out << YAML::EndMap;

  const KernelChoice& kernels = contents.kernels;
  out << YAML::Key << "kernels" << YAML::Value << YAML::BeginMap;
  out << YAML::Key << "tile" << YAML::Value << kernels.tile;
  text("library_default", kernels.library_default);
  text("core_type", kernels.core_type);
  text("tile_kernels", kernels.tile_kernels);
  out << YAML::Key << "sets" << YAML::Value
      << YAML::Comment("GFLOP/s on one core; own: heddle's kernels, otherwise OpenBLAS's")
      << YAML::BeginSeq;
  for (const KernelSet& set : kernels.sets) {
    out << YAML::Flow << YAML::BeginMap;
    text("name", set.name);
    out << YAML::Key << "own" << YAML::Value << set.own;
    for (std::size_t i = 0; i < compared_kernels.size(); ++i) {
      out << YAML::Key << compared_kernels[i].key << YAML::Value << fmt::format("{}", set.rates[i]);
    }
    out << YAML::EndMap;
  }
  out << YAML::EndSeq << YAML::EndMap;

  write_tuning(out, contents.tuned, contents.measured);
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

/// Writes all of `text`, reaches the disk and closes the file; 0 or the errno of what failed.
int write_all(int file, const std::string& text) {
  int failure = 0;
  for (std::size_t done = 0; failure == 0 && done < text.size();) {
    const ssize_t written = ::write(file, text.data() + done, text.size() - done);
    if (written >= 0) {
      done += static_cast<std::size_t>(written);
    } else if (errno != EINTR) {
      failure = errno;
    }
  }
  if (failure == 0 && ::fsync(file) != 0) failure = errno;
  if (::close(file) != 0 && failure == 0) failure = errno;
  return failure;
}

/// Letters, digits, points and underscores stay, runs of anything else become one '-'.
std::string safe_name(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_') {
      result += c;
    } else if (!result.empty() && result.back() != '-') {
      result += '-';
    }
  }
  while (!result.empty() && result.back() == '-') result.pop_back();
  return result.substr(0, 80);
}

}  // namespace

MachineFile read_machine_file(const std::filesystem::path& path) {
  const YamlReader reader = machine_file_reader(path.string());
  try {
    return read_contents(reader, path);
  } catch (const YAML::Exception& error) {
    reader.fail(error.mark, error.msg);
  }
}

std::string to_text(const Tuning& tuning) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  write_tuning(out, tuning.fixed, tuning.measured);
  out << YAML::EndMap;
  return out.c_str();
}

Tuning tuning_from_text(const std::string& text) {
  const YamlReader reader = machine_file_reader("of node 0");
  try {
    const YAML::Node root = reader.load_text(text);
    reader.expect_map(root, "tuning", {"tuned", "measured"});
    Tuning tuning;
    if (root["tuned"]) tuning.fixed = read_tuned(reader, root["tuned"]);
    if (root["measured"]) tuning.measured = read_measurements(reader, root["measured"]);
    return tuning;
  } catch (const YAML::Exception& error) {
    reader.fail(error.mark, error.msg);
  }
}

std::filesystem::path machine_file_temporary_path(const std::filesystem::path& path) {
  return fmt::format("{}.{}.tmp", target_of(path.string()), ::getpid());
}

void write_machine_file(const std::filesystem::path& path, const MachineFile& contents) {
  check_output_path(path.string());
  const std::string target = target_of(path.string());
  const std::string temporary = machine_file_temporary_path(path).string();
  int failure = write_all(renew_replacement(temporary, target), to_yaml(contents));
  if (failure == 0 && ::rename(temporary.c_str(), target.c_str()) != 0) failure = errno;
  if (failure == 0) return;
  ::unlink(temporary.c_str());
  throw Error(ErrorCode::usage, fmt::format("cannot write the machine file {}: {}", path.string(),
                                            std::strerror(failure)));
}

std::optional<std::filesystem::path> default_machine_file(const Host& host) {
  std::filesystem::path cache;
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (xdg != nullptr && *xdg == '/') {
    cache = xdg;
  } else if (home != nullptr && *home == '/') {
    cache = std::filesystem::path(home) / ".cache";
  } else {
    return std::nullopt;
  }
  return cache / "heddle" /
         fmt::format("machine-{}-{}.yaml", safe_name(host.name), safe_name(host.cpu_model));
}

}  // namespace heddle
