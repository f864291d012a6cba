#pragma once

/// What a program on the library includes: the node, matrices, jobs and streams of tasks; Cholesky
/// and QR with the solves; norms, determinants, files and traces. `find_package(heddle)` and the
/// target heddle::heddle bring it along; apps/examples show how to use it.
///
/// Beside it, for those who need them:
///   algorithms/walk/tile_walk.hpp     tile algorithms of one's own (TileWalk, TaskStream, job_of)
///   algorithms/matrix/generators.hpp  what generate() takes (GeneratorOptions)
///   algorithms/io/trace_file.hpp      traces of runs
///   node-runtime/collectives/group.hpp   all nodes, or some, act together on memory (Node::group)
///   node-runtime/messages.hpp         a program's own messages between its nodes
///   node-runtime/node_facts.hpp       all that a node decided (Node::facts)
///   base/standard_streams.hpp         open_standard_streams(), for main()

#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/io/files.hpp"
#include "algorithms/qr/qr.hpp"
#include "algorithms/reductions/measures.hpp"
#include "algorithms/solve/solve.hpp"
#include "node-runtime/node.hpp"
