#include <cstdio>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "config/describe.hpp"

// Prints the JSON Schema of the configuration: heddle_schema > config/schema.json
int main() {
  fmt::print("{}\n", heddle::config::json_schema().dump(2));
  return std::fflush(stdout) == 0 ? 0 : 1;
}
