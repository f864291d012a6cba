#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace heddle::replay::test {

/// A trace in the Paje format, read back by what its own header says. Failures of the test are what
/// viewers would refuse: undefined types, values and containers, states that are not closed, links
/// without an end, events out of order.
class PajeTrace {
 public:
  struct State {
    std::string container;  ///< "run/node 0/worker 0"
    std::string value;
    std::map<std::string, std::string> fields;  ///< all of its event
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
  };
  struct Link {
    std::string type;
    std::string from;  ///< containers
    std::string to;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    friend auto operator<=>(const Link&, const Link&) = default;
  };

  explicit PajeTrace(const std::string& text);

  [[nodiscard]] const std::vector<State>& states() const { return states_; }
  [[nodiscard]] const std::set<Link>& links() const { return links_; }
  /// In the order of creation.
  [[nodiscard]] const std::vector<std::string>& containers() const { return container_order_; }
  /// "wait: no task [1000, 2000)", of a container by begin.
  [[nodiscard]] std::vector<std::string> states_of(const std::string& container) const;
  /// Of "run/node 0/ready tasks, host".
  [[nodiscard]] std::vector<std::pair<std::int64_t, double>> values(const std::string& name) const;

 private:
  using Fields = std::map<std::string, std::string>;
  struct Definition {
    std::string event;
    std::vector<std::string> fields;
  };
  struct Type {
    std::string kind;  ///< "Container", "State", ...
    std::string parent;
    std::string name;
    std::map<std::string, std::string> values;  ///< names by alias
    std::string from;                           ///< of links: types of containers
    std::string to;
  };
  struct Container {
    std::string path;
    std::string type;
    std::string parent;
    bool is_there = true;
    std::vector<State> open;
  };

  std::size_t read_header(const std::vector<std::string>& lines);
  void read_event(const std::string& line);
  void define(const std::string& event, const Fields& fields);
  void create(const Fields& fields);
  void destroy(const Fields& fields);
  void change_state(const std::string& event, const Fields& fields);
  void link(const std::string& event, const Fields& fields);
  void set(const Fields& fields);
  /// The container of an event, which has a type in such containers.
  Container& container(const Fields& fields, const std::string& kind);
  void check_ends() const;

  std::map<std::string, Definition> definitions_;                   ///< by number
  std::map<std::string, Type> types_;                               ///< by alias
  std::map<std::string, Container> containers_;                     ///< by alias
  std::map<std::pair<std::string, std::string>, Link> open_links_;  ///< by type and key
  std::set<std::pair<std::string, std::string>> used_links_;
  std::int64_t now_ns_ = 0;
  std::vector<std::string> container_order_;
  std::vector<State> states_;
  std::set<Link> links_;
  std::map<std::string, std::vector<std::pair<std::int64_t, double>>> values_;
};

}  // namespace heddle::replay::test
