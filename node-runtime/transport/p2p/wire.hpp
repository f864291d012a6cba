#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/index.hpp"

namespace heddle::p2p {

/// A stream of bytes from one node to another, named by its receiver.
using FlowId = Index<struct FlowTag, std::int32_t>;

/// Names an operation of a wire when it is complete.
using OperationId = Index<struct OperationTag, std::int64_t>;

/// Carries notes between endpoints of different nodes, and bytes between places in host
/// memory that both sides have agreed on. MPI is one; tests have another, which delays.
///
/// Thread: one, the progress thread.
class Wire {
 public:
  /// Longest note.
  static constexpr std::size_t note_bytes_max = std::size_t{16} << 10U;
  /// Longest piece of send_bytes().
  static constexpr std::int64_t piece_bytes_max = std::int64_t{1} << 30U;

  /// Its bytes are there until the next poll().
  struct Note {
    NodeId from;
    std::span<const std::byte> bytes;
  };
  /// What has happened since the last poll().
  struct Events {
    std::vector<Note> notes;  ///< notes of one node are in the order in which it sent them
    std::vector<OperationId> complete;
    std::vector<OperationId> blank;  ///< receives that an empty piece has completed
    std::vector<NodeId> lost;        ///< no message from or to these nodes arrives any more
    [[nodiscard]] bool empty() const {
      return notes.empty() && complete.empty() && blank.empty() && lost.empty();
    }
    void clear() {
      notes.clear();
      complete.clear();
      blank.clear();
      lost.clear();
    }
  };

  Wire() = default;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  virtual ~Wire() = default;

  [[nodiscard]] virtual NodeId node() const = 0;
  [[nodiscard]] virtual std::int32_t nodes() const = 0;

  /// Both nodes are on one host, so that their devices may map each other's memory.
  [[nodiscard]] virtual bool shares_host(NodeId other) const = 0;
  /// Host memory of this node that other nodes of the host map too, whole pages; empty: none.
  [[nodiscard]] virtual std::span<std::byte> window() const = 0;
  /// The window of another node or of this one, mapped into this process; empty where the two nodes
  /// do not map each other's memory.
  /// A node that reads a note sees what its sender wrote there before.
  [[nodiscard]] virtual std::span<std::byte> window_of(NodeId node) const = 0;

  /// This node's processor can read memory of that node's process, or of its own.
  [[nodiscard]] virtual bool reads(NodeId node) const = 0;
  /// Reads memory at `address` of that node's process. Throws Error(communication) when the system
  /// refuses or the address is not mapped.
  virtual void read(NodeId from, std::uint64_t address, std::span<std::byte> into) = 0;

  /// Room for a note of at most note_bytes_max bytes to a node, this very one too, aligned for
  /// numbers; to be filled in and sent before anything else is asked of the wire.
  [[nodiscard]] virtual std::span<std::byte> begin_note(NodeId to, std::size_t bytes) = 0;
  virtual void send_note() = 0;
  /// That node, stopped perhaps, reads so late that more notes to it would wait in this process's
  /// memory. Who can do without a note then does.
  [[nodiscard]] virtual bool is_behind(NodeId to) const = 0;

  /// Sends up to piece_bytes_max bytes, which stay as they are until `id` is complete. What is sent
  /// to one flow arrives in order, each piece in the receive_bytes() of its number, which has its
  /// size. An empty piece ends a receive of any size, as Events::blank.
  virtual void send_bytes(NodeId to, FlowId flow, std::span<const std::byte> bytes,
                          OperationId id) = 0;
  virtual void receive_bytes(NodeId from, FlowId flow, std::span<std::byte> into,
                             OperationId id) = 0;

  /// Adds what has happened. Never blocks. Operations with a node that has been reported as lost
  /// are not completed any more, and their memory is not touched.
  virtual void poll(Events& events) = 0;
};

}  // namespace heddle::p2p
