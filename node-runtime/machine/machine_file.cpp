#include "node-runtime/machine/machine_file.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include "base/error.hpp"

namespace heddle {
namespace {

/// The optional entries, for reader and writer alike.
struct TunedEntry {
  const char* key;
  std::optional<std::int64_t> TunedValues::*value;
};
constexpr std::array<TunedEntry, 5> tuned_entries{{{"tile", &TunedValues::tile},
                                                   {"strip", &TunedValues::strip},
                                                   {"small", &TunedValues::small},
                                                   {"inner", &TunedValues::inner},
                                                   {"streams", &TunedValues::streams}}};

struct RateEntry {
  const char* key;
  double KernelRates::*value;
};
constexpr std::array<RateEntry, 4> rate_entries{{{"gemm", &KernelRates::gemm},
                                                 {"syrk", &KernelRates::syrk},
                                                 {"trsm", &KernelRates::trsm},
                                                 {"potrf", &KernelRates::potrf}}};

/// Reads one file; every complaint names the place.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path.string()) {}

  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& what) const {
    const std::string place =
        mark.is_null() ? path_ : fmt::format("{}:{}:{}", path_, mark.line + 1, mark.column + 1);
    throw Error(ErrorCode::usage,
                fmt::format("machine file {}: {}; `heddle tune` writes a new one", place, what));
  }

  [[nodiscard]] YAML::Node load() const {
    std::error_code ignored;
    std::ifstream file(path_);
    std::ostringstream text;
    // Not by yaml-cpp: it leaks memory when reading fails.
    if (!std::filesystem::is_regular_file(path_, ignored) || !(text << file.rdbuf())) {
      fail(YAML::Mark::null_mark(), "it is missing, empty, or cannot be read");
    }
    try {
      return YAML::Load(text.str());
    } catch (const YAML::ParserException& error) {
      fail(error.mark, "it is no YAML: " + error.msg);
    }
  }

  /// A map that has no other keys than these.
  void expect_map(const YAML::Node& node, const std::string& name,
                  std::initializer_list<std::string_view> keys) const {
    if (!node.IsMap()) fail(node.Mark(), fmt::format("'{}' must be a map", name));
    for (const auto& entry : node) {
      const std::string& key = entry.first.Scalar();
      if (std::ranges::find(keys, std::string_view(key)) == keys.end()) {
        fail(entry.first.Mark(), fmt::format("'{}' has no key '{}'", name, key));
      }
    }
  }

  [[nodiscard]] YAML::Node member(const YAML::Node& map, const char* key) const {
    YAML::Node value = map[key];
    if (!value) fail(map.Mark(), fmt::format("the key '{}' is missing", key));
    return value;
  }

  template <class T>
  [[nodiscard]] T scalar(const YAML::Node& map, const char* key, const char* expected) const {
    const YAML::Node value = member(map, key);
    try {
      if (value.IsScalar()) return value.as<T>();
    } catch (const YAML::Exception&) {
      // Refused below, with its place.
    }
    fail(value.Mark(), fmt::format("'{}' must be {}", key, expected));
  }

 private:
  std::string path_;
};

KernelSet read_set(const Reader& reader, const YAML::Node& node) {
  reader.expect_map(node, "sets", {"name", "own", "gemm", "syrk", "trsm", "potrf"});
  KernelSet set;
  set.name = reader.scalar<std::string>(node, "name", "a name");
  set.own = reader.scalar<bool>(node, "own", "true or false");
  for (const RateEntry& entry : rate_entries) {
    const auto rate = reader.scalar<double>(node, entry.key, "a rate in GFLOP/s");
    if (!std::isfinite(rate) || rate <= 0) {
      reader.fail(node[entry.key].Mark(), fmt::format("the rate '{}' must be positive", entry.key));
    }
    set.rates.*entry.value = rate;
  }
  return set;
}

KernelChoice read_kernels(const Reader& reader, const YAML::Node& node) {
  reader.expect_map(node, "kernels",
                    {"tile", "library_default", "core_type", "tile_kernels", "sets"});
  KernelChoice kernels;
  kernels.tile = reader.scalar<std::int64_t>(node, "tile", "a number of rows");
  kernels.library_default = reader.scalar<std::string>(node, "library_default", "a set's name");
  kernels.core_type = reader.scalar<std::string>(node, "core_type", "a set's name");
  kernels.tile_kernels = reader.scalar<std::string>(node, "tile_kernels", "a set's name");
  const YAML::Node sets = reader.member(node, "sets");
  if (!sets.IsSequence()) reader.fail(sets.Mark(), "'sets' must be a list");
  for (const auto& set : sets) kernels.sets.push_back(read_set(reader, set));
  if (!kernels.is_valid()) {
    reader.fail(node.Mark(),
                "'tile' is not positive, or a chosen set is not in the list of 'sets'");
  }
  return kernels;
}

TunedValues read_tuned(const Reader& reader, const YAML::Node& node) {
  TunedValues tuned;
  if (node.IsNull()) return tuned;
  reader.expect_map(node, "tuned", {"tile", "strip", "small", "inner", "streams"});
  for (const TunedEntry& entry : tuned_entries) {
    if (!node[entry.key]) continue;
    const auto value = reader.scalar<std::int64_t>(node, entry.key, "a whole number");
    if (value < 0) reader.fail(node[entry.key].Mark(), fmt::format("'{}' is negative", entry.key));
    tuned.*entry.value = value;
  }
  return tuned;
}

MachineFile read_contents(const Reader& reader) {
  const YAML::Node root = reader.load();
  reader.expect_map(root, "the file",
                    {"heddle_machine", "host", "cpu", "cores", "openblas", "kernels", "tuned"});
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
  return contents;
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
    for (const RateEntry& entry : rate_entries) {
      out << YAML::Key << entry.key << YAML::Value << fmt::format("{}", set.rates.*entry.value);
    }
    out << YAML::EndMap;
  }
  out << YAML::EndSeq << YAML::EndMap;

  if (contents.tuned != TunedValues{}) {
    out << YAML::Key << "tuned" << YAML::Value << YAML::BeginMap;
    for (const TunedEntry& entry : tuned_entries) {
      const auto& value = contents.tuned.*entry.value;
      if (value) out << YAML::Key << entry.key << YAML::Value << *value;
    }
    out << YAML::EndMap;
  }
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

/// Writes all of `text` and reaches the disk; 0 or the errno of what failed.
int write_all(const std::string& name, const std::string& text) {
  const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return errno;
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
  const Reader reader(path);
  try {
    return read_contents(reader);
  } catch (const YAML::Exception& error) {
    reader.fail(error.mark, error.msg);
  }
}

void write_machine_file(const std::filesystem::path& path, const MachineFile& contents) {
  const std::string temporary = fmt::format("{}.{}.tmp", path.string(), ::getpid());
  int failure = write_all(temporary, to_yaml(contents));
  if (failure == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) failure = errno;
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
