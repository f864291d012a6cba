#include "apps/old_spellings.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace heddle {
namespace {

struct OldOption {
  std::string_view command;
  std::string_view old_name;
  std::string_view name;
};
constexpr std::array<OldOption, 5> old_options{{
    {"generate", "--matrix", "--output"},
    {"generate", "--rhs", "--rhs-columns"},
    {"generate", "--right-hand-sides", "--rhs-output"},
    {"bench", "--repetitions", "--repeat"},
    {"bench", "--triangles", "--datatype=triangle"},
}};

void add_note(CommandLine& line, std::string_view old_name, std::string_view name) {
  std::string note = fmt::format("'{}' is now '{}'; the old name goes on working", old_name, name);
  if (std::find(line.notes.begin(), line.notes.end(), note) == line.notes.end()) {
    line.notes.push_back(std::move(note));
  }
}

}  // namespace

CommandLine with_current_names(std::span<const char* const> words) {
  CommandLine line;
  line.words.assign(words.begin(), words.end());
  if (line.words.size() < 2) return line;
  if (line.words[1] == "trace" && line.words.size() > 2 && line.words[2] == "export") {
    line.words.erase(line.words.begin() + 1);
    add_note(line, "heddle trace export", "heddle export");
  }
  const std::string command = line.words[1];
  for (std::size_t i = 2; i < line.words.size(); ++i) {
    std::string& word = line.words[i];
    if (word == "--") break;  // no options follow
    const std::string_view name = std::string_view(word).substr(0, word.find('='));
    const auto* const old =
        std::find_if(old_options.begin(), old_options.end(), [&](const OldOption& option) {
          return option.command == command && option.old_name == name;
        });
    if (old == old_options.end()) continue;
    add_note(line, old->old_name, old->name);
    word.replace(0, old->old_name.size(), old->name);
  }
  return line;
}

}  // namespace heddle
