# Every outside library the project uses; why each is there: docs/decisions/002-dependencies.md.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)

# MPICH or one of its family (MVAPICH, Intel MPI, Cray MPICH), by its compiler wrapper. Debian's is looked for by a name of
# its own, as other packages may have made Open MPI the system's default.
find_program(HEDDLE_MPICXX NAMES mpicxx.mpich mpicxx)
if(NOT HEDDLE_MPICXX)
  message(FATAL_ERROR "there is no mpicxx.mpich or mpicxx in the PATH; install MPICH (on Debian libmpich-dev), or name "
                      "another MPI's wrapper: -DHEDDLE_MPICXX=/path/to/mpicxx")
endif()
foreach(part compile link)
  execute_process(COMMAND ${HEDDLE_MPICXX} -${part}_info OUTPUT_VARIABLE mpi_${part} ERROR_VARIABLE mpi_trouble
                  RESULT_VARIABLE mpi_status OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT mpi_status EQUAL 0)
    message(FATAL_ERROR "'${HEDDLE_MPICXX} -${part}_info' failed, so this wrapper is not one of MPICH's family; heddle "
                        "does not work with Open MPI. Name an MPICH, MVAPICH, Intel MPI or Cray MPICH wrapper: "
                        "-DHEDDLE_MPICXX=/path/to/mpicxx. The wrapper said: ${mpi_trouble}")
  endif()
endforeach()
string(REGEX MATCHALL "-I[^ ]+" mpi_includes "${mpi_compile}")
list(TRANSFORM mpi_includes REPLACE "^-I" "")
string(REGEX MATCHALL "-L[^ ]+" mpi_directories "${mpi_link}")
list(TRANSFORM mpi_directories REPLACE "^-L" "")
# Of the libraries that it links, the one of MPI's C interface: mpich, mpi, mpi_gnu_123, not mpichcxx or mpifort.
string(REGEX MATCHALL "-l(mpich|mpi|mpi_[a-z0-9_]+)( |$)" mpi_names "${mpi_link}")
list(TRANSFORM mpi_names REPLACE "^-l| $" "")
find_library(HEDDLE_MPI_LIBRARY NAMES ${mpi_names} HINTS ${mpi_directories})
if(NOT HEDDLE_MPI_LIBRARY)
  message(FATAL_ERROR "no MPI library '${mpi_names}' in '${mpi_directories}', which '${HEDDLE_MPICXX} -link_info' names; "
                      "name the file: -DHEDDLE_MPI_LIBRARY=/path/to/libmpi.so")
endif()
get_filename_component(mpi_programs "${HEDDLE_MPICXX}" DIRECTORY)
find_program(HEDDLE_MPIEXEC NAMES mpiexec.mpich mpiexec.hydra mpiexec NAMES_PER_DIR HINTS "${mpi_programs}" REQUIRED)
message(STATUS "MPI: ${HEDDLE_MPI_LIBRARY}, started by ${HEDDLE_MPIEXEC}")
add_library(heddle_mpi INTERFACE)
target_include_directories(heddle_mpi SYSTEM INTERFACE ${mpi_includes})
target_link_libraries(heddle_mpi INTERFACE "${HEDDLE_MPI_LIBRARY}")
# The C++ bindings of MPI-2 would drag a second library into every link.
target_compile_definitions(heddle_mpi INTERFACE MPICH_SKIP_MPICXX OMPI_SKIP_MPICXX)

find_path(HEDDLE_LAPACKE_INCLUDE lapacke.h REQUIRED)
find_path(HEDDLE_CBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas x86_64-linux-gnu/openblas-pthread
          REQUIRED)
find_library(HEDDLE_OPENBLAS_LIBRARY NAMES openblas PATH_SUFFIXES openblas-pthread REQUIRED)
add_library(heddle_blas INTERFACE)
target_include_directories(heddle_blas SYSTEM INTERFACE "${HEDDLE_LAPACKE_INCLUDE}" "${HEDDLE_CBLAS_INCLUDE}")
target_link_libraries(heddle_blas INTERFACE "${HEDDLE_OPENBLAS_LIBRARY}")

# The serial SCOTCH, which maps traffic onto GPUs (docs/decisions/046-mapping-onto-gpus.md); PT-SCOTCH, of the same source,
# would bring MPI along.
find_path(HEDDLE_SCOTCH_INCLUDE scotch.h PATH_SUFFIXES scotch REQUIRED)
find_library(HEDDLE_SCOTCH_LIBRARY NAMES scotch REQUIRED)
find_library(HEDDLE_SCOTCH_ERROR_LIBRARY NAMES scotcherr REQUIRED)

if(HEDDLE_TESTS)
  find_package(GTest REQUIRED)
endif()
if(HEDDLE_BENCHMARKS)
  # The peers of bench/peers: each is optional, and its absence is reported there.
  find_package(OpenMP COMPONENTS CXX)
  find_library(HEDDLE_SCALAPACK_LIBRARY NAMES scalapack-mpich)
  pkg_check_modules(STARPU IMPORTED_TARGET starpu-1.3)
endif()
