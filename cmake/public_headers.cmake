# The library's interface (docs/decisions/030-public-headers.md): what is installed. The test public_headers compares
# it with what the compiler reads.
#
# What heddle.hpp brings along: few lines, and of other libraries none but the standard's.
set(heddle_main_headers
    algorithms/cholesky/cholesky.hpp
    algorithms/io/files.hpp
    algorithms/qr/qr.hpp
    algorithms/reductions/measures.hpp
    algorithms/solve/solve.hpp
    base/error.hpp
    base/index.hpp
    config/config.hpp
    heddle.hpp
    kernels/kernel.hpp
    layout/layout.hpp
    node-runtime/matrix.hpp
    node-runtime/node.hpp
    node-runtime/tasks.hpp
    node-runtime/transport/reduction.hpp)
# What programs include beside it.
set(heddle_further_headers
    algorithms/io/trace_file.hpp
    algorithms/matrix/generators.hpp
    algorithms/walk/tile_walk.hpp
    base/standard_streams.hpp
    config/config_error.hpp
    node-runtime/collectives/group.hpp
    node-runtime/collectives/reduce/own_operations.hpp
    node-runtime/messages.hpp
    node-runtime/node_facts.hpp)
# What these include.
set(heddle_included_headers
    algorithms/matrix/source.hpp
    algorithms/walk/job.hpp
    algorithms/walk/own_part.hpp
    base/assert.hpp
    kernels/cuda/product_choice.hpp
    kernels/kernels.hpp
    node-runtime/collectives/exchange.hpp
    node-runtime/collectives/options.hpp
    node-runtime/collectives/reduce/definition.hpp
    node-runtime/collectives/reduce/host_device.hpp
    node-runtime/collectives/reduce/pair_loop.hpp
    node-runtime/collectives/reduce/reduce_operation.hpp
    node-runtime/collectives/reduce/rows.hpp
    node-runtime/collectives/schedule/copies.hpp
    node-runtime/collectives/schedule/order.hpp
    node-runtime/machine/host.hpp
    node-runtime/machine/kernel_sets.hpp
    node-runtime/machine/machine_file.hpp
    node-runtime/machine/measurements.hpp
    node-runtime/threads/program.hpp
    node-runtime/threads/tile_part.hpp
    node-runtime/transport/datatype/datatype.hpp
    node-runtime/transport/datatype/scalar.hpp)
# And these only in sources that nvcc compiles.
set(heddle_cuda_headers
    node-runtime/collectives/reduce/cuda_form.hpp
    node-runtime/collectives/reduce/unit_reduction.hpp)
