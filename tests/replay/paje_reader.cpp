#include "tests/replay/paje_reader.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sstream>
#include <stdexcept>

namespace heddle::replay::test {
namespace {

/// Words of a line; in quotes with spaces.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  for (std::size_t at = line.find_first_not_of(' '); at < line.size();) {
    const bool is_quoted = line[at] == '"';
    const std::size_t begin = is_quoted ? at + 1 : at;
    const std::size_t end = line.find(is_quoted ? '"' : ' ', begin);
    if (is_quoted && end == std::string::npos) throw std::runtime_error("an open quote: " + line);
    words.push_back(line.substr(begin, end - begin));
    if (end == std::string::npos) break;
    at = line.find_first_not_of(' ', is_quoted ? end + 1 : end);
  }
  return words;
}

/// Seconds with nine decimals.
std::int64_t ns_of(const std::string& seconds) {
  const std::size_t point = seconds.find('.');
  EXPECT_EQ(seconds.size() - point, 10U) << seconds;
  return std::stoll(seconds.substr(0, point)) * 1'000'000'000 +
         std::stoll(seconds.substr(point + 1));
}

}  // namespace

PajeTrace::PajeTrace(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  for (std::size_t i = read_header(lines); i < lines.size(); ++i) read_event(lines[i]);
  check_ends();
  std::ranges::stable_sort(states_, {}, &State::start_ns);
}

std::vector<std::string> PajeTrace::states_of(const std::string& container) const {
  std::vector<std::string> found;
  for (const State& state : states_) {
    if (state.container != container) continue;
    found.push_back(fmt::format("{} [{}, {})", state.value, state.start_ns, state.end_ns));
  }
  return found;
}

std::vector<std::pair<std::int64_t, double>> PajeTrace::values(const std::string& name) const {
  return values_.contains(name) ? values_.at(name) : std::vector<std::pair<std::int64_t, double>>();
}

std::size_t PajeTrace::read_header(const std::vector<std::string>& lines) {
  std::size_t i = 0;
  Definition* open = nullptr;
  for (; i < lines.size() && lines[i].starts_with('%'); ++i) {
    const auto words = words_of(lines[i]);
    if (words[0] == "%EventDef") {
      EXPECT_EQ(open, nullptr) << lines[i];
      const auto [entry, is_new] = definitions_.try_emplace(words.at(2));
      EXPECT_TRUE(is_new) << lines[i];
      open = &entry->second;
      open->event = words.at(1);
    } else if (words[0] == "%EndEventDef") {
      open = nullptr;
    } else if (open != nullptr) {
      static const std::set<std::string> kinds{"date", "int", "double", "hex", "string", "color"};
      EXPECT_TRUE(kinds.contains(words.at(2))) << lines[i];
      open->fields.push_back(words.at(1));
    } else {
      ADD_FAILURE() << "a field of nothing: " << lines[i];
    }
  }
  EXPECT_EQ(open, nullptr) << "an open definition";
  return i;
}

void PajeTrace::read_event(const std::string& line) {
  const auto words = words_of(line);
  ASSERT_FALSE(words.empty());
  ASSERT_TRUE(definitions_.contains(words[0])) << line;
  const Definition& definition = definitions_.at(words[0]);
  ASSERT_EQ(words.size(), definition.fields.size() + 1) << line;
  Fields fields;
  for (std::size_t i = 0; i < definition.fields.size(); ++i) {
    fields[definition.fields[i]] = words[i + 1];
  }
  if (fields.contains("Time")) {
    const std::int64_t time = ns_of(fields.at("Time"));
    EXPECT_GE(time, now_ns_) << line;
    now_ns_ = time;
  }
  const std::string& event = definition.event;
  if (event.starts_with("PajeDefine")) {
    define(event.substr(10), fields);
  } else if (event == "PajeCreateContainer") {
    create(fields);
  } else if (event == "PajeDestroyContainer") {
    destroy(fields);
  } else if (event == "PajePushState" || event == "PajePopState") {
    change_state(event, fields);
  } else if (event == "PajeStartLink" || event == "PajeEndLink") {
    link(event, fields);
  } else if (event == "PajeSetVariable") {
    set(fields);
  } else {
    ADD_FAILURE() << line;
  }
}

void PajeTrace::define(const std::string& event, const Fields& fields) {
  const std::string& parent = fields.at("Type");
  EXPECT_TRUE(parent == "0" || types_.contains(parent)) << parent;
  if (event == "EntityValue") {
    Type& type = types_.at(parent);
    EXPECT_EQ(type.kind, "State") << "ViTE takes no others";
    EXPECT_TRUE(type.values.emplace(fields.at("Alias"), fields.at("Name")).second);
    return;
  }
  Type type;
  type.kind = event.substr(0, event.find("Type"));
  type.parent = parent;
  type.name = fields.at("Name");
  if (type.kind == "Link") {
    type.from = fields.at("StartContainerType");
    type.to = fields.at("EndContainerType");
    EXPECT_EQ(types_.at(type.from).kind, "Container");
    EXPECT_EQ(types_.at(type.to).kind, "Container");
  }
  EXPECT_TRUE(types_.emplace(fields.at("Alias"), type).second) << fields.at("Alias");
}

void PajeTrace::create(const Fields& fields) {
  const std::string& parent = fields.at("Container");
  Container made;
  made.type = fields.at("Type");
  made.parent = parent;
  EXPECT_EQ(types_.at(made.type).kind, "Container");
  if (parent != "0") {
    EXPECT_TRUE(containers_.at(parent).is_there);
    EXPECT_EQ(types_.at(made.type).parent, containers_.at(parent).type);
    made.path = containers_.at(parent).path + "/";
  }
  made.path += fields.at("Name");
  container_order_.push_back(made.path);
  EXPECT_TRUE(containers_.emplace(fields.at("Alias"), made).second) << made.path;
}

void PajeTrace::destroy(const Fields& fields) {
  const std::string& alias = fields.at("Name");
  Container& gone = containers_.at(alias);
  EXPECT_TRUE(gone.is_there) << gone.path;
  EXPECT_EQ(gone.type, fields.at("Type"));
  EXPECT_TRUE(gone.open.empty()) << gone.path;
  for (const auto& [other, child] : containers_) {
    EXPECT_FALSE(child.parent == alias && child.is_there) << child.path << " is still there";
  }
  gone.is_there = false;
}

PajeTrace::Container& PajeTrace::container(const Fields& fields, const std::string& kind) {
  Container& found = containers_.at(fields.at("Container"));
  const Type& type = types_.at(fields.at("Type"));
  EXPECT_TRUE(found.is_there) << found.path;
  EXPECT_EQ(type.kind, kind);
  EXPECT_EQ(type.parent, found.type) << type.name;
  return found;
}

void PajeTrace::change_state(const std::string& event, const Fields& fields) {
  Container& where = container(fields, "State");
  if (event == "PajePushState") {
    EXPECT_TRUE(where.open.empty()) << "slices of a row do not overlap: " << where.path;
    const std::string& value = types_.at(fields.at("Type")).values.at(fields.at("Value"));
    where.open.push_back({where.path, value, fields, now_ns_, 0});
    return;
  }
  ASSERT_FALSE(where.open.empty()) << where.path;
  where.open.back().end_ns = now_ns_;
  states_.push_back(where.open.back());
  where.open.pop_back();
}

void PajeTrace::link(const std::string& event, const Fields& fields) {
  container(fields, "Link");
  const Type& type = types_.at(fields.at("Type"));
  EXPECT_EQ(fields.at("Value"), type.name);
  const std::pair key{type.name, fields.at("Key")};
  if (event == "PajeStartLink") {
    const Container& from = containers_.at(fields.at("StartContainer"));
    EXPECT_EQ(from.type, type.from);
    EXPECT_TRUE(used_links_.insert(key).second) << key.second << " starts twice";
    open_links_[key] = {type.name, from.path, "", now_ns_, 0};
    return;
  }
  const Container& to = containers_.at(fields.at("EndContainer"));
  EXPECT_EQ(to.type, type.to);
  const auto found = open_links_.find(key);
  ASSERT_NE(found, open_links_.end()) << key.second << " ends before it starts";
  Link whole = found->second;
  whole.to = to.path;
  whole.end_ns = now_ns_;
  links_.insert(whole);
  open_links_.erase(found);
}

void PajeTrace::set(const Fields& fields) {
  const Container& where = container(fields, "Variable");
  values_[where.path + "/" + types_.at(fields.at("Type")).name].emplace_back(
      now_ns_, std::stod(fields.at("Value")));
}

void PajeTrace::check_ends() const {
  EXPECT_TRUE(open_links_.empty()) << open_links_.size() << " links do not end";
  for (const auto& [alias, container] : containers_) {
    EXPECT_FALSE(container.is_there) << container.path << " is not destroyed";
  }
}

}  // namespace heddle::replay::test
