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

# MPICH by name: other packages may have made Open MPI the system's default.
find_program(HEDDLE_MPICXX NAMES mpicxx.mpich REQUIRED)
find_program(HEDDLE_MPIEXEC NAMES mpiexec.mpich mpiexec.hydra REQUIRED)
execute_process(COMMAND ${HEDDLE_MPICXX} -compile_info OUTPUT_VARIABLE mpi_compile
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${HEDDLE_MPICXX} -link_info OUTPUT_VARIABLE mpi_link
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "-I[^ ]+" mpi_includes "${mpi_compile}")
list(TRANSFORM mpi_includes REPLACE "^-I" "")
string(REGEX MATCHALL "-L[^ ]+" mpi_directories "${mpi_link}")
list(TRANSFORM mpi_directories REPLACE "^-L" "")
find_library(HEDDLE_MPI_LIBRARY NAMES mpich PATHS ${mpi_directories} REQUIRED)
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

if(HEDDLE_TESTS)
  find_package(GTest REQUIRED)
endif()
if(HEDDLE_BENCHMARKS)
  find_package(benchmark REQUIRED)
  # The peers of bench/peers: each is optional, and its absence is reported there.
  find_package(OpenMP COMPONENTS CXX)
  find_library(HEDDLE_SCALAPACK_LIBRARY NAMES scalapack-mpich)
  pkg_check_modules(STARPU IMPORTED_TARGET starpu-1.3)
endif()
