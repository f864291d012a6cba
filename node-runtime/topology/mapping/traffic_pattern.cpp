#include "node-runtime/topology/mapping/traffic_pattern.hpp"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/real_text.hpp"
#include "base/units.hpp"

namespace heddle {
namespace {

/// More than any host has; a larger pattern is a slip of the pen.
constexpr std::int64_t ranks_max = 1024;

struct Pattern {
  std::string kind;
  std::vector<std::int32_t> sizes;
  bool wraps = false;
  double weight = 1;
  std::optional<double> bytes;
};

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = text.find_first_not_of(' '); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = text.find_first_not_of(' ', end);
  }
  return words;
}

class PatternReader {
 public:
  explicit PatternReader(std::string_view text) : text_(text), words_(words_of(text)) {}

  [[nodiscard]] Pattern read() {
    Pattern pattern;
    pattern.kind = next("2d, 3d, ring or alltoall");
    const bool is_stencil = pattern.kind == "2d" || pattern.kind == "3d";
    std::size_t dimensions = 0;
    if (pattern.kind == "2d") {
      dimensions = 2;
    } else if (pattern.kind == "3d" || pattern.kind == "alltoall") {
      dimensions = 3;
    } else if (pattern.kind == "ring") {
      dimensions = 1;
    } else {
      fail(fmt::format("expected 2d, 3d, ring or alltoall; found '{}'", pattern.kind));
    }
    pattern.sizes = sizes(dimensions);
    while (at_ < words_.size()) {
      const std::string word = words_[at_++];
      if (word == "wrap" && is_stencil) {
        pattern.wraps = true;
      } else if (word == "weight" && is_stencil) {
        pattern.weight = positive("weight", "a number, such as 3", &real);
      } else if (word == "bytes") {
        pattern.bytes = positive("bytes", "a size, such as 64KiB", &size);
      } else {
        fail(fmt::format("expected {}'bytes SIZE' or nothing; found '{}'",
                         is_stencil ? "'wrap', 'weight W', " : "", word));
      }
    }
    return pattern;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::usage, fmt::format("the pattern '{}' is none: {}",
                                              printable_start(text_, 80), printable(what)));
  }

  [[nodiscard]] std::string next(const char* expected) {
    if (at_ == words_.size()) fail(fmt::format("expected {} at its end", expected));
    return words_[at_++];
  }

  [[nodiscard]] std::vector<std::int32_t> sizes(std::size_t dimensions) {
    constexpr const char* examples[] = {"", "8", "4x4", "2x2x4"};
    const std::string expected = fmt::format(
        "{} such as {}", dimensions == 1 ? "a number of ranks" : "sizes", examples[dimensions]);
    const std::string word = next(expected.c_str());
    std::vector<std::int32_t> found;
    std::int64_t ranks = 1;
    for (const char* at = word.data(); at <= word.data() + word.size();) {
      const char* const end = word.data() + word.size();
      std::int32_t one = 0;
      const auto [after, error] = std::from_chars(at, end, one);
      if (error != std::errc{} || one < 1 || (after != end && *after != 'x')) {
        fail(fmt::format("expected {}; found '{}'", expected, word));
      }
      found.push_back(one);
      ranks *= one;
      if (ranks > ranks_max) fail(fmt::format("it has more than {} ranks", ranks_max));
      at = after + 1;
    }
    if (found.size() != dimensions) fail(fmt::format("expected {}; found '{}'", expected, word));
    return found;
  }

  static std::optional<double> real(const std::string& word) {
    const RealText read = read_real(word);
    return read.state == RealText::State::fits ? std::optional(read.value) : std::nullopt;
  }
  static std::optional<double> size(const std::string& word) { return size_from(word); }

  [[nodiscard]] double positive(const char* name, const char* expected,
                                std::optional<double> (*parse)(const std::string&)) {
    const std::string word = next(expected);
    const std::optional<double> value = parse(word);
    if (!value || !std::isfinite(*value) || *value <= 0) {
      fail(fmt::format("'{}' must be {}, and positive; found '{}'", name, expected, word));
    }
    return *value;
  }

  std::string text_;
  std::vector<std::string> words_;
  std::size_t at_ = 0;
};

/// Adds what a pattern's ranks send each other.
class PatternTraffic {
 public:
  PatternTraffic(const Pattern& pattern, Traffic& traffic) : pattern_(pattern), traffic_(traffic) {}

  void add_all() {
    for (std::size_t d = 0; d < pattern_.sizes.size(); ++d) {
      if (pattern_.kind == "alltoall") {
        if (d == 0) add_groups();
      } else {
        add_neighbours(d);
      }
    }
  }

 private:
  /// Distance of two ranks that are neighbours along the dimension.
  [[nodiscard]] std::int32_t stride(std::size_t dimension) const {
    std::int32_t ranks = 1;
    for (std::size_t d = dimension + 1; d < pattern_.sizes.size(); ++d) ranks *= pattern_.sizes[d];
    return ranks;
  }

  void exchange(std::int32_t a, std::int32_t b, double weight) {
    const Flow flow{pattern_.bytes.value_or(1) * weight, pattern_.bytes ? 1.0 : 0.0};
    traffic_.add(SlotId{a}, SlotId{b}, flow);
    traffic_.add(SlotId{b}, SlotId{a}, flow);
  }

  void add_neighbours(std::size_t dimension) {
    const std::int32_t size = pattern_.sizes[dimension];
    const std::int32_t step = stride(dimension);
    const double weight = dimension == 0 ? pattern_.weight : 1;
    const bool wraps = pattern_.wraps || pattern_.kind == "ring";
    if (size == 1) return;
    for (std::int32_t rank = 0; rank < traffic_.slots(); ++rank) {
      const std::int32_t along = rank / step % size;
      if (along + 1 < size) {
        exchange(rank, rank + step, weight);
      } else if (wraps) {
        exchange(rank, rank - along * step, weight);
      }
    }
  }

  void add_groups() {
    const std::int32_t step = stride(0);
    for (std::int32_t a = 0; a < traffic_.slots(); ++a) {
      for (std::int32_t b = a + step; b < traffic_.slots(); b += step) exchange(a, b, 1);
    }
  }

  const Pattern& pattern_;
  Traffic& traffic_;
};

}  // namespace

Traffic traffic_of_pattern(std::string_view pattern) {
  const Pattern read = PatternReader(pattern).read();
  std::int32_t ranks = 1;
  for (const std::int32_t size : read.sizes) ranks *= size;
  Traffic traffic(ranks, printable(pattern));
  PatternTraffic(read, traffic).add_all();
  return traffic;
}

}  // namespace heddle
