#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"

/// A YAML document as a light tree with the position of every key and value. Duplicate keys are
/// kept; anchors, aliases and tags are refused.
namespace heddle::config {

/// Position in a source; source 0 is the file, source k the k-th override.
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
  bool quoted = false;          ///< scalar: quoted or a block
  std::vector<TreeNode> items;  ///< sequence
  std::vector<Entry> entries;   ///< mapping, in the order of the file

  /// The entry of `key` of a mapping, or null.
  [[nodiscard]] Entry* find(std::string_view key);
  [[nodiscard]] const Entry* find(std::string_view key) const;
};

struct Entry {
  std::string key;
  Position position;  ///< of the key
  TreeNode value;     ///< position of an empty value: that of its key
};

/// An error of the text itself: not YAML, or YAML features that a configuration may not use.
struct TextError {
  Position position;
  std::string message;
};

/// Parses one document (UTF-8, optional byte order mark) and appends errors to `errors`. The tree
/// is empty if the text is not YAML, complete if only anchors or tags were refused. Does not throw
/// on any input.
[[nodiscard]] TreeNode parse_tree(std::string_view text, int source,
                                  std::vector<TextError>& errors);

/// Describes a value for messages: "nothing", "a list", "'abc'", "12".
[[nodiscard]] std::string describe(const TreeNode& node);

/// `text` for a message: one line, bounded length, control characters escaped.
[[nodiscard]] std::string shown(std::string_view text);

/// The types of the YAML core schema that a plain scalar can have.
enum class ScalarType : std::uint8_t { null, boolean, integer, number, text };
[[nodiscard]] ScalarType scalar_type(const TreeNode& scalar);

}  // namespace heddle::config
