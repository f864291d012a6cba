// The other process of the sharing tests: device_peer BACKEND ROLE SOCKET.

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/error.hpp"
#include "node-runtime/device/devices.hpp"
#include "tests/device/device_kernels.hpp"
#include "tests/device/peer_channel.hpp"

namespace heddle::testing {
namespace {

constexpr std::size_t bytes = shared_count * sizeof(double);

/// Waits for the other's event on a stream, copies the shared memory out, answers whether it was
/// pending and what the memory held, then doubles it where it is.
void consume(Device& device, const PeerChannel& channel) {
  const DeviceMemory shared = device.open_memory(channel.receive<IpcMemoryHandle>());
  const auto theirs = device.open_event(channel.receive<IpcEventHandle>());
  auto* host = static_cast<double*>(device.allocate_host(bytes));
  {
    const DeviceBuffer mine(device, bytes);
    const auto stream = device.create_stream();
    const auto event = device.create_event();
    stream->wait(*theirs);
    stream->copy({mine.address(), &device}, {shared.address, &device}, bytes);
    stream->copy({host, nullptr}, {mine.address(), &device}, bytes);
    stream->record(*event);
    channel.send(theirs->query());
    channel.send(event->query());
    event->synchronize();
    channel.send(theirs->query());
    channel.send(host[0]);
    channel.send(host[shared_count - 1]);
    const TileView tile = column(shared.address, shared_count);
    stream->launch(affine, {&tile, 1}, KernelParameters(AffineParameters{2, 0}), nullptr);
    stream->synchronize();
    std::string refused;
    try {
      stream->record(*theirs);
    } catch (const Error& e) {
      refused = e.what();
    }
    channel.send_text(refused);
  }
  device.free_host(host);
  device.close_memory(shared);
}

/// Tries to open what it is sent and answers with the errors.
void try_to_open(Device& device, const PeerChannel& channel) {
  const auto memory = channel.receive<IpcMemoryHandle>();
  const auto event = channel.receive<IpcEventHandle>();
  std::string first = "opened";
  std::string second = "opened";
  try {
    device.close_memory(device.open_memory(memory));
  } catch (const Error& e) {
    first = e.what();
  }
  try {
    static_cast<void>(device.open_event(event));
  } catch (const Error& e) {
    second = e.what();
  }
  channel.send_text(first);
  channel.send_text(second);
}

/// Exports an event that will not complete while this process lives, and waits to be killed.
void export_and_hang(Device& device, const PeerChannel& channel) {
  const DeviceBuffer buffer(device, bytes);
  const auto stream = device.create_stream();
  const auto event = device.create_event();
  Gate gate;
  gate.close(*stream);
  stream->record(*event);
  channel.send(device.export_memory(buffer.address()));
  channel.send(device.export_event(*event));
  static_cast<void>(channel.receive<char>());  // the socket closes: whoever started us has gone
}

/// Exports an event of a stream that fails.
void export_failure(Device& device, const PeerChannel& channel) {
  const auto stream = device.create_stream();
  const auto event = device.create_event();
  stream->launch(broken, {}, {}, nullptr);
  stream->record(*event);
  channel.send(device.export_event(*event));
  static_cast<void>(channel.receive<char>());
}

}  // namespace
}  // namespace heddle::testing

int main(int count, char** arguments) {
  using namespace heddle;
  if (count != 4) return 2;
  const std::string role = arguments[2];
  try {
    DeviceOptions options;
    options.backend =
        arguments[1] == std::string("cuda") ? DeviceBackend::cuda : DeviceBackend::emulated;
    options.count = 1;
    options.emulated.memory_bytes = 8 << 20;
    options.cuda.memory_bytes = 8 << 20;
    options.cuda.gpus = {0};
    options.emulated.faults.refuse_mappings = role == "refuse";
    const testing::PeerChannel channel(std::atoi(arguments[3]));
    const DeviceSet set = make_devices(options);
    Device& device = *set.devices[0];
    if (role == "consume") testing::consume(device, channel);
    if (role == "open" || role == "refuse") testing::try_to_open(device, channel);
    if (role == "hang") testing::export_and_hang(device, channel);
    if (role == "fail") testing::export_failure(device, channel);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "device_peer %s: %s\n", role.c_str(), e.what());
    return 1;
  }
  return 0;
}
