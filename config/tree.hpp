#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"

/// A YAML document as a light tree in which every key and value knows its position. Duplicate keys
/// stay in it side by side; anchors, aliases and tags are refused while it is built.
namespace heddle::config {

/// Where something was written. Source 0 is the file, source k the k-th override.
struct Position {
  int source = 0;
  int line = 0;    ///< from 1
  int column = 0;  ///< from 1, in characters
};

struct Entry;

struct TreeNode {
  enum class Type : std::uint8_t { null, scalar, sequence, mapping };

  Type type = Type::null;
  Position position;
  std::string text;             ///< scalar
  bool quoted = false;          ///< scalar: text in quotes or a block
  std::vector<TreeNode> items;  ///< sequence
  std::vector<Entry> entries;   ///< mapping, in the order of the file

  /// The entry of `key` of a mapping, or null.
  [[nodiscard]] Entry* find(std::string_view key);
  [[nodiscard]] const Entry* find(std::string_view key) const;
};

struct Entry {
  std::string key;
  Position position;  ///< of the key
  TreeNode value;     ///< an empty value has the position of its key
};

/// A defect of the text itself: no YAML, or YAML that a configuration may not use.
struct TextError {
  Position position;
  std::string message;
};

/// Parses one document. What is wrong with the text is appended to `errors`. The tree is empty when
/// the text is no YAML, and whole when it only uses anchors or tags. Accepts a UTF-8 byte order
/// mark. Never throws for its input.
[[nodiscard]] TreeNode parse_tree(std::string_view text, int source,
                                  std::vector<TextError>& errors);

/// What a person would call the value: "nothing", "a list", "'abc'", "12".
[[nodiscard]] std::string describe(const TreeNode& node);

/// `text` for a message: on one line, of bounded length, control characters written out.
[[nodiscard]] std::string shown(std::string_view text);

/// The types of the YAML core schema that a plain scalar can have.
enum class ScalarType : std::uint8_t { null, boolean, integer, number, text };
[[nodiscard]] ScalarType scalar_type(const TreeNode& scalar);

}  // namespace heddle::config
