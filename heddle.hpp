#pragma once

/// All that a program on the library needs: the node, matrices and jobs; Cholesky and the solves
/// with it, QR; norms, determinants, files and traces; walks for tile algorithms of one's own.
/// `find_package(heddle)` and the target heddle::heddle bring it along; apps/examples show how to
/// use it.

#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/io/agreement.hpp"
#include "algorithms/io/distributed_read.hpp"
#include "algorithms/io/distributed_write.hpp"
#include "algorithms/io/trace_file.hpp"
#include "algorithms/matrix/generators.hpp"
#include "algorithms/matrix/matrix_file.hpp"
#include "algorithms/qr/layout.hpp"
#include "algorithms/qr/measures.hpp"
#include "algorithms/qr/qr.hpp"
#include "algorithms/reductions/measures.hpp"
#include "algorithms/solve/products.hpp"
#include "algorithms/solve/triangular.hpp"
#include "algorithms/walk/job.hpp"
#include "algorithms/walk/tile_walk.hpp"
#include "base/error.hpp"
#include "config/config.hpp"
#include "node-runtime/messages.hpp"
#include "node-runtime/node.hpp"
