#include "config/loader.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <tuple>
#include <utility>

#include "base/nearest.hpp"
#include "config/config_error.hpp"
#include "config/convert.hpp"
#include "config/problem.hpp"

namespace heddle::config {
namespace {

std::string joined(std::string_view parent, std::string_view key) {
  return parent.empty() ? std::string(key) : fmt::format("{}.{}", parent, key);
}

std::vector<std::string_view> members_of(std::string_view group) {
  std::vector<std::string_view> names;
  for (const Option& option : options()) {
    if (parent_of(option.path) == group) names.push_back(leaf_of(option.path));
  }
  return names;
}

/// "layout: {tile: ...}" of "layout.tile"; dotted paths occur only in messages and overrides.
std::string nested(std::string_view path) {
  const auto dot = path.find('.');
  if (dot == std::string_view::npos) return fmt::format("{}: ...", path);
  return fmt::format("{}: {{{}}}", path.substr(0, dot), nested(path.substr(dot + 1)));
}

/// Suggestion for an unknown `key` in `group`: a sibling, or a key of the same name elsewhere.
std::string nearest_key(std::string_view group, std::string_view key) {
  if (find_option(joined(group, key)) != nullptr) return nested(key);
  const auto siblings = members_of(group);
  const std::string_view sibling = nearest(key, siblings);
  if (!sibling.empty()) return std::string(sibling);
  const auto same_leaf = [&](const Option& option) { return leaf_of(option.path) == key; };
  const auto all = options();
  const auto elsewhere = std::find_if(all.begin(), all.end(), same_leaf);
  return elsewhere == all.end() ? std::string{} : std::string(elsewhere->path);
}

/// Reports duplicate keys and keeps the first of each.
void drop_duplicates(TreeNode& node, const std::string& path, Findings& findings) {
  std::vector<Entry> kept;
  for (Entry& entry : node.entries) {
    const std::string entry_path = joined(path, shown(entry.key));
    const auto same_key = [&](const Entry& other) { return other.key == entry.key; };
    const auto first = std::find_if(kept.begin(), kept.end(), same_key);
    if (first != kept.end()) {
      findings.add(entry.position, entry_path,
                   fmt::format("key given twice; the first is at {}; keep one",
                               findings.place(first->position)));
      continue;
    }
    drop_duplicates(entry.value, entry_path, findings);
    kept.push_back(std::move(entry));
  }
  node.entries = std::move(kept);
}

/// Removes from a group what a new `file` or `generate` overrides: the other of the two, and the
/// file's options that no longer apply. Options of other overrides stay and are checked.
void clear_rival(TreeNode& group, std::string_view path) {
  const std::string_view parent = parent_of(path);
  const bool is_file = leaf_of(path) == "file";
  const Option* generate = find_option(joined(parent, "generate"));
  if (generate == nullptr || (!is_file && leaf_of(path) != "generate")) return;

  std::uint32_t kind = 0;  // `file` allows no kind
  for (std::size_t i = 0; !is_file && i < generate->choices.size(); ++i) {
    if (generate->choices[i] == group.find("generate")->value.text) kind = 1U << i;
  }
  const std::string_view rival = is_file ? "generate" : "file";
  std::erase_if(group.entries, [&](const Entry& entry) {
    if (entry.key == rival) return true;
    const Option* option = find_option(joined(parent, entry.key));
    const bool only_generated = option != nullptr && option->kinds != 0;
    return only_generated && entry.position.source == 0 && (option->kinds & kind) == 0;
  });
}

/// Reason why YAML does not read `value` as plain text; empty if it does, or if another type was
/// meant.
std::string why_no_text(std::string_view value, const TreeNode& read, const Option* option) {
  constexpr std::string_view signs = "%!@`&*#|>";
  const auto first = value.find_first_not_of(' ');
  if (first != std::string_view::npos && signs.find(value[first]) != std::string_view::npos) {
    return fmt::format("a value that begins with '{}' means something else in YAML", value[first]);
  }
  const bool is_cut = read.type == TreeNode::Type::scalar && !read.quoted &&
                      value.find(" #", first) != std::string_view::npos;
  if (is_cut) return "a '#' behind a space begins a comment in YAML";
  const bool is_empty = first == std::string_view::npos;
  if (option == nullptr || option->kind != Kind::path || is_empty) return {};
  if (read.type == TreeNode::Type::scalar) {
    return read.quoted || scalar_type(read) == ScalarType::text ? "" : "it is no text in YAML";
  }
  return value == "null" || value == "~" ? "" : "it is no plain text in YAML";
}

/// Applies one "key.path=value" to the tree, replacing the old value.
void apply_override(TreeNode& root, const std::string& text, int source, Findings& findings) {
  const Position position{source, 0, 0};
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    findings.add(position, {}, "expected key.path=value, such as layout.tile=512");
    return;
  }
  const std::string path = text.substr(0, equals);
  std::vector<TextError> errors;
  const std::string_view value = std::string_view(text).substr(equals + 1);
  Entry entry{{}, position, parse_tree(value, source, errors)};
  if (const std::string why = why_no_text(value, entry.value, find_option(path)); !why.empty()) {
    findings.add(position, path,
                 fmt::format("{}; put it in quotes: --set '{}=\"{}\"'", why, path, shown(value)));
    return;
  }
  for (const TextError& error : errors) {
    findings.add(
        error.position, path,
        fmt::format("{} (at character {} of the value)", error.message, error.position.column));
  }
  if (!errors.empty()) return;
  drop_duplicates(entry.value, path, findings);

  TreeNode* group = &root;
  std::size_t begin = 0;
  for (auto dot = path.find('.'); dot != std::string::npos; dot = path.find('.', begin)) {
    const std::string key = path.substr(begin, dot - begin);
    begin = dot + 1;
    const Option* option = find_option(std::string_view(path).substr(0, dot));
    if (option != nullptr && !option->is_group()) {
      findings.add(position, path,
                   fmt::format("{} holds a value and has no keys below it", option->path));
      return;
    }
    if (group->find(key) == nullptr) group->entries.push_back({key, position, {}});
    TreeNode& next = group->find(key)->value;
    if (next.type == TreeNode::Type::null) {
      next.type = TreeNode::Type::mapping;
      next.position = position;
    }
    if (next.type != TreeNode::Type::mapping) return;  // reported as an error of the file
    group = &next;
  }
  entry.key = path.substr(begin);
  if (Entry* old = group->find(entry.key)) {
    *old = std::move(entry);
  } else {
    group->entries.push_back(std::move(entry));
  }
  clear_rival(*group, path);
}

class Reader {
 public:
  Reader(Draft& draft, Findings& findings) : draft_(draft), findings_(findings) {}

  void read_group(const TreeNode& group, const std::string& path) {
    for (const Entry& entry : group.entries) {
      const std::string entry_path = joined(path, entry.key);
      const Option* option = find_option(entry_path);
      if (option == nullptr || parent_of(option->path) != path) {
        report_unknown(entry, path);
      } else if (option->is_group()) {
        read_subgroup(*option, entry);
      } else {
        read_leaf(*option, entry);
      }
    }
  }

 private:
  void report_unknown(const Entry& entry, const std::string& group) {
    findings_.add(
        entry.position, joined(group, shown(entry.key)),
        fmt::format("unknown key; expected one of {}", fmt::join(members_of(group), ", ")),
        nearest_key(group, entry.key));
  }

  void read_subgroup(const Option& option, const Entry& entry) {
    const bool left_out = entry.value.type == TreeNode::Type::null;
    if (left_out && option.nullable) return;
    Seen& seen = draft_.seen[std::string(option.path)];
    seen = {entry.position, entry.value.position, false};
    if (entry.value.type != TreeNode::Type::mapping) {
      findings_.add(entry.value.position, option.path,
                    fmt::format("expected a mapping with {}; found {}",
                                fmt::join(members_of(option.path), ", "), describe(entry.value)));
      return;
    }
    seen.valid = true;
    option.create(draft_.config);
    read_group(entry.value, std::string(option.path));
  }

  void read_leaf(const Option& option, const Entry& entry) {
    Seen& seen = draft_.seen[std::string(option.path)];
    seen = {entry.position, entry.value.position, false};
    Refusal refusal;
    const auto value = convert(option, entry.value, refusal);
    if (!value) {
      findings_.add(refusal.position, option.path, refusal.message, refusal.nearest);
      return;
    }
    seen.valid = true;
    option.set(draft_.config, *value);
  }

  Draft& draft_;
  Findings& findings_;
};

}  // namespace

Findings::Findings(std::string file, std::span<const std::string> overrides) {
  sources_.push_back(std::move(file));
  for (const std::string& text : overrides) {
    sources_.push_back(fmt::format("--set {}: {}", sources_.size(), shown(text)));
  }
}

void Findings::add(const Position& position, std::string_view path, std::string message,
                   std::string_view nearest_name) {
  const bool in_file = position.source == 0;
  found_.push_back({position,
                    {sources_.at(static_cast<std::size_t>(position.source)),
                     in_file ? position.line : 0, in_file ? position.column : 0, std::string(path),
                     std::move(message), std::string(nearest_name)}});
}

void Findings::add_for_file(std::string message) {
  add({}, {}, std::move(message));
}

std::string Findings::place(const Position& position) const {
  const std::string& source = sources_.at(static_cast<std::size_t>(position.source));
  if (position.source != 0) return source;
  return fmt::format("{}:{}:{}", source, position.line, position.column);
}

void Findings::throw_if_any() const {
  if (found_.empty()) return;
  auto ordered = found_;
  std::stable_sort(ordered.begin(), ordered.end(), [](const Finding& a, const Finding& b) {
    return std::tie(a.position.source, a.position.line, a.position.column) <
           std::tie(b.position.source, b.position.line, b.position.column);
  });
  std::vector<Diagnostic> diagnostics;
  for (Finding& finding : ordered) diagnostics.push_back(std::move(finding.diagnostic));
  throw ConfigError(std::move(diagnostics));
}

const Seen* Draft::valid(std::string_view path) const {
  const auto found = seen.find(path);
  return found != seen.end() && found->second.valid ? &found->second : nullptr;
}

Config load(const std::string& text, const std::string& source_name,
            std::span<const std::string> overrides) {
  Findings findings(source_name, overrides);
  std::vector<TextError> errors;
  TreeNode root = parse_tree(text, 0, errors);
  for (const TextError& error : errors) findings.add(error.position, {}, error.message);
  const std::string keys = fmt::format("{}", fmt::join(members_of(""), ", "));
  if (errors.empty() && root.type == TreeNode::Type::null) {
    findings.add_for_file(fmt::format("the file is empty; expected a mapping with {}", keys));
  } else if (errors.empty() && root.type != TreeNode::Type::mapping) {
    findings.add(root.position, {},
                 fmt::format("expected a mapping with {}; found {}", keys, describe(root)));
  }
  const bool readable = root.type == TreeNode::Type::mapping;

  drop_duplicates(root, "", findings);
  int source = 0;
  for (const std::string& override_text : overrides) {
    apply_override(root, override_text, ++source, findings);
  }
  // Without a tree, every required key would be reported as missing.
  if (!readable) findings.throw_if_any();

  Draft draft;
  draft.config.name = source_name;
  Reader(draft, findings).read_group(root, "");
  check_rules(draft, findings);
  findings.throw_if_any();

  if (draft.config.problem && draft.config.problem->matrix.generate) {
    Matrix& matrix = draft.config.problem->matrix;
    matrix.m = matrix.rows();
    if (matrix.generate == MatrixKind::dependent) matrix.rank = matrix.independent_columns();
  }
  return draft.config;
}

}  // namespace heddle::config
