#include <csignal>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "tests/device/device_fixture.hpp"
#include "tests/device/device_kernels.hpp"
#include "tests/device/peer_channel.hpp"

namespace heddle {

using testing::error_of;
using testing::Gate;
using testing::HostArray;
using testing::PeerChannel;
using testing::shared_count;

namespace {

/// The device_peer program in `role`, and the channel to it.
class Peer {
 public:
  Peer(const std::string& backend, const std::string& role) {
    if (::access(HEDDLE_DEVICE_PEER, X_OK) != 0) {
      throw std::runtime_error("there is no program " HEDDLE_DEVICE_PEER);
    }
    std::array<int, 2> sockets{};
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()) != 0) throw std::bad_alloc();
    channel_ = std::make_unique<PeerChannel>(sockets[0]);
    const std::string socket = std::to_string(sockets[1]);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(sockets[0]);
      ::execl(HEDDLE_DEVICE_PEER, HEDDLE_DEVICE_PEER, backend.c_str(), role.c_str(), socket.c_str(),
              nullptr);
      ::_exit(127);
    }
    ::close(sockets[1]);
  }
  ~Peer() {
    channel_.reset();
    if (pid_ > 0) static_cast<void>(wait());
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  [[nodiscard]] const PeerChannel& channel() const { return *channel_; }
  void kill() const { ::kill(pid_, SIGKILL); }
  /// Exit status; -1 when it was killed.
  [[nodiscard]] int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
  std::unique_ptr<PeerChannel> channel_;
};

std::string program_backend(DeviceBackend backend) {
  return std::string(name_of(backend));
}

bool is_cuda(const testing::Backend& backend) {
  return backend.backend == DeviceBackend::cuda;
}

/// Another process waits for an event of `device`'s, and works on memory there.
void share(Device& device, std::byte* memory, const testing::Backend& backend) {
  const HostArray host(device, shared_count);
  host.count_up_from(10);
  Gate gate;
  const auto stream = device.create_stream();
  const auto event = device.create_event();
  gate.close(*stream);
  if (backend.emulated.queue_capacity <= 2) gate.open();
  stream->copy({memory, &device}, {host.data(), nullptr}, host.bytes());
  stream->record(*event);

  Peer peer(program_backend(backend.backend), "consume");
  const PeerChannel& channel = peer.channel();
  channel.send(device.export_memory(memory));
  channel.send(device.export_event(*event));
  const auto ours_seen = channel.receive<EventState>();
  const auto theirs_before = channel.receive<EventState>();
  if (backend.emulated.queue_capacity > 2) {
    EXPECT_EQ(ours_seen, EventState::pending);
    EXPECT_EQ(theirs_before, EventState::pending);
  }
  gate.open();
  EXPECT_EQ(channel.receive<EventState>(), EventState::done);
  EXPECT_EQ(channel.receive<double>(), 10);
  EXPECT_EQ(channel.receive<double>(), 10 + static_cast<double>(shared_count - 1));
  EXPECT_NE(channel.receive_text().find("not recorded"), std::string::npos);
  EXPECT_EQ(peer.wait(), 0);

  // Long complete; but the order so far came through the other process, where no sanitizer sees it.
  event->synchronize();
  const HostArray back(device, shared_count);
  testing::download(device, back, memory);
  EXPECT_EQ(back[0], 20);
  EXPECT_EQ(back[shared_count - 1], 2 * host[shared_count - 1]);
}

}  // namespace

using DeviceSharingTest = testing::DeviceTest;
HEDDLE_ON_ALL_BACKENDS(DeviceSharingTest);

TEST_P(DeviceSharingTest, another_process_waits_for_our_event_and_works_on_our_memory) {
  const DeviceBuffer spacer(device(), 100);  // so that the shared one is not at a page's start
  const DeviceBuffer buffer(device(), shared_count * sizeof(double));
  share(device(), buffer.address(), GetParam());
}

TEST_P(DeviceSharingTest, another_process_works_on_memory_that_a_third_party_allocated) {
  const testing::ForeignMemory spacer(device(), 100);
  const testing::ForeignMemory memory(device(), 100 + shared_count * sizeof(double));
  ASSERT_TRUE(device().adopt(memory.address()));
  share(device(), memory.address() + 96, GetParam());
}

TEST_P(DeviceSharingTest, opening_memory_that_is_gone_is_a_named_error) {
  IpcMemoryHandle memory;
  {
    const DeviceSet gone = testing::make_devices_of(GetParam(), 1);
    const DeviceBuffer buffer(*gone.devices[0], 4096);
    memory = gone.devices[0]->export_memory(buffer.address());
  }
  const auto event = device().create_event();
  Peer peer(program_backend(GetParam().backend), "open");
  peer.channel().send(memory);
  peer.channel().send(device().export_event(*event));
  EXPECT_NE(peer.channel().receive_text().find(to_string(memory.device)), std::string::npos);
  EXPECT_EQ(peer.channel().receive_text(), "opened");
  EXPECT_EQ(peer.wait(), 0);
}

TEST_P(DeviceSharingTest, opening_an_event_that_is_gone_is_a_named_error) {
  if (is_cuda(GetParam())) GTEST_SKIP() << "CUDA opens what a handle names, be it gone or not";
  const DeviceBuffer buffer(device(), 4096);
  IpcEventHandle of_device;
  {
    const DeviceSet gone = testing::make_devices_of(GetParam(), 1);
    of_device = gone.devices[0]->export_event(*gone.devices[0]->create_event());
  }
  const IpcEventHandle destroyed = device().export_event(*device().create_event());
  for (const auto& [event, part] :
       {std::pair{of_device, to_string(of_device.device)}, {destroyed, std::string("destroyed")}}) {
    Peer peer(program_backend(GetParam().backend), "open");
    peer.channel().send(device().export_memory(buffer.address()));
    peer.channel().send(event);
    EXPECT_EQ(peer.channel().receive_text(), "opened");
    EXPECT_NE(peer.channel().receive_text().find(part), std::string::npos) << part;
    EXPECT_EQ(peer.wait(), 0);
  }
}

TEST_P(DeviceSharingTest, a_damaged_handle_is_refused) {
  const DeviceBuffer buffer(device(), 4096);
  IpcMemoryHandle memory = device().export_memory(buffer.address());
  memory.bytes = device().info().memory_bytes * 2;
  const auto event = device().create_event();
  Peer peer(program_backend(GetParam().backend), "open");
  peer.channel().send(memory);
  peer.channel().send(device().export_event(*event));
  EXPECT_NE(peer.channel().receive_text().find("damaged"), std::string::npos);
  EXPECT_EQ(peer.channel().receive_text(), "opened");
  EXPECT_EQ(peer.wait(), 0);
}

TEST_P(DeviceSharingTest, a_refused_mapping_is_a_named_error) {
  if (is_cuda(GetParam())) GTEST_SKIP() << "nothing makes CUDA refuse a mapping on purpose";
  const DeviceBuffer buffer(device(), 4096);
  const auto event = device().create_event();
  Peer peer(program_backend(GetParam().backend), "refuse");
  peer.channel().send(device().export_memory(buffer.address()));
  peer.channel().send(device().export_event(*event));
  EXPECT_NE(peer.channel().receive_text().find("refused"), std::string::npos);
  EXPECT_NE(peer.channel().receive_text().find("refused"), std::string::npos);
  EXPECT_EQ(peer.wait(), 0);
}

/// Ends the process: 0 when all was as expected.
[[noreturn]] void wait_for_who_is_killed(const testing::Backend& backend) {
  {
    const DeviceSet set = testing::make_devices_of(backend, 1);
    Device& device = *set.devices[0];
    Peer peer(program_backend(backend.backend), "hang");
    const DeviceMemory memory = device.open_memory(peer.channel().receive<IpcMemoryHandle>());
    const auto event = device.open_event(peer.channel().receive<IpcEventHandle>());
    const auto stream = device.create_stream();
    EXPECT_EQ(event->query(), EventState::pending);
    stream->wait(*event);
    peer.kill();
    EXPECT_NE(error_of([&] { event->synchronize(); }).find("ended before"), std::string::npos);
    EXPECT_EQ(event->query(), EventState::failed);
    EXPECT_NE(error_of([&] { stream->synchronize(); }).find("ended before"), std::string::npos);
    EXPECT_EQ(peer.wait(), -1);
    device.close_memory(memory);
  }
  ::_exit(::testing::Test::HasFailure() ? 1 : 0);
}

/// In a process of its own: a GPU that waits for a process that has gone does so for ever.
TEST_P(DeviceSharingTest, an_event_whose_process_is_killed_fails_and_so_does_who_waits_for_it) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(wait_for_who_is_killed(GetParam()), ::testing::ExitedWithCode(0), "");
}

TEST_P(DeviceSharingTest, polling_finds_out_that_the_exporter_has_gone) {
  Peer peer(program_backend(GetParam().backend), "hang");
  static_cast<void>(peer.channel().receive<IpcMemoryHandle>());
  const auto event = device().open_event(peer.channel().receive<IpcEventHandle>());
  EXPECT_EQ(event->query(), EventState::pending);
  peer.kill();
  while (event->query() == EventState::pending) {
  }
  EXPECT_NE(event->failure().find("ended before"), std::string::npos);
}

TEST_P(DeviceSharingTest, a_failure_in_the_other_process_arrives_with_its_text) {
  if (is_cuda(GetParam())) GTEST_SKIP() << "CUDA's events pass no texts on to other processes";
  Peer peer(program_backend(GetParam().backend), "fail");
  const auto event = device().open_event(peer.channel().receive<IpcEventHandle>());
  const std::string text = error_of([&] { event->synchronize(); });
  EXPECT_NE(text.find("kernel 'broken'"), std::string::npos) << text;
  peer.channel().send('.');
  EXPECT_EQ(peer.wait(), 0);
}

}  // namespace heddle
