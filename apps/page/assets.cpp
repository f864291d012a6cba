#include "apps/page/assets.hpp"

#include <string_view>
#include <utility>

#include "apps/page/embedded.hpp"
#include "base/assert.hpp"

namespace heddle::page {
namespace {

std::string_view file(std::string_view name) {
  const EmbeddedFile* one = &embedded_files[0];
  while (!one->name.empty() && one->name != name) ++one;
  HEDDLE_CHECK(!one->name.empty(), "there is no embedded file '{}'", name);
  return one->text;
}

/// The page's program: its files, one after the other.
std::string program() {
  std::string text;
  for (const EmbeddedFile* one = &embedded_files[0]; !one->name.empty(); ++one) {
    if (one->name.ends_with(".js")) text += one->text;
  }
  return text;
}

/// page.html before and after a mark.
std::pair<std::string_view, std::string_view> split(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  HEDDLE_CHECK(at != std::string_view::npos, "page.html has no '{}'", mark);
  return {text.substr(0, at), text.substr(at + mark.size())};
}

constexpr std::string_view runs_mark = "<!--runs-->";

}  // namespace

std::string assets_begin() {
  const auto [before, after] = split(split(file("page.html"), runs_mark).first, "/*style*/");
  return std::string(before).append(file("page.css")).append(after);
}

std::string assets_end() {
  const auto [before, after] = split(split(file("page.html"), runs_mark).second, "/*program*/");
  return std::string(before).append(program()).append(after);
}

std::uint64_t assets_bytes() {
  return assets_begin().size() + assets_end().size();
}

}  // namespace heddle::page
