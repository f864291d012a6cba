#include "node-runtime/transport/communicator.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fmt/core.h>
#include <sched.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "base/clock.hpp"
#include "base/waking_time.hpp"

namespace heddle {
namespace {

/// The tag of messages between two nodes; no other message of the communicator has it.
constexpr int pair_tag = 7;
/// How long a waiting thread polls before it rests between polls.
constexpr std::int64_t alert_ns = 2'000'000;
constexpr std::chrono::microseconds quiet_interval{100};

/// Pause between two polls of an operation that began at `begin_ns`. MPI has no wait with a time
/// limit, so such a wait polls; and the other node may need this core.
void step_aside(std::int64_t begin_ns) {
  if (now_ns() - begin_ns < alert_ns) {
    ::sched_yield();
  } else {
    std::this_thread::sleep_for(quiet_interval);
  }
}

}  // namespace

void check_mpi(int status, const char* operation) {
  if (status == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  throw Error(ErrorCode::communication, fmt::format("{} failed: {}", operation, text.data()));
}

void complete(MPI_Request request, const char* operation) {
  const std::int64_t begin = now_ns();
  for (;;) {
    int done = 0;
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), operation);
    if (done != 0) return;
    step_aside(begin);
  }
}

void all_gather(std::span<const std::byte> mine, std::span<std::byte> all, MPI_Comm communicator,
                const char* operation) {
  const int bytes = static_cast<int>(mine.size());
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Iallgather(mine.data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, communicator,
                           &request),
            operation);
  complete(request, operation);
}

MPI_Comm duplicate(MPI_Comm communicator) {
  MPI_Comm result = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Comm_idup(communicator, &result, &request), "MPI_Comm_idup");
  complete(request, "MPI_Comm_idup");
  return result;
}

Communicator::Communicator(MPI_Comm parent) {
  int provided = MPI_THREAD_SINGLE;
  check_mpi(MPI_Query_thread(&provided), "MPI_Query_thread");
  if (provided < MPI_THREAD_SERIALIZED) {
    throw Error(ErrorCode::usage,
                "MPI was initialised with too little thread support: call MPI_Init_thread with "
                "MPI_THREAD_SERIALIZED or more");
  }
  headers_ = duplicate(parent);
  collectives_ = duplicate(parent);
  for (MPI_Comm comm : {headers_, collectives_}) {
    check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  }
  check_mpi(MPI_Comm_rank(headers_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(headers_, &size_), "MPI_Comm_size");

  struct Identity {
    std::int32_t process;
    std::array<char, 60> host;
  };
  Identity mine{static_cast<std::int32_t>(::getpid()), {}};
  ::gethostname(mine.host.data(), mine.host.size() - 1);
  std::vector<Identity> all(static_cast<std::size_t>(size_));
  heddle::all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)),
                     collectives_, "introducing the nodes");
  local_size_ = 0;
  for (int r = 0; r < size_; ++r) {
    const Identity& other = all[static_cast<std::size_t>(r)];
    const bool here = std::strcmp(other.host.data(), mine.host.data()) == 0;
    if (r == rank_) local_rank_ = local_size_;
    local_size_ += here ? 1 : 0;
    local_processes_.push_back(here ? other.process : 0);
    hosts_.emplace_back(other.host.data());
  }
}

Communicator::Communicator(Communicator&& other) noexcept
    : rank_(other.rank_),
      size_(other.size_),
      local_rank_(other.local_rank_),
      local_size_(other.local_size_),
      abandoned_(other.abandoned_),
      headers_(std::exchange(other.headers_, MPI_COMM_NULL)),
      collectives_(std::exchange(other.collectives_, MPI_COMM_NULL)),
      local_processes_(std::move(other.local_processes_)),
      hosts_(std::move(other.hosts_)) {}

Communicator::~Communicator() {
  if (abandoned_) return;
  for (MPI_Comm* comm : {&headers_, &collectives_}) {
    if (*comm != MPI_COMM_NULL) MPI_Comm_free(comm);
  }
}

std::int64_t Communicator::clock_offset_ns() const {
  constexpr int exchanges = 20;
  std::int64_t offset = 0;
  for (int r = 1; r < size_; ++r) {
    if (rank_ != 0 && rank_ != r) continue;
    if (hosts_[static_cast<std::size_t>(r)] == hosts_[0]) continue;  // one and the same clock
    std::int64_t fastest = INT64_MAX;
    for (int e = 0; e < exchanges; ++e) {
      std::int64_t theirs = 0;
      if (rank_ == 0) {
        check_mpi(MPI_Recv(&theirs, 1, MPI_INT64_T, r, 0, collectives_, MPI_STATUS_IGNORE),
                  "comparing clocks");
        theirs = now_ns();
        check_mpi(MPI_Send(&theirs, 1, MPI_INT64_T, r, 0, collectives_), "comparing clocks");
        continue;
      }
      const std::int64_t sent = now_ns();
      check_mpi(MPI_Send(&sent, 1, MPI_INT64_T, 0, 0, collectives_), "comparing clocks");
      check_mpi(MPI_Recv(&theirs, 1, MPI_INT64_T, 0, 0, collectives_, MPI_STATUS_IGNORE),
                "comparing clocks");
      const std::int64_t back = now_ns();
      if (back - sent < fastest) {
        fastest = back - sent;
        offset = theirs - (sent + (back - sent) / 2);
      }
    }
  }
  return offset;
}

std::vector<std::uint64_t> Communicator::all_gather(std::span<const std::uint64_t> values) const {
  std::vector<std::uint64_t> all(values.begin(), values.end());
  if (size_ > 1) {
    all.resize(values.size() * static_cast<std::size_t>(size_));
    heddle::all_gather(std::as_bytes(values), std::as_writable_bytes(std::span(all)), collectives_,
                       "gathering numbers of all nodes");
  }
  return all;
}

std::string Communicator::broadcast(const std::string& text) const {
  std::string result = text;
  if (size_ == 1) return result;
  std::uint64_t bytes = text.size();
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibcast(&bytes, 1, MPI_UINT64_T, 0, collectives_, &request), "MPI_Ibcast");
  complete(request, "MPI_Ibcast");
  result.resize(bytes);
  check_mpi(MPI_Ibcast(result.data(), static_cast<int>(bytes), MPI_BYTE, 0, collectives_, &request),
            "MPI_Ibcast");
  complete(request, "MPI_Ibcast");
  return result;
}

std::vector<std::string> Communicator::gather(const std::string& mine) const {
  if (size_ == 1) return {mine};
  const auto bytes = static_cast<int>(mine.size());
  std::vector<int> counts(rank_ == 0 ? static_cast<std::size_t>(size_) : 0);
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Igather(&bytes, 1, MPI_INT, counts.data(), 1, MPI_INT, 0, collectives_, &request),
            "MPI_Igather");
  complete(request, "MPI_Igather");
  std::vector<int> begins;
  std::size_t total = 0;
  for (const int count : counts) {
    begins.push_back(static_cast<int>(total));
    total += static_cast<std::size_t>(count);
  }
  std::string all(total, '\0');
  check_mpi(MPI_Igatherv(mine.data(), bytes, MPI_BYTE, all.data(), counts.data(), begins.data(),
                         MPI_BYTE, 0, collectives_, &request),
            "MPI_Igatherv");
  complete(request, "MPI_Igatherv");
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    texts.push_back(
        all.substr(static_cast<std::size_t>(begins[r]), static_cast<std::size_t>(counts[r])));
  }
  return texts;
}

void Communicator::wait_for_all(double seconds_max) const {
  if (size_ == 1) return;
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibarrier(collectives_, &request), "MPI_Ibarrier");
  finish({&request, 1}, seconds_max, "the other nodes");
}

void Communicator::send(int to, std::span<const std::byte> bytes, double seconds_max) const {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to, pair_tag,
                      collectives_, &request),
            "MPI_Isend");
  finish({&request, 1}, seconds_max, fmt::format("node {}", to));
}

void Communicator::receive(int from, std::span<std::byte> bytes, double seconds_max) const {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Irecv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, from, pair_tag,
                      collectives_, &request),
            "MPI_Irecv");
  finish({&request, 1}, seconds_max, fmt::format("node {}", from));
}

std::string Communicator::exchange(int other, const std::string& mine, double seconds_max) const {
  const std::string who = fmt::format("node {}", other);
  const auto swap = [&](std::span<const std::byte> out, std::span<std::byte> in) {
    std::array<MPI_Request, 2> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    check_mpi(MPI_Irecv(in.data(), static_cast<int>(in.size()), MPI_BYTE, other, pair_tag,
                        collectives_, requests.data()),
              "MPI_Irecv");
    check_mpi(MPI_Isend(out.data(), static_cast<int>(out.size()), MPI_BYTE, other, pair_tag,
                        collectives_, &requests[1]),
              "MPI_Isend");
    finish(requests, seconds_max, who);
  };
  const std::uint64_t bytes = mine.size();
  std::uint64_t their_bytes = 0;
  swap(std::as_bytes(std::span(&bytes, 1)), std::as_writable_bytes(std::span(&their_bytes, 1)));
  std::string theirs(their_bytes, '\0');
  swap(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(theirs)));
  return theirs;
}

void Communicator::finish(std::span<MPI_Request> requests, double seconds_max,
                          const std::string& who) const {
  const std::int64_t begin = now_ns();
  WakingTime awake(begin);
  for (;;) {
    int done = 0;
    check_mpi(
        MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE),
        "waiting for a message");
    if (done != 0) return;
    if (awake.at(now_ns()) > static_cast<std::int64_t>(seconds_max * 1e9)) {
      throw Error(ErrorCode::communication,
                  fmt::format("{} did not answer within {:.0f} s", who, seconds_max));
    }
    step_aside(begin);
  }
}

void Communicator::throw_together(const std::optional<Error>& mine) const {
  if (size_ == 1) {
    if (mine) throw *mine;
    return;
  }
  struct Trouble {
    std::int32_t code = -1;
    std::array<char, 2044> text{};
  };
  Trouble own;
  if (mine) {
    own.code = static_cast<std::int32_t>(mine->code());
    std::strncpy(own.text.data(), mine->what(), own.text.size() - 1);
  }
  std::vector<Trouble> all(static_cast<std::size_t>(size_));
  heddle::all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)),
                     collectives_, "gathering the nodes' errors");
  const auto bad = std::find_if(all.begin(), all.end(), [](const auto& t) { return t.code >= 0; });
  if (bad == all.end()) return;
  const bool shared =
      std::all_of(all.begin(), all.end(), [&](const auto& t) { return t.text == bad->text; });
  if (shared) throw *mine;
  const std::string text = bad->text.data();
  throw Error(static_cast<ErrorCode>(bad->code),
              fmt::format("node {}: {}", bad - all.begin(), text));
}

}  // namespace heddle
