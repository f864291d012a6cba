#pragma once

#include <CLI/CLI.hpp>

namespace heddle {

/// Layout of --help: names, arguments and defaults in the words of the user guide. Ranges are in
/// the descriptions.
class HelpFormat : public CLI::Formatter {
 public:
  HelpFormat();
  [[nodiscard]] std::string make_option_opts(const CLI::Option* option) const override;
  [[nodiscard]] std::string make_option_desc(const CLI::Option* option) const override;
};

}  // namespace heddle
