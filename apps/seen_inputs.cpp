#include "apps/seen_inputs.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

#include "algorithms/matrix/matrix_file.hpp"
#include "base/error.hpp"
#include "config/effective.hpp"
#include "config/problem.hpp"

namespace heddle {
namespace {

using nlohmann::json;

constexpr std::uint64_t pieces = 256;
constexpr std::uint64_t piece_bytes = std::uint64_t{16} << 10U;
constexpr std::uint64_t chunk_bytes = std::uint64_t{1} << 20U;

/// Four interleaved sums, at memory speed. Detects accidental differences only.
class Checksum {
 public:
  void add(std::span<const char> bytes) {
    std::array<std::uint64_t, 4> words{};
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(words)) {
      words = {};
      std::memcpy(words.data(), bytes.data() + at, std::min(sizeof(words), bytes.size() - at));
      for (std::size_t w = 0; w < words.size(); ++w) {
        lanes_[w] = std::rotl((lanes_[w] ^ words[w]) * multiplier, 29);
      }
    }
  }
  void add(std::uint64_t number) {
    std::array<char, sizeof(number)> bytes{};
    std::memcpy(bytes.data(), &number, sizeof(number));
    add(bytes);
  }
  [[nodiscard]] std::uint64_t value() const {
    std::uint64_t all = 0;
    for (const std::uint64_t lane : lanes_) all = std::rotl((all ^ lane) * multiplier, 31);
    return all;
  }

 private:
  static constexpr std::uint64_t multiplier = 0x9E3779B97F4A7C15U;
  std::array<std::uint64_t, 4> lanes_{1, 2, 3, 4};
};

/// Adds `bytes` bytes from `begin` on; fewer if the file has been truncated. False with errno on
/// failure.
bool add_part(Checksum& sum, int file, std::uint64_t begin, std::uint64_t bytes,
              std::vector<char>& buffer) {
  while (bytes > 0) {
    const ssize_t count =
        ::pread(file, buffer.data(), std::min<std::uint64_t>(bytes, buffer.size()),
                static_cast<off_t>(begin));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    if (count == 0) return true;
    sum.add({buffer.data(), static_cast<std::size_t>(count)});
    begin += static_cast<std::uint64_t>(count);
    bytes -= static_cast<std::uint64_t>(count);
  }
  return true;
}

bool add_content(Checksum& sum, int file, std::uint64_t bytes) {
  std::vector<char> buffer(std::min(std::max<std::uint64_t>(bytes, 1), chunk_bytes));
  if (bytes <= checked_bytes_max) return add_part(sum, file, 0, bytes, buffer);
  for (std::uint64_t p = 0; p < pieces; ++p) {
    // Avoids overflow of the product.
    const std::uint64_t room = bytes - piece_bytes;
    const std::uint64_t begin = room / (pieces - 1) * p + room % (pieces - 1) * p / (pieces - 1);
    if (!add_part(sum, file, begin, piece_bytes, buffer)) return false;
  }
  return true;
}

std::string local_time(std::time_t seconds) {
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", parts);
}

std::string shape_of(const std::string& path) {
  const auto matrix = open_matrix_file(path, OneDimensional::as_column);
  return fmt::format("of {} x {}", matrix->rows(), matrix->columns());
}

/// The name without folders, where that identifies the run's file.
std::string_view name_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

json to_json(const SeenFile& file) {
  return {file.path, file.what, file.content, file.changed};
}

SeenFile from_json(const json& file) {
  return {file.at(0), file.at(1), file.at(2), file.at(3)};
}

}  // namespace

SeenFile see_file(const std::string& path, bool is_matrix) {
  SeenFile seen;
  seen.path = path;
  const auto cannot = [&] {
    seen.what = fmt::format("that cannot be read ({})", std::strerror(errno));
    return seen;
  };
  struct stat status {};
  // Opening other kinds of file may block; the reader reports them.
  if (::stat(path.c_str(), &status) != 0) return cannot();
  if (!S_ISREG(status.st_mode)) {
    seen.what = "that is no regular file";
    return seen;
  }
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return cannot();
  Checksum sum;
  bool is_read = ::fstat(file, &status) == 0;
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  sum.add(bytes);
  is_read = is_read && add_content(sum, file, bytes);
  const int error = errno;
  ::close(file);
  errno = error;
  if (!is_read) return cannot();
  seen.content = sum.value();
  seen.changed = local_time(status.st_mtim.tv_sec);
  seen.what = fmt::format("of {} bytes", bytes);
  if (!is_matrix) return seen;
  try {
    seen.what = shape_of(path);
  } catch (const Error&) {
    // Only the size is known; the reader reports the error.
  }
  return seen;
}

std::vector<SeenFile> see_inputs(const Config& config) {
  std::vector<SeenFile> files;
  if (config.problem && config.problem->matrix.file) {
    files.push_back(see_file(*config.problem->matrix.file, true));
  }
  if (config.problem && config.problem->rhs && config.problem->rhs->file) {
    files.push_back(see_file(*config.problem->rhs->file, true));
  }
  // The default file is specific to each host.
  if (config.machine) files.push_back(see_file(*config.machine, false));
  return files;
}

std::string difference(const std::vector<SeenFile>& first, const std::vector<SeenFile>& other,
                       std::size_t node) {
  constexpr const char* question = "do all nodes see the same folder?";
  for (std::size_t f = 0; f < std::min(first.size(), other.size()); ++f) {
    const SeenFile& here = first[f];
    const SeenFile& there = other[f];
    if (here.content == there.content && here.what == there.what) continue;
    const std::string_view name = name_of(here.path);
    if (here.what != there.what) {
      return fmt::format("node {} sees {} {}, node 0 {}; {}", node, name, there.what, here.what,
                         question);
    }
    return fmt::format(
        "node {} sees another {} than node 0, both {}, with other content (written {} there, {} on "
        "node 0); {}",
        node, name, here.what, there.changed, here.changed, question);
  }
  return {};
}

void compare_inputs(const MpiSession& mpi, const Config* config) {
  if (!mpi.active()) return;
  json mine;
  if (config != nullptr) {
    mine["configuration"] = fingerprint(*config);
    mine["files"] = json::array();
    for (const SeenFile& file : see_inputs(*config)) mine["files"].push_back(to_json(file));
  }
  const std::vector<std::string> texts =
      mpi.all_texts(mine.dump(-1, ' ', false, json::error_handler_t::replace));
  const json first = json::parse(texts.front());
  for (std::size_t node = 1; node < texts.size(); ++node) {
    const json other = json::parse(texts[node]);
    if (first.is_null() || other.is_null()) continue;
    if (first.at("configuration") != other.at("configuration")) {
      throw Error(ErrorCode::usage,
                  fmt::format("node {} has another configuration than node 0 ('{}' and --set); do "
                              "all nodes see the same folder, and have the same options?",
                              node, config == nullptr ? "" : config->name));
    }
    const auto files_of = [](const json& seen) {
      std::vector<SeenFile> files;
      for (const json& file : seen.at("files")) files.push_back(from_json(file));
      return files;
    };
    const std::string wrong = difference(files_of(first), files_of(other), node);
    if (!wrong.empty()) throw Error(ErrorCode::usage, wrong);
  }
}

}  // namespace heddle
