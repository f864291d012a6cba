#include "apps/p2p_game.hpp"

#include <algorithm>
#include <deque>
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

/// Expected content of memory of type `to` after receiving numbers sent as type `from`.
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

/// RAII mapping of the other node's memory.
class P2pGame::Mapped {
 public:
  Mapped(Device& device, const IpcMemoryHandle& handle)
      : device_(device), memory_(device.open_memory(handle)) {}
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  ~Mapped() { device_.close_memory(memory_); }
  [[nodiscard]] std::byte* address() const { return memory_.address; }

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
  void* memory = host_.data();
  if (device_ != nullptr) {
    memory_.emplace(*device_, host_.size() * sizeof(double));
    memory = memory_->address();
    stream_ = device_->create_stream();
  }
  outgoing_ = {memory, 1, type()};
  incoming_ = {memory, 1, type()};
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

p2p::Request P2pGame::begin(bool sends) {
  const NodeId peer{1 - rank_};
  return sends ? endpoint_.send_at_once(outgoing_, peer, 0, ChannelId{0})
               : endpoint_.receive_at_once(incoming_, {peer, 0, ChannelId{0}});
}

void P2pGame::finish(const p2p::Request& request) {
  while (!request.done()) endpoint_.progress();
  path_ = request.wait().path;
}

void P2pGame::transfer(bool sends) {
  finish(begin(sends));
}

double P2pGame::play(int rounds) {
  meet();
  transfer(rank_ == 0);  // warms the caches
  transfer(rank_ == 1);
  const std::int64_t begin = now_ns();
  for (int round = 0; round < rounds; ++round) {
    transfer(rank_ == 0);
    transfer(rank_ == 1);
  }
  return static_cast<double>(now_ns() - begin) * 1e-9 / rounds / 2;
}

/// Mean over both directions of `half(sends)`, on the slower node.
template <class Half>
double P2pGame::both_ways(const Half& half) {
  double sum = 0;
  for (const int sender : {0, 1}) {
    meet();
    const std::int64_t begin = now_ns();
    half(rank_ == sender);
    double seconds = static_cast<double>(now_ns() - begin) * 1e-9;
    meet();
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, communicator_),
              "MPI_Allreduce");
    sum += seconds;
  }
  return sum / 2;
}

double P2pGame::stream(int messages, int window) {
  return both_ways([&](bool sends) {
           std::deque<p2p::Request> under_way;
           for (int message = 0; message < messages + window; ++message) {
             if (message >= window) {
               finish(under_way.front());
               under_way.pop_front();
             }
             if (message < messages) under_way.push_back(begin(sends));
           }
         }) /
         messages;
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

/// Contiguous copies by this node's device; the host waits for each.
void P2pGame::copies(int copies, int window, bool to_and_fro) {
  const auto bytes = static_cast<std::size_t>(shape_.bytes());
  const bool is_mapped = mapped_ != nullptr;
  while (events_.size() < static_cast<std::size_t>(window)) {
    events_.push_back(device_->create_event(EventTiming::off));
  }
  const auto event = [&](int copy) -> Event& {
    return *events_[static_cast<std::size_t>(copy % window)];
  };
  for (int copy = 0; copy < copies + window; ++copy) {
    if (copy >= window) {
      while (event(copy).query() == EventState::pending) {
      }
      if (event(copy).query() == EventState::failed) event(copy).synchronize();
    }
    if (copy >= copies) continue;
    if (is_mapped && to_and_fro && copy % 2 == 1) {
      stream_->copy({mapped_->address(), device_}, {memory_->address(), device_}, bytes);
    } else {
      const Source source =
          is_mapped ? Source{mapped_->address(), device_} : Source{host_.data(), nullptr};
      stream_->copy({memory_->address(), device_}, source, bytes);
    }
    stream_->record(event(copy));
  }
}

void P2pGame::messages_of_mpi(bool sends, int messages, int window) {
  const auto bytes = static_cast<int>(shape_.bytes());
  std::vector<MPI_Request> requests;
  for (int message = 0; message < messages; ++message) {
    requests.push_back(MPI_REQUEST_NULL);
    check_mpi(sends ? MPI_Isend(host_.data(), bytes, MPI_BYTE, 1 - rank_, 0, communicator_,
                                &requests.back())
                    : MPI_Irecv(host_.data(), bytes, MPI_BYTE, 1 - rank_, 0, communicator_,
                                &requests.back()),
              "messages of MPI");
    if (requests.size() < static_cast<std::size_t>(window) && message + 1 < messages) continue;
    check_mpi(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE),
              "MPI_Waitall");
    requests.clear();
  }
}

/// Exchanges memory handles and maps the other node's memory, once.
void P2pGame::map() {
  struct Offer {
    std::int64_t has_device = 0;
    IpcMemoryHandle handle;
  };
  if (std::exchange(was_mapping_tried_, true)) return;
  Offer mine{device_ != nullptr ? 1 : 0, {}};
  if (device_ != nullptr) mine.handle = device_->export_memory(memory_->address());
  Offer theirs;
  check_mpi(MPI_Sendrecv(&mine, sizeof mine, MPI_BYTE, 1 - rank_, 0, &theirs, sizeof theirs,
                         MPI_BYTE, 1 - rank_, 0, communicator_, MPI_STATUS_IGNORE),
            "MPI_Sendrecv");
  peer_has_device_ = theirs.has_device != 0;
  if (device_ == nullptr || !peer_has_device_) return;
  try {
    mapped_ = std::make_unique<Mapped>(*device_, theirs.handle);
  } catch (const Error&) {
    mapped_ = nullptr;  // null: the caller reports no raw figure
  }
}

std::optional<double> P2pGame::raw(int rounds) {
  map();
  if (is_between_hosts()) {
    meet();
    for (const int sender : {0, 1}) messages_of_mpi(rank_ == sender, 1, 1);  // as in play()
    const std::int64_t begin = now_ns();
    for (int message = 0; message < 2 * rounds; ++message) {
      messages_of_mpi(message % 2 == rank_, 1, 1);
    }
    return static_cast<double>(now_ns() - begin) * 1e-9 / rounds / 2;
  }
  return raw_copies(2 * rounds, 1, true);
}

std::optional<double> P2pGame::raw_stream(int messages, int window) {
  map();
  if (is_between_hosts()) {
    return both_ways([&](bool sends) { messages_of_mpi(sends, messages, window); }) / messages;
  }
  return raw_copies(messages, window, false);
}

/// Measured on both nodes in turn; each result is the slower node's.
std::optional<double> P2pGame::raw_copies(int copies, int window, bool to_and_fro) {
  double seconds = 0;
  meet();
  for (const int player : {0, 1}) {
    const bool can = device_ != nullptr && (mapped_ != nullptr || !peer_has_device_);
    if (player == rank_ && can) {
      const std::int64_t begin = now_ns();
      this->copies(copies, window, to_and_fro);
      seconds = static_cast<double>(now_ns() - begin) * 1e-9 / copies;
    }
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
