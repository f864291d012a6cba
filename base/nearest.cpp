#include "base/nearest.hpp"

#include <algorithm>
#include <cctype>
#include <limits>
#include <string>
#include <vector>

namespace heddle {
namespace {

constexpr std::size_t word_max = 64;  // longer words are not compared; bounds the cost

std::string folded(std::string_view word) {
  std::string out(word);
  for (char& c : out) {
    c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

}  // namespace

std::size_t edit_distance(std::string_view a_view, std::string_view b_view) {
  const std::string a = folded(a_view);
  const std::string b = folded(b_view);
  std::vector<std::size_t> before_last;
  std::vector<std::size_t> last(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> row(b.size() + 1, i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last = std::move(last);
    last = std::move(row);
  }
  return last[b.size()];
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  if (word.empty() || word.size() > word_max) return {};
  const std::string plain = folded(word);
  std::string_view best;
  std::size_t best_distance = std::numeric_limits<std::size_t>::max();
  for (const std::string_view candidate : candidates) {
    std::size_t distance = edit_distance(plain, candidate);
    const bool part =
        plain.size() >= 3 && (candidate.starts_with(plain) || candidate.ends_with(plain));
    if (part) distance = std::min<std::size_t>(distance, 1);
    const bool near = part || distance <= std::max(plain.size(), candidate.size()) / 3;
    if (near && distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace heddle
