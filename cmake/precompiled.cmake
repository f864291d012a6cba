# Precompiled headers: what nearly every source reads first, of the standard library and of others' libraries, never of
# heddle itself. GCC takes one only with the options that it was made with, so there is one for each kind of target. The
# debug preset and scripts/tidy go without, and so find what a source forgot to include.
set(headers <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstdint> <cstring> <filesystem>
            <functional> <map> <memory> <mutex> <numeric> <optional> <span> <sstream> <string> <string_view> <thread>
            <unordered_map> <utility> <variant> <vector> <fmt/format.h>)

# heddle_add_precompiled(KIND PROGRAM|LIBRARY OPTIONS ... LINKS ... HEADERS ...): what heddle_precompile(... KIND) uses.
# PROGRAM and LIBRARY differ in how addresses are written.
function(heddle_add_precompiled kind what)
  cmake_parse_arguments(ARG "" "" "OPTIONS;LINKS;HEADERS" ${ARGN})
  set(target heddle_precompiled_${kind})
  set(source "${PROJECT_BINARY_DIR}/precompiled/${kind}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "int main() {}\n")
  if(what STREQUAL PROGRAM)
    add_executable(${target} "${source}")
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/precompiled")
  else()
    add_library(${target} OBJECT "${source}")
  endif()
  target_compile_options(${target} PRIVATE ${ARG_OPTIONS})
  target_link_libraries(${target} PRIVATE fmt::fmt heddle_warnings ${ARG_LINKS})
  target_precompile_headers(${target} PRIVATE ${ARG_HEADERS})
endfunction()

# heddle_precompile(TARGET KIND): the target's C++ sources begin with the headers of that kind.
function(heddle_precompile target kind)
  if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    target_precompile_headers(${target} REUSE_FROM heddle_precompiled_${kind})
  endif()
endfunction()

if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)  # ccache asks for it
  endif()
  heddle_add_precompiled(library LIBRARY HEADERS ${headers})
  heddle_add_precompiled(cold LIBRARY OPTIONS ${heddle_cold_options} HEADERS ${headers} LINKS nlohmann_json::nlohmann_json)
  if(HEDDLE_TESTS)
    set(test_headers ${headers} <gtest/gtest.h> <nlohmann/json.hpp>)
    set(test_links GTest::gtest nlohmann_json::nlohmann_json)
    heddle_add_precompiled(test PROGRAM OPTIONS ${heddle_cold_options} HEADERS ${test_headers} LINKS ${test_links})
    heddle_add_precompiled(checked_test PROGRAM OPTIONS ${heddle_cold_options} -UNDEBUG HEADERS ${test_headers} LINKS ${test_links})
  endif()
endif()
