#pragma once

#include <string_view>

namespace heddle::replay::paje {

/// Event kinds; each line begins with its number. First the fields that pajeng requires, then ours,
/// which viewers show unchanged.
enum class Line : int {
  define_container_type,
  define_state_type,
  define_variable_type,
  define_link_type,
  define_value,
  create_container,
  destroy_container,
  push_state,
  push_transfer,
  push_task,
  pop_state,
  set_variable,
  start_link,
  end_link,
};

/// Declares the fields of each kind.
inline constexpr std::string_view header =
    "%EventDef PajeDefineContainerType 0\n"
    "% Alias string\n% Type string\n% Name string\n%EndEventDef\n"
    "%EventDef PajeDefineStateType 1\n"
    "% Alias string\n% Type string\n% Name string\n%EndEventDef\n"
    "%EventDef PajeDefineVariableType 2\n"
    "% Alias string\n% Type string\n% Name string\n% Color color\n%EndEventDef\n"
    "%EventDef PajeDefineLinkType 3\n"
    "% Alias string\n% Type string\n% StartContainerType string\n% EndContainerType string\n"
    "% Name string\n%EndEventDef\n"
    "%EventDef PajeDefineEntityValue 4\n"
    "% Alias string\n% Type string\n% Name string\n% Color color\n%EndEventDef\n"
    "%EventDef PajeCreateContainer 5\n"
    "% Time date\n% Alias string\n% Type string\n% Container string\n% Name string\n%EndEventDef\n"
    "%EventDef PajeDestroyContainer 6\n"
    "% Time date\n% Type string\n% Name string\n%EndEventDef\n"
    "%EventDef PajePushState 7\n"
    "% Time date\n% Type string\n% Container string\n% Value string\n%EndEventDef\n"
    "%EventDef PajePushState 8\n"
    "% Time date\n% Type string\n% Container string\n% Value string\n"
    "% Tile string\n% Bytes string\n%EndEventDef\n"
    "%EventDef PajePushState 9\n"
    "% Time date\n% Type string\n% Container string\n% Value string\n"
    "% Tile string\n% Job string\n% Order string\n% Priority string\n%EndEventDef\n"
    "%EventDef PajePopState 10\n"
    "% Time date\n% Type string\n% Container string\n%EndEventDef\n"
    "%EventDef PajeSetVariable 11\n"
    "% Time date\n% Type string\n% Container string\n% Value double\n%EndEventDef\n"
    "%EventDef PajeStartLink 12\n"
    "% Time date\n% Type string\n% Container string\n% Value string\n% StartContainer string\n"
    "% Key string\n%EndEventDef\n"
    "%EventDef PajeEndLink 13\n"
    "% Time date\n% Type string\n% Container string\n% Value string\n% EndContainer string\n"
    "% Key string\n%EndEventDef\n";

}  // namespace heddle::replay::paje
