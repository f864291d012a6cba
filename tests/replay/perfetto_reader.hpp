#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/replay/protobuf_reader.hpp"

namespace heddle::replay::test {

/// A trace in Perfetto's format, read back with the numbers of its published schema, apart from
/// what writes it. Failures of the test are what trace_processor would stumble over.
class PerfettoTrace {
 public:
  struct Slice {
    std::string track;  ///< "node 0/worker 0", "node 0/mpi/mpi: sends"
    std::string category;
    std::string name;
    std::map<std::string, std::string> arguments;
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::vector<std::uint64_t> flows_out;
    std::vector<std::uint64_t> flows_in;
  };

  explicit PerfettoTrace(std::string bytes);

  [[nodiscard]] const std::vector<Slice>& slices() const { return slices_; }
  /// In the order of the tracks' definition.
  [[nodiscard]] const std::vector<std::string>& tracks() const { return track_order_; }
  /// Of a track, by time.
  [[nodiscard]] std::vector<std::string> names(const std::string& track) const;
  [[nodiscard]] const Slice& at(const std::string& track, std::size_t i = 0) const;
  /// "node 0/ready tasks, host"
  [[nodiscard]] std::vector<std::pair<std::uint64_t, std::int64_t>> values(
      const std::string& track) const;
  /// "name -> name" for each flow, with the nodes they are on: "0 make -> 1 use".
  [[nodiscard]] std::multiset<std::string> flows() const;

 private:
  struct Track {
    std::string path;
    bool is_counter = false;
    std::vector<Slice> open;
    std::uint64_t last = 0;
  };
  struct Sequence {
    bool is_cleared = false;
    std::map<std::uint64_t, std::map<std::uint64_t, std::string>> texts;  ///< by kind and number
  };

  void read_packet(const ProtoReader& packet);
  void read_track(const ProtoReader& track);
  void read_texts(Sequence& sequence, const ProtoReader& data);
  void read_event(const Sequence& sequence, std::uint64_t time, const ProtoReader& event);
  Slice begun(const Sequence& sequence, const Track& track, std::uint64_t time,
              const ProtoReader& event) const;
  void check_ends() const;

  std::string bytes_;
  std::map<std::uint64_t, Track> tracks_;
  std::map<std::uint64_t, Sequence> sequences_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> threads_;  ///< pid and tid
  std::map<std::uint64_t, std::pair<int, int>> ranks_;         ///< last rank by parent
  std::vector<std::string> track_order_;
  std::vector<Slice> slices_;
  std::map<std::string, std::vector<std::pair<std::uint64_t, std::int64_t>>> values_;
};

}  // namespace heddle::replay::test
