# Installs into a prefix of its own, then configures, builds and runs an outside project that finds
# heddle there. Called by CTest with: build, project, guide, scratch, compiler, generator,
# mpiexec.
cmake_minimum_required(VERSION 3.25)

# step(WHAT COMMAND...): runs it; a failure ends the test with the command's whole output.
function(step what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed (${status}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
  message(STATUS "${what}: passed")
endfunction()

file(REMOVE_RECURSE "${scratch}")
set(prefix "${scratch}/prefix")
step("installing" ${CMAKE_COMMAND} --install "${build}" --prefix "${prefix}")

# A moved installation works too: nothing of it may remember where it was.
file(RENAME "${prefix}" "${scratch}/moved")
set(prefix "${scratch}/moved")

step("the installed program" "${prefix}/bin/heddle" --version)
step("an installed preset" "${prefix}/bin/heddle" solve "${prefix}/share/heddle/presets/generated.yaml"
     --set problem.matrix.n=200 --set problem.matrix.m=200 --set runtime.cpu_workers=1)
if(NOT output MATCHES "solved")
  message(FATAL_ERROR "the preset was not solved:\n${output}")
endif()

# The user guide's first program is what is printed there.
file(READ "${guide}" text)
string(REGEX MATCH "\n## The library\n\n```cpp\n(.*)" section "${text}")
string(FIND "${CMAKE_MATCH_1}" "```" end)
string(SUBSTRING "${CMAKE_MATCH_1}" 0 ${end} text)
file(WRITE "${scratch}/guide.cpp" "${text}")

step("configuring the outside project" ${CMAKE_COMMAND} -S "${project}" -B "${scratch}/outside"
     -G "${generator}" "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_CXX_COMPILER=${compiler}"
     "-Dguide=${scratch}/guide.cpp")
step("building it" ${CMAKE_COMMAND} --build "${scratch}/outside")
step("running it" "${scratch}/outside/outside")
step("running it on two nodes" "${mpiexec}" -n 2 "${scratch}/outside/outside")
step("running the guide's program" "${scratch}/outside/guide")
if(NOT output MATCHES "log det A = -?[0-9]")
  message(FATAL_ERROR "the guide's program printed:\n${output}")
endif()
file(REMOVE_RECURSE "${scratch}")
