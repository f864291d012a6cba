#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "kernels/kernel_case.hpp"
#include "node-runtime/fine/fine_graph.hpp"
#include "node-runtime/threads/divided_cases.hpp"

namespace heddle {

/// A case, and the rows and columns of the parts that it is divided into; 0: it is run whole.
struct CutCase {
  CaseKey of;
  std::int64_t small = 0;

  friend bool operator==(const CutCase&, const CutCase&) = default;
  struct Hash {
    std::size_t operator()(const CutCase& key) const {
      return CaseKey::Hash{}(key.of) ^ static_cast<std::size_t>(key.small) * 0x9E3779B97F4A7C15U;
    }
  };
};

/// The fine-grain forms of all tasks so far: a few for a job, as most of its tiles have one shape.
/// Any thread.
class FineGraphs {
 public:
  /// The graph of a kernel on tiles of these shapes, with parts of `small`; made when it is asked
  /// for the first time, which allocates, and kept. Valid as long as this object.
  const FineGraph& of(const KernelCase& what, std::int64_t small);
  /// Makes the graphs of a job's tasks, so that it makes none while it runs: of those of its host,
  /// and of devices' those that `may_come` there. The number of fine tasks of the largest one; 0:
  /// nothing is to be divided.
  std::int32_t prepare(const DividedCases& cases, std::int64_t small,
                       const std::function<bool(const KernelCase&, PlaceId)>& may_come);
  /// Graphs made so far.
  [[nodiscard]] std::size_t count();

 private:
  std::mutex mutex_;
  std::unordered_map<CutCase, std::unique_ptr<const FineGraph>, CutCase::Hash> graphs_;
};

}  // namespace heddle
