#pragma once

#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "node-runtime/collectives/schedule/places.hpp"
#include "node-runtime/device/devices.hpp"
#include "node-runtime/machine/prepare.hpp"
#include "node-runtime/memory/tile_store.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/node_faults.hpp"
#include "node-runtime/progress/mpi_progress.hpp"
#include "node-runtime/threads/engine.hpp"
#include "node-runtime/topology/core_share.hpp"
#include "node-runtime/topology/cpu.hpp"
#include "node-runtime/trace/recorder.hpp"
#include "node-runtime/transport/communicator.hpp"
#include "node-runtime/transport/local_messages.hpp"
#include "node-runtime/transport/message_explanations.hpp"
#include "node-runtime/wanted_devices.hpp"

namespace heddle {

namespace collectives {
class GroupCore;
class OperationTrace;
}  // namespace collectives

/// What a node is made of, and how it comes about: nodes agree, each decides on its cores and
/// devices, and its threads start. Node's own.
struct Node::Parts {
  Parts(const Config& node_config, Communicator communicator_in)
      : config(node_config),
        communicator(std::move(communicator_in)),
        topology(CpuTopology::detect()),
        recorder({.node = NodeId{communicator.rank()},
                  .node_count = communicator.size(),
                  .enabled = config.trace.file.has_value()}) {}

  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  ~Parts();

  void agree_on_configuration();
  void share_cores_of_host();
  void decide();
  void decide_on_devices(const MachineProfile& profile);
  void agree_on_shape();
  void agree_on_tuning();
  void agree_on_places();
  void make_transport(std::span<Device* const> device_pointers);
  [[nodiscard]] std::size_t program_device_bytes() const;
  [[nodiscard]] std::shared_ptr<UserMessages> user_messages();
  [[nodiscard]] std::shared_ptr<collectives::GroupCore> make_world();
  // Node's own operations (node_groups.cpp).
  [[nodiscard]] std::shared_ptr<collectives::GroupCore> make_own_group();
  void act_together(const std::function<void(const Group&)>& operation);
  void all_reduce(std::span<double> values, Reduction reduction);
  void barrier();
  [[nodiscard]] std::vector<Device*> device_pointers() const;
  void start();
  void make_engine(const std::vector<Device*>& device_pointers, std::span<const CpuCore> cores);
  /// `cores`: own_cores().
  [[nodiscard]] EngineOptions engine_options(const std::vector<Device*>& device_pointers,
                                             std::span<const CpuCore> cores) const;
  void start_threads(const std::vector<CpuCore>& cores);
  void start_progress(std::shared_future<bool> may_begin);
  void start_together(const std::vector<Device*>& device_pointers);
  void count_memory_limit();
  [[nodiscard]] std::int64_t computing_threads() const;
  void set_message_memory_aside();
  /// The collective end (Node::stop).
  void stop_together();
  void stop_threads();
  void launch(const std::string& name, std::vector<CpuCore> cores, int order,
              std::function<void(trace::ThreadTrace&)> loop);
  [[nodiscard]] std::vector<CpuCore> own_cores() const;

  Config config;
  Communicator communicator;
  CpuTopology topology;
  CoreShare core_share;
  GpuNeighbours gpu_neighbours;
  std::vector<CpuCore> cores_of_others;  ///< of threads beside the workers; once started
  NodeFacts facts;
  DeviceSet devices;
  std::optional<collectives::Places> places;  ///< of all nodes; once they have agreed
  trace::Recorder recorder;
  MessageExplanations explanations;
  std::unique_ptr<TileTransport> tiles;  ///< before the store, which takes all memory of devices
  std::unique_ptr<LocalMessages> local_messages;             ///< of a single node; likewise
  std::mutex local_messages_mutex;                           ///< making it
  std::shared_ptr<collectives::OperationTrace> group_trace;  ///< null: none is written
  std::shared_ptr<collectives::GroupCore> world;             ///< null: nobody has asked for it
  std::shared_ptr<collectives::GroupCore> own_group;  ///< null: likewise, of Node's operations
  std::mutex own_operation_mutex;                     ///< of the thread that is in one
  std::unique_ptr<TileStore> store;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<MpiProgress> progress;
  std::vector<std::thread> threads;
  NodeFaults faults;
  trace::ClockOffset clock;
  const int exceptions_at_start = std::uncaught_exceptions();
};

}  // namespace heddle
