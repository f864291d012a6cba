#pragma once

#include <cstdint>

#include "node-runtime/device/device.hpp"
#include "node-runtime/threads/engine.hpp"

/// The named loops of a node's threads. Each runs until the engine stops, and reads top to bottom:
/// take work, do it, publish, wait. Errors end the node (Engine::fail), never the thread silently.
namespace heddle {

/// Walks the programs of submitted jobs and APPENDs their tasks.
void generation_loop(Engine& engine, trace::ThreadTrace& trace);

/// Runs ready tasks of the host, as a whole or as fine tasks beside the other workers. `worker`:
/// its number, from 0.
void cpu_worker_loop(Engine& engine, std::int32_t worker, trace::ThreadTrace& trace);

/// Keeps kernels in flight on one device (001 section 5.2).
void device_manager_loop(Engine& engine, std::int32_t device, trace::ThreadTrace& trace);

/// Moves tiles between the host and the devices: an in and an out mailbox and stream for each (001
/// section 5.3).
void copy_loop(Engine& engine, trace::ThreadTrace& trace);

}  // namespace heddle
