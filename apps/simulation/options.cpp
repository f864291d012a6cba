#include "apps/simulation/options.hpp"

#include <cstdio>
#include <fmt/core.h>
#include <string_view>

namespace heddle {

void take_old_spellings(PredictionOptions& options) {
  constexpr std::string_view old = "policy.";
  for (std::vector<std::string>* const texts : {&options.overrides, &options.sweeps}) {
    for (std::string& text : *texts) {
      if (!text.starts_with(old)) continue;
      const std::string now = "runtime." + text.substr(old.size());
      fmt::print(stderr, "heddle: {}: this key is called {} now\n", text,
                 now.substr(0, now.find('=')));
      text = now;
    }
  }
}

}  // namespace heddle
