# One CMake target per folder. Each library is linked with what it names and nothing else, so what
# it may not use its own tests do not find; docs/decisions/001-build-and-layers.md.

# heddle_check_headers(NAME HEADERS ... LINKS ...): compiles each of the headers alone with what is linked, but for those
# that have a source of their name: it begins with its header, and the debug preset and scripts/tidy compile it alone.
function(heddle_check_headers name)
  cmake_parse_arguments(ARG "" "" "HEADERS;LINKS" ${ARGN})
  if(NOT HEDDLE_CHECK_HEADERS)
    return()
  endif()
  set(stubs)
  foreach(header IN LISTS ARG_HEADERS)
    string(REGEX REPLACE "\\.hpp$" ".cpp" source "${header}")
    if(EXISTS "${source}")
      continue()
    endif()
    file(RELATIVE_PATH path "${PROJECT_SOURCE_DIR}" "${header}")
    string(MAKE_C_IDENTIFIER "${path}" id)
    set(stub "${CMAKE_CURRENT_BINARY_DIR}/alone/${id}.cpp")
    file(CONFIGURE OUTPUT "${stub}" CONTENT "#include \"${path}\"\n#include \"${path}\"\n" @ONLY)
    list(APPEND stubs "${stub}")
  endforeach()
  if(NOT stubs)
    return()
  endif()
  add_library(heddle_${name}_headers OBJECT ${stubs})
  target_link_libraries(heddle_${name}_headers PRIVATE ${ARG_LINKS} heddle_warnings)
  target_compile_options(heddle_${name}_headers PRIVATE -O0)  # nothing of it runs
  set_target_properties(heddle_${name}_headers PROPERTIES UNITY_BUILD OFF)
endfunction()

# heddle_compile_quickly(TARGET): for options, tables and JSON, which what they call is tested without: with sanitizers
# neither optimised nor watched for undefined behaviour, which is half of the time that a sanitized build takes.
function(heddle_compile_quickly target)
  if(HEDDLE_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
    if(HEDDLE_SANITIZE MATCHES undefined)
      target_compile_options(${target} PRIVATE -fno-sanitize=undefined)
    endif()
  else()
    target_compile_options(${target} PRIVATE ${heddle_cold_options})
    heddle_precompile(${target} cold)
  endif()
endfunction()

# heddle_library(NAME [COLD] [SOURCES ...] [LINKS ...] [PRIVATE_LINKS ...] [HEADERS ...])
# Defines heddle_NAME. COLD, as all below apps/: texts, tables and files, which take longer to optimise in full than
# that would save. Outside apps/ the library is part of the installed package, as heddle::NAME, and an object
# target compiles headers of the folder (or HEADERS) alone (heddle_check_headers).
function(heddle_library name)
  cmake_parse_arguments(ARG "COLD" "" "SOURCES;LINKS;PRIVATE_LINKS;HEADERS" ${ARGN})
  file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}")
  file(GLOB headers CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.hpp")
  if(ARG_SOURCES)
    add_library(heddle_${name} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(heddle_${name} PUBLIC ${ARG_LINKS}
                          PRIVATE ${ARG_PRIVATE_LINKS} $<BUILD_INTERFACE:heddle_warnings>)
    if(folder MATCHES "^apps")
      heddle_compile_quickly(heddle_${name})
    elseif(ARG_COLD)
      target_compile_options(heddle_${name} PRIVATE ${heddle_cold_options})
      heddle_precompile(heddle_${name} cold)
    else()
      heddle_precompile(heddle_${name} library)
    endif()
    # From 3.31 on CMake would compile CUDA sources together, whose kernels have names in common.
    list(FILTER ARG_SOURCES INCLUDE REGEX "\\.cu$")
    set_source_files_properties(${ARG_SOURCES} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  else()
    add_library(heddle_${name} INTERFACE)
    set(scope INTERFACE)
    target_link_libraries(heddle_${name} INTERFACE ${ARG_LINKS})
  endif()
  target_include_directories(heddle_${name} ${scope} "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>"
                                                     "$<INSTALL_INTERFACE:include/heddle>")
  target_compile_features(heddle_${name} ${scope} cxx_std_20)
  set_property(GLOBAL APPEND PROPERTY HEDDLE_LIBRARIES heddle_${name})

  if(NOT folder MATCHES "^apps")
    set_target_properties(heddle_${name} PROPERTIES EXPORT_NAME ${name})
    install(TARGETS heddle_${name} EXPORT heddle ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  endif()

  if(folder MATCHES "^apps")
    return()
  endif()
  if(ARG_HEADERS)
    set(headers)
    foreach(header IN LISTS ARG_HEADERS)
      list(APPEND headers "${CMAKE_CURRENT_SOURCE_DIR}/${header}")
    endforeach()
  endif()
  heddle_check_headers(${name} HEADERS ${headers} LINKS heddle_${name})
endfunction()

# What the sanitizer presets build.
add_custom_target(tsan_tests)
add_custom_target(asan_tests)

# heddle_test(NAME [CHECKED] SOURCES ... [LINKS ...] [LABELS ...]): a GoogleTest binary as one CTest test. With the label
# `sanitize` the sanitizer presets build and run it too; with `asan`, as it has one thread, only the address sanitizer's; with
# `tsan`, as it is long and other tests go the same ways, only the thread sanitizer's. CHECKED: it links a library that has all assertions on.
# COST: seconds, of those that take longest, which begin first.
function(heddle_test name)
  cmake_parse_arguments(ARG "CHECKED" "TIMEOUT;COST" "SOURCES;LINKS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINKS} heddle_warnings GTest::gtest GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE HEDDLE_EXPENSIVE_CHECKS)
  # What is tested is optimised in full; a third of the time to compile the tests themselves is not worth theirs.
  target_compile_options(${name} PRIVATE ${heddle_cold_options})
  target_link_libraries(${name} PRIVATE fmt::fmt)
  if(ARG_CHECKED)
    heddle_precompile(${name} checked_test)
  else()
    heddle_precompile(${name} test)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
  if(ARG_COST)
    set_tests_properties(${name} PROPERTIES COST ${ARG_COST})
  endif()
  if("sanitize" IN_LIST ARG_LABELS)
    add_dependencies(tsan_tests ${name})
    add_dependencies(asan_tests ${name})
  elseif("asan" IN_LIST ARG_LABELS)
    add_dependencies(asan_tests ${name})
  elseif("tsan" IN_LIST ARG_LABELS)
    add_dependencies(tsan_tests ${name})
  endif()
endfunction()

# heddle_cuda_test(NAME): what heddle_test NAME instantiates for the cuda backend becomes a test of its own, with the
# label cuda, reported as skipped where there is no GPU.
function(heddle_cuda_test name)
  set_property(TEST ${name} PROPERTY ENVIRONMENT "GTEST_FILTER=-*/cuda")
  add_test(NAME ${name}_cuda COMMAND ${name} --gtest_filter=*/cuda)
  heddle_needs_gpu(${name}_cuda)
endfunction()

# heddle_needs_gpu(TEST): where its program says that there is no GPU, it is skipped.
function(heddle_needs_gpu name)
  set_tests_properties(${name} PROPERTIES LABELS cuda TIMEOUT 300
                                          SKIP_REGULAR_EXPRESSION "no GPU to test on")
endfunction()

# heddle_gpu_sanitizer_test(TEST TOOL FILTER): the CUDA toolkit's compute-sanitizer watches heddle's own kernels in
# the cases of a GoogleTest binary that FILTER selects. TOOL: memcheck (wrong accesses) or racecheck
# (races in shared memory), which takes hundreds of times the time.
function(heddle_gpu_sanitizer_test name tool filter)
  find_program(HEDDLE_COMPUTE_SANITIZER compute-sanitizer HINTS "${CUDAToolkit_BIN_DIR}")
  mark_as_advanced(HEDDLE_COMPUTE_SANITIZER)
  if(NOT HEDDLE_COMPUTE_SANITIZER)
    return()
  endif()
  add_test(NAME ${name}_${tool}
           COMMAND ${HEDDLE_COMPUTE_SANITIZER} --tool ${tool} --error-exitcode 1 --kernel-name kns=heddle
                   $<TARGET_FILE:${name}> --gtest_filter=${filter})
  heddle_needs_gpu(${name}_${tool})
  set_tests_properties(${name}_${tool} PROPERTIES LABELS "cuda;compute-sanitizer")
endfunction()
