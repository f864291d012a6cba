#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

/// The configuration described for people and for editors, both from the option table.
namespace heddle::config {

/// Every key with its type, default and meaning, aligned, at most 80 columns wide.
[[nodiscard]] std::string option_help();

/// JSON Schema (draft 2020-12) of a configuration file; config/schema.json is its output. Covers
/// structure, types, words and ranges; of the rules between keys only file/generate.
[[nodiscard]] nlohmann::json json_schema();

}  // namespace heddle::config
