#include "config/tree.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <fmt/core.h>
#include <sstream>
#include <utility>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "base/printable.hpp"

namespace heddle::config {
namespace {

constexpr std::size_t depth_max = 16;  // options are nested 3 deep
constexpr std::size_t shown_max = 48;

/// Thrown through the parser to stop it; never leaves this file.
struct Stop {};

/// Converts the parser's column in bytes to characters.
Position position_of(const YAML::Mark& mark, std::string_view text, int source) {
  const auto end = std::min(static_cast<std::size_t>(std::max(mark.pos, 0)), text.size());
  const auto size = std::min(static_cast<std::size_t>(std::max(mark.column, 0)), end);
  const std::string_view line = text.substr(end - size, size);
  const auto later_bytes = std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) == 0x80;
  });
  return {source, mark.line + 1, mark.column + 1 - static_cast<int>(later_bytes)};
}

/// Builds the tree from the parser's events. Open containers are on a stack; a mapping keeps the
/// key whose value is next.
class Builder : public YAML::EventHandler {
 public:
  Builder(std::string_view text, int source, std::vector<TextError>& errors)
      : text_(text), source_(source), errors_(errors) {
    root_.position = {source, 1, 1};  // an empty text has no event
  }

  [[nodiscard]] TreeNode take() { return std::move(root_); }

  /// Keys that are not scalars. An unclosed list or mapping looks the same to the parser at first,
  /// so these count only if the text is otherwise valid.
  [[nodiscard]] const std::vector<TextError>& key_errors() const { return key_errors_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1)
      fail(mark, "a second document or stray text begins here; expected one document");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    if (wants_key()) {
      key_errors_.push_back({position(mark), "a key is missing before ':'"});
      open_.back().has_key = true;
      return;
    }
    TreeNode node;
    node.position = position(mark);
    // The parser reports an empty value at the position of the next token.
    if (!open_.empty() && open_.back().node.type == TreeNode::Type::mapping) {
      node.position = open_.back().key_position;
    }
    add(std::move(node));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fail(mark, "aliases (*name) are not supported; write the value out");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (!is_closed(mark)) fail(mark, "a quoted text begins here that never ends");
    if (wants_key()) {
      open_.back().key = value;
      open_.back().key_position = position(mark);
      open_.back().has_key = true;
      return;
    }
    TreeNode node;
    node.type = TreeNode::Type::scalar;
    node.position = position(mark);
    node.text = value;
    node.quoted = tag == "!";
    add(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    begin(mark, tag, anchor, TreeNode::Type::sequence);
  }
  void OnSequenceEnd() override { end(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    begin(mark, tag, anchor, TreeNode::Type::mapping);
  }
  void OnMapEnd() override { end(); }

 private:
  struct Open {
    TreeNode node;
    std::string key;
    Position key_position;
    bool has_key = false;
    bool as_key = false;  ///< in the place of a key
  };

  [[nodiscard]] Position position(const YAML::Mark& mark) const {
    return position_of(mark, text_, source_);
  }

  [[nodiscard]] bool wants_key() const {
    return !open_.empty() && open_.back().node.type == TreeNode::Type::mapping &&
           !open_.back().has_key;
  }

  [[noreturn]] void fail(const YAML::Mark& mark, std::string message) {
    errors_.push_back({position(mark), std::move(message)});
    throw Stop{};
  }

  /// The parser accepts the end of the file as a closing quote.
  [[nodiscard]] bool is_closed(const YAML::Mark& mark) const {
    const auto begin = static_cast<std::size_t>(std::max(mark.pos, 0));
    if (begin >= text_.size()) return true;
    const char quote = text_[begin];
    if (quote != '"' && quote != '\'') return true;
    for (std::size_t at = begin + 1; at < text_.size(); ++at) {
      const bool doubled = quote == '\'' && text_.substr(at, 2) == "''";
      const bool escape = quote == '"' && text_[at] == '\\';
      if (doubled || escape) {
        ++at;
      } else if (text_[at] == quote) {
        return true;
      }
    }
    return false;
  }

  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) {
      errors_.push_back({position(mark), "anchors (&name) are not supported; leave it out"});
    }
  }

  void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    errors_.push_back(
        {position(mark), fmt::format("tags ({}) are not supported; leave it out", shown(tag))});
  }

  void begin(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
             TreeNode::Type type) {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    const bool as_key = wants_key();
    if (as_key) {
      key_errors_.push_back({position(mark), "a key must be one word, not a list or a mapping"});
    }
    if (open_.size() == depth_max) fail(mark, "lists and mappings are nested too deeply");
    open_.emplace_back();
    open_.back().as_key = as_key;
    open_.back().node.type = type;
    open_.back().node.position = position(mark);
  }

  void end() {
    const Open closed = std::move(open_.back());
    open_.pop_back();
    if (closed.as_key) {
      open_.back().has_key = true;
    } else {
      add(closed.node);
    }
  }

  void add(TreeNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.type == TreeNode::Type::sequence) {
      parent.node.items.push_back(std::move(node));
      return;
    }
    parent.node.entries.push_back({std::move(parent.key), parent.key_position, std::move(node)});
    parent.key.clear();
    parent.has_key = false;
  }

  std::string_view text_;
  int source_;
  std::vector<TextError>& errors_;
  std::vector<TextError> key_errors_;
  std::vector<Open> open_;
  TreeNode root_;
  int documents_ = 0;
};

/// Finds the first byte that is not text; the parser accepts most of them as letters.
bool is_text(std::string_view text, int source, std::vector<TextError>& errors) {
  Position position{source, 1, 1};
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const std::size_t size = utf8_sequence_size(text, at);
    const bool control =
        (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7F;
    if (size == 0 || control) {
      errors.push_back({position, fmt::format("byte 0x{:02X} is no text; expected a YAML file in "
                                              "UTF-8",
                                              byte)});
      return false;
    }
    at += size;
    ++position.column;
    if (byte == '\n') {
      ++position.line;
      position.column = 1;
    }
  }
  return true;
}

/// Usual cause of a terse parser message.
std::string_view cause_of(std::string_view message) {
  using Cause = std::pair<std::string_view, std::string_view>;
  static constexpr std::array<Cause, 4> causes{{
      {"illegal map value", "wrong indentation, a second ': ' on the line, or none after a key"},
      {"end of map not found", "wrong indentation, or no ': ' after a key"},
      {"end of map flow not found", "a '}' is missing"},
      {"end of sequence flow not found", "a ']' is missing"},
  }};
  const auto found = std::find_if(causes.begin(), causes.end(),
                                  [&](const Cause& cause) { return cause.first == message; });
  return found == causes.end() ? std::string_view{} : found->second;
}

/// Finds the first line up to `line_max` indented with a tab, the usual cause of a syntax error.
bool find_tab(std::string_view text, int line_max, Position& position) {
  for (int line = 1; line <= line_max && !text.empty(); ++line) {
    const std::string_view current = text.substr(0, text.find('\n'));
    const auto first = current.find_first_not_of(' ');
    if (first != std::string_view::npos && current[first] == '\t') {
      position.line = line;
      position.column = static_cast<int>(first) + 1;
      return true;
    }
    text.remove_prefix(std::min(text.size(), current.size() + 1));
  }
  return false;
}

TextError syntax_error(const YAML::Exception& exception, std::string_view text, int source) {
  Position position = position_of(exception.mark, text, source);
  if (find_tab(text, position.line, position)) {
    return {position, "a tab in the indentation; YAML wants spaces"};
  }
  const std::string_view cause = cause_of(exception.msg);
  return {position, fmt::format("not valid YAML: {}{}", exception.msg,
                                cause.empty() ? "" : fmt::format(" ({})", cause))};
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

}  // namespace

Entry* TreeNode::find(std::string_view key) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& entry) { return entry.key == key; });
  return found == entries.end() ? nullptr : &*found;
}

const Entry* TreeNode::find(std::string_view key) const {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& entry) { return entry.key == key; });
  return found == entries.end() ? nullptr : &*found;
}

TreeNode parse_tree(std::string_view text, int source, std::vector<TextError>& errors) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (!is_text(text, source, errors)) return {};
  Builder builder(text, source, errors);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser && parser.HandleNextDocument(builder)) {
    }
  } catch (const Stop&) {
    return {};
  } catch (const YAML::Exception& exception) {
    errors.push_back(syntax_error(exception, text, source));
    return {};
  }
  errors.insert(errors.end(), builder.key_errors().begin(), builder.key_errors().end());
  return builder.key_errors().empty() ? builder.take() : TreeNode{};
}

std::string shown(std::string_view text) {
  return printable_start(text, shown_max);
}

ScalarType scalar_type(const TreeNode& scalar) {
  if (scalar.quoted) return ScalarType::text;
  const std::string& text = scalar.text;
  if (is_one_of(text, {"true", "True", "TRUE", "false", "False", "FALSE"})) {
    return ScalarType::boolean;
  }
  std::string_view digits = text;
  if (digits.starts_with('+') || digits.starts_with('-')) digits.remove_prefix(1);
  if (is_one_of(digits, {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"})) {
    return ScalarType::number;
  }
  // from_chars accepts words ("inf", "nan") and forms that YAML does not.
  if (digits.empty() || digits.find_first_not_of("0123456789.eE+-") != std::string_view::npos ||
      is_one_of(digits.substr(0, 1), {"+", "-", "e", "E"})) {
    return ScalarType::text;
  }
  if (digits.find_first_not_of("0123456789") == std::string_view::npos) return ScalarType::integer;
  double number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return end == digits.data() + digits.size() && error != std::errc::invalid_argument
             ? ScalarType::number
             : ScalarType::text;
}

std::string describe(const TreeNode& node) {
  switch (node.type) {
    case TreeNode::Type::null:
      return "nothing";
    case TreeNode::Type::sequence:
      return fmt::format("a list of {}", node.items.size());
    case TreeNode::Type::mapping:
      return "a mapping";
    case TreeNode::Type::scalar:
      break;
  }
  if (node.quoted) return fmt::format("the quoted text \"{}\"", shown(node.text));
  if (scalar_type(node) == ScalarType::text) return fmt::format("'{}'", shown(node.text));
  return shown(node.text);
}

}  // namespace heddle::config
