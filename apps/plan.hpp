#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/method.hpp"
#include "apps/problem.hpp"
#include "base/error.hpp"
#include "config/config.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_facts.hpp"

namespace heddle {

/// The work and memory of a run, determined before anything of the problem's size is allocated.
class Plan {
 public:
  /// Collective. Throws AgreedError(usage) on all nodes, with the numbers, if a node's memory does
  /// not suffice.
  /// `device_note`: what is to be said of the devices.
  Plan(Node& node, const Problem& problem, Method& method, const Config& config,
       std::string device_note);

  /// Tasks of this node in the phases beside the factorization: what they read and write by tiles,
  /// and their jobs.
  struct Tasks {
    double reading = 0;
    double solution = 0;
    double verification = 0;
    double writing = 0;
  };
  [[nodiscard]] const Tasks& tasks() const { return phase_tasks_; }

  /// What to take of a device's memory: what was counted, and a bounded share for what was not,
  /// warming up and the rate of DGEMM.
  [[nodiscard]] std::uint64_t device_budget(PlaceId place) const;
  /// That share, of the device that has the least.
  [[nodiscard]] std::uint64_t device_spare() const;

  /// For a terminal of 80 columns; ends with a line break.
  [[nodiscard]] std::string text() const;

 private:
  /// Bytes at a place of this node.
  struct Bytes {
    double matrix = 0;
    double copy = 0;       ///< for the verification
    double sides = 0;      ///< solution, and right-hand sides for the verification
    double pools = 0;      ///< tiles in transfer, of the job with the most
    double pools_min = 0;  ///< minimum for jobs to advance
    double file = 0;       ///< content of a text file in memory
    double staging = 0;    ///< host: workers' copies of device tiles
    double backing = 0;    ///< host: backings of out-of-core devices' tiles
    double available = 0;
    std::size_t largest = 0;  ///< largest tile with a block here
    /// Largest range of columns of a tile here that passes through a worker's memory.
    std::size_t range = 0;

    [[nodiscard]] double total() const {
      return matrix + copy + sides + pools + file + staging + backing;
    }
    [[nodiscard]] bool fits() const { return total() <= available; }
    [[nodiscard]] double& of(Undertaking::Use use) {
      if (use == Undertaking::Use::matrix) return matrix;
      return use == Undertaking::Use::copy ? copy : sides;
    }
    /// Reduces tiles in transfer to the available room, but not below the minimum.
    void shrink_pools() {
      if (!fits()) pools = std::max(pools_min, available - (total() - pools));
    }
  };

  void check_total(Node& node) const;
  [[nodiscard]] std::optional<Error> trouble_with_tiles(Node& node,
                                                        const Undertaking& undertaking) const;
  [[nodiscard]] bool count(Node& node, Undertaking& undertaking);
  void count_tiles(const Undertaking::Held& held, bool is_input);
  void find_idle_nodes(const Matrix<double>& matrix);
  void plan_jobs(Node& node, Undertaking& undertaking);
  void plan_staging();
  void plan_out_of_core();
  [[nodiscard]] std::optional<Error> trouble_at(std::size_t place) const;
  void check_places(Node& node) const;
  [[nodiscard]] std::string_view copy_name() const;
  [[nodiscard]] std::string memory_rows() const;
  [[nodiscard]] std::string idle_text() const;

  std::string device_note_;
  const Problem& problem_;
  const Config& config_;
  Method& method_;
  NodeFacts facts_;
  std::vector<Bytes> bytes_;       ///< by place
  std::vector<std::string> idle_;  ///< nodes without a tile of the matrix
  std::int64_t tiles_ = 0;         ///< stored tiles of the matrix, on all nodes
  double tasks_min_ = 0;           ///< lower bound of a node's tasks
  double tasks_max_ = 0;
  Tasks phase_tasks_;
  bool is_out_of_core_ = false;
};

}  // namespace heddle
