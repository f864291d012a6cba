#pragma once

#include <string_view>

/// The files of assets/; cmake/embed.cmake writes what is declared here.
namespace heddle::page {

struct EmbeddedFile {
  std::string_view name;
  std::string_view text;
};

/// In the order in which CMakeLists.txt has them; ends with one without a name.
extern const EmbeddedFile embedded_files[];

}  // namespace heddle::page
