#include "apps/p2p_game.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "node-runtime/transport/communicator.hpp"
#include "node-runtime/transport/datatype/pack.hpp"

namespace heddle {
namespace {

using p2p::ChannelId;

constexpr double untouched = -1;

std::size_t whole_pages(std::size_t bytes) {
  constexpr std::size_t page_bytes = 4096;
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

/// What arrives in memory of `to` when numbers in memory of `from` are sent.
std::vector<double> image_of(const Datatype& from, const Datatype& to, std::int64_t elements) {
  std::vector<double> source(static_cast<std::size_t>(elements));
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<double>(i + 1);
  std::vector<double> target(source.size(), untouched);
  const PackPlan out = make_plan(from);
  const PackPlan in = make_plan(to);
  const std::int64_t bytes = out.stream_bytes(1);
  std::vector<std::byte> stream(static_cast<std::size_t>(bytes));
  pack(out, 1, reinterpret_cast<const std::byte*>(source.data()), {0, bytes}, stream.data());
  unpack(in, 1, {0, bytes}, stream.data(), reinterpret_cast<std::byte*>(target.data()));
  return target;
}

}  // namespace

/// The other node's memory, open as long as this lives.
class P2pGame::Mapped {
 public:
  Mapped(Device& device, const IpcMemoryHandle& handle)
      : device_(device), memory_(device.open_memory(handle)) {}
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  ~Mapped() { device_.close_memory(memory_); }
  [[nodiscard]] const std::byte* address() const { return memory_.address; }

 private:
  Device& device_;
  DeviceMemory memory_;
};

P2pGame::P2pGame(MPI_Comm communicator, p2p::Endpoint& endpoint, const P2pPlace& place,
                 const P2pShape& shape)
    : communicator_(communicator),
      endpoint_(endpoint),
      device_(place.device),
      locked_by_(place.device != nullptr ? place.device : place.locked_by),
      shape_(shape),
      pages_(whole_pages(static_cast<std::size_t>(shape.elements) * sizeof(double))),
      host_(reinterpret_cast<double*>(pages_.span().data()),
            static_cast<std::size_t>(shape.elements)) {
  check_mpi(MPI_Comm_rank(communicator, &rank_), "MPI_Comm_rank");
  std::ranges::fill(host_, untouched);
  if (locked_by_ != nullptr) {
    locked_by_->register_host(pages_.span().data(), pages_.span().size());
  }
  if (device_ == nullptr) return;
  memory_.emplace(*device_, host_.size() * sizeof(double));
  stream_ = device_->create_stream();
  event_ = device_->create_event();
}

P2pGame::~P2pGame() {
  if (locked_by_ != nullptr) locked_by_->unregister_host(pages_.span().data());
}

void P2pGame::meet() {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibarrier(communicator_, &request), "MPI_Ibarrier");
  for (int is_done = 0; is_done == 0;) {
    endpoint_.progress();
    check_mpi(MPI_Test(&request, &is_done, MPI_STATUS_IGNORE), "MPI_Test");
  }
}

void P2pGame::close() {
  mapped_ = nullptr;
  meet();
  if (memory_) {
    const p2p::Request release = endpoint_.release(memory_->address());
    while (!release.done()) endpoint_.progress();
    static_cast<void>(release.wait());
  }
  meet();
}

void P2pGame::transfer(bool sends) {
  void* const memory = device_ == nullptr ? static_cast<void*>(host_.data()) : memory_->address();
  const NodeId peer{1 - rank_};
  const p2p::Request request =
      sends ? endpoint_.send_at_once({memory, 1, type()}, peer, 0, ChannelId{0})
            : endpoint_.receive_at_once({memory, 1, type()}, {peer, 0, ChannelId{0}});
  while (!request.done()) endpoint_.progress();
  static_cast<void>(request.wait());
}

double P2pGame::play(int rounds) {
  meet();
  const std::int64_t begin = now_ns();
  for (int round = 0; round < rounds; ++round) {
    transfer(rank_ == 0);
    transfer(rank_ == 1);
  }
  return static_cast<double>(now_ns() - begin) * 1e-9 / rounds / 2;
}

void P2pGame::load(const std::vector<double>& image) {
  if (device_ == nullptr) {
    std::ranges::copy(image, host_.begin());
    return;
  }
  stream_->copy({memory_->address(), device_}, {image.data(), nullptr},
                image.size() * sizeof(double));
  stream_->synchronize();
}

std::vector<double> P2pGame::content() const {
  if (device_ == nullptr) return {host_.begin(), host_.end()};
  std::vector<double> found(host_.size());
  stream_->copy({found.data(), nullptr}, {memory_->address(), device_},
                found.size() * sizeof(double));
  stream_->synchronize();
  return found;
}

bool P2pGame::is_right() {
  bool right = true;
  for (const int sender : {0, 1}) {
    std::vector<double> image(host_.size(), untouched);
    for (std::size_t i = 0; i < image.size() && rank_ == sender; ++i) {
      image[i] = static_cast<double>(i + 1);
    }
    load(image);
    meet();
    transfer(rank_ == sender);
    if (rank_ == sender) continue;
    const Datatype& from = rank_ == 0 ? shape_.following : shape_.leading;
    right = right && content() == image_of(from, type(), shape_.elements);
  }
  meet();
  return right;
}

std::string P2pGame::raw_name() const {
  if (device_ == nullptr && !peer_has_device_) return "MPI";
  return device_ != nullptr && peer_has_device_ ? "mapped copy" : "copy from the host";
}

/// This node's device copies what is contiguous, and the host waits for each.
double P2pGame::copies(int rounds) {
  const auto bytes = static_cast<std::size_t>(shape_.bytes());
  const Source source =
      mapped_ != nullptr ? Source{mapped_->address(), device_} : Source{host_.data(), nullptr};
  const std::int64_t begin = now_ns();
  for (int round = 0; round < rounds; ++round) {
    stream_->copy({memory_->address(), device_}, source, bytes);
    stream_->record(*event_);
    while (event_->query() == EventState::pending) {
    }
    if (event_->query() == EventState::failed) event_->synchronize();
  }
  return static_cast<double>(now_ns() - begin) * 1e-9 / rounds;
}

std::optional<double> P2pGame::raw(int rounds) {
  // What the other node has, and a handle of it, once.
  struct Offer {
    std::int64_t has_device = 0;
    IpcMemoryHandle handle;
  };
  if (!std::exchange(was_mapping_tried_, true)) {
    Offer mine{device_ != nullptr ? 1 : 0, {}};
    if (device_ != nullptr) mine.handle = device_->export_memory(memory_->address());
    Offer theirs;
    check_mpi(MPI_Sendrecv(&mine, sizeof mine, MPI_BYTE, 1 - rank_, 0, &theirs, sizeof theirs,
                           MPI_BYTE, 1 - rank_, 0, communicator_, MPI_STATUS_IGNORE),
              "MPI_Sendrecv");
    peer_has_device_ = theirs.has_device != 0;
    if (device_ != nullptr && peer_has_device_) {
      try {
        mapped_ = std::make_unique<Mapped>(*device_, theirs.handle);
      } catch (const Error&) {
        mapped_ = nullptr;  // told below: there is no such figure
      }
    }
  }
  double seconds = 0;
  meet();
  if (device_ == nullptr && !peer_has_device_) {
    const auto bytes = static_cast<int>(shape_.bytes());
    const std::int64_t begin = now_ns();
    for (int message = 0; message < 2 * rounds; ++message) {
      if (message % 2 == rank_) {
        check_mpi(MPI_Send(host_.data(), bytes, MPI_BYTE, 1 - rank_, 0, communicator_), "MPI_Send");
      } else {
        check_mpi(
            MPI_Recv(host_.data(), bytes, MPI_BYTE, 1 - rank_, 0, communicator_, MPI_STATUS_IGNORE),
            "MPI_Recv");
      }
    }
    return static_cast<double>(now_ns() - begin) * 1e-9 / rounds / 2;
  }
  // One after the other.
  for (const int player : {0, 1}) {
    const bool can = device_ != nullptr && (mapped_ != nullptr || !peer_has_device_);
    if (player == rank_ && can) seconds = copies(rounds);
    meet();
  }
  double slowest = 0;
  check_mpi(MPI_Allreduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, communicator_),
            "MPI_Allreduce");
  meet();
  if (slowest == 0) return std::nullopt;
  return slowest;
}

}  // namespace heddle
