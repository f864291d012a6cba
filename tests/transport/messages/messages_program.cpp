/// messages_program WHAT: one part of messages_test, on every node. Status 0: all is as expected.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <heddle.hpp>
#include <map>
#include <mpi.h>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "node-runtime/messages.hpp"

namespace {

using heddle::Datatype;
using heddle::Error;
using heddle::ErrorCode;
using heddle::Scalar;
using heddle::messages::any_source;
using heddle::messages::any_tag;
using heddle::messages::DeviceMemory;
using heddle::messages::Endpoint;
using heddle::messages::Request;
using heddle::messages::Status;

int failures = 0;

void expect(bool holds, std::string_view what) {
  if (holds) return;
  ++failures;
  std::printf("not so: %.*s\n", static_cast<int>(what.size()), what.data());
}

void expect_throw(const std::function<void()>& call, ErrorCode code, std::string_view text) {
  try {
    call();
  } catch (const Error& error) {
    expect(error.code() == code, std::string("another code: ") + error.what());
    const bool has_text = std::string_view(error.what()).find(text) != std::string_view::npos;
    expect(has_text, std::string(error.what()) + " lacks: " + std::string(text));
    return;
  }
  expect(false, std::string("no error: ") + std::string(text));
}

heddle::Config config() {
  return heddle::Config::from_text(
      "runtime: {cpu_workers: 1, devices: {backend: emulated, per_node: 1, memory: 64MiB}, "
      "messages: {device_memory: 1MiB}}",
      "messages_program");
}

std::span<const std::byte> bytes(const std::vector<double>& numbers) {
  return std::as_bytes(std::span(numbers));
}
std::span<std::byte> bytes(std::vector<double>& numbers) {
  return std::as_writable_bytes(std::span(numbers));
}

int next_of(const Endpoint& messages) {
  return (messages.rank() + 1) % messages.size();
}
int previous_of(const Endpoint& messages) {
  return (messages.rank() + messages.size() - 1) % messages.size();
}

void wrong_calls(heddle::Node& node) {
  Endpoint messages = node.messages();
  std::vector<double> memory(10);
  const std::span<double> all(memory);
  const auto sends = [&](const Datatype& type, std::int64_t count, int to, int tag) {
    return
        [&, type, count, to, tag] { static_cast<void>(messages.send(all, type, count, to, tag)); };
  };
  const auto receives = [&](const Datatype& type, std::int64_t count, int from, int tag) {
    return [&, type, count, from, tag] {
      static_cast<void>(messages.receive(all, type, count, from, tag));
    };
  };
  const std::string nodes = "there are " + std::to_string(messages.size()) + " nodes";
  expect_throw(sends(Scalar::float64, 1, messages.size(), 0), ErrorCode::usage, nodes);
  expect_throw(sends(Scalar::float64, 1, -1, 0), ErrorCode::usage, "node -1");
  expect_throw(receives(Scalar::float64, 1, -2, 0), ErrorCode::usage, "node -2");
  expect_throw(sends(Scalar::float64, 1, 0, -3), ErrorCode::usage, "tag -3");
  expect_throw(receives(Scalar::float64, 1, 0, -3), ErrorCode::usage, "tag -3");
  expect_throw(sends(Scalar::float64, -4, 0, 0), ErrorCode::usage, "-4 elements");
  expect_throw(receives(Scalar::float64, -4, 0, 0), ErrorCode::usage, "-4 elements");
  expect_throw(sends(Scalar::float64, 11, 0, 0), ErrorCode::usage,
               "from byte 0 to byte 88 of memory of 80 bytes");
  expect_throw(receives(Datatype::vector(3, 1, 5, Scalar::float64), 1, 0, 0), ErrorCode::usage,
               "to byte 88 of memory of 80 bytes");
  expect_throw(sends(Datatype::vector(2, 1, -1, Scalar::float64), 1, 0, 0), ErrorCode::usage,
               "from byte -8");
  expect_throw(sends(Scalar::float64, std::int64_t{1} << 62U, 0, 0), ErrorCode::usage, "of memory");
  expect_throw(receives(Datatype::resized(Scalar::float64, 0, 4), 2, 0, 0), ErrorCode::usage,
               "overlap");
  expect_throw([&] { static_cast<void>(messages.allocate(1, 8)); }, ErrorCode::usage,
               "device 1: the node has 1 devices");
  expect_throw([&] { static_cast<void>(messages.allocate(0, 2 << 20)); }, ErrorCode::usage,
               "2097152 bytes of device 0 are asked for");
  expect_throw([&] { static_cast<void>(messages.allocate(0, 0)); }, ErrorCode::usage, "0 bytes");
  expect_throw([&] { static_cast<void>(messages.release(memory.data())); }, ErrorCode::usage,
               "it is no device's");
  DeviceMemory device = messages.allocate(0, 80);
  expect_throw([&] { device.write(bytes(std::as_const(memory)), 8); }, ErrorCode::usage,
               "80 bytes from byte 8 on are copied, of device memory of 80 bytes");
  Request send = messages.send(all, Scalar::float64, 10, next_of(messages), 1);
  Request receive = messages.receive(device.all(), Scalar::float64, 9, previous_of(messages), 1);
  expect_throw([&] { receive.wait(); }, ErrorCode::usage, "would be truncated");
  expect_throw([&] { receive.wait(); }, ErrorCode::usage, "waited for twice");
  send.wait();
}

/// Every second number of a vector, from and to every kind of place, small and large.
void places(heddle::Node& node) {
  Endpoint messages = node.messages();
  int tag = 0;
  for (const std::int64_t count : {0, 1, 7, 300, 20'000}) {
    const Datatype strided = Datatype::vector(count, 1, 2, Scalar::float64);
    for (int places = 0; places < 4; ++places, ++tag) {
      const auto size = static_cast<std::size_t>(2 * count + 1);
      std::vector<double> source(size);
      for (std::size_t i = 0; i < size; ++i) {
        source[i] = static_cast<double>(i) + 1000 * messages.rank();
      }
      std::vector<double> target(size, -1);
      std::optional<DeviceMemory> from;
      std::optional<DeviceMemory> into;
      if ((places & 1) != 0) {
        from.emplace(messages.allocate(0, 8 * size));
        from->write(bytes(std::as_const(source)));
      }
      if ((places & 2) != 0) {
        into.emplace(messages.allocate(0, 8 * size));
        into->write(bytes(std::as_const(target)));
      }
      const std::span<double> host_target(target);
      Request receive = messages.receive(into ? into->all() : heddle::messages::Memory(host_target),
                                         count % 2 == 0 ? strided : Datatype(Scalar::float64),
                                         count % 2 == 0 ? 1 : count, previous_of(messages), tag);
      const std::span<const double> host_source(source);
      Request send = messages.send(from ? heddle::messages::ConstMemory(from->all())
                                        : heddle::messages::ConstMemory(host_source),
                                   strided, 1, next_of(messages), tag);
      const Status status = receive.wait();
      send.wait();
      expect(status.source == previous_of(messages) && status.tag == tag, "another message");
      expect(status.bytes == 8 * count, "another size");
      if (into) into->read(bytes(target));
      for (std::int64_t i = 0; i < count; ++i) {
        const double expected = static_cast<double>(2 * i + 1000 * previous_of(messages));
        const auto at = static_cast<std::size_t>(count % 2 == 0 ? 2 * i : i);
        if (target[at] == expected) continue;
        expect(false, "element " + std::to_string(i) + " of " + std::to_string(count) +
                          ", places " + std::to_string(places));
        return;
      }
    }
  }
}

void wildcards(heddle::Node& node) {
  Endpoint messages = node.messages();
  constexpr int each = 20;
  std::vector<std::vector<double>> sent;
  std::vector<Request> sends;
  for (int number = 0; number < each; ++number) {
    // Some with their notes, some not.
    sent.emplace_back(number % 3 == 0 ? 3000 : 3, number);
    sends.push_back(messages.send(std::span<const double>(sent.back()), Scalar::float64,
                                  static_cast<std::int64_t>(sent.back().size()), 0, number));
  }
  if (messages.rank() == 0) {
    std::map<int, int> last;
    std::vector<double> room(3000);
    for (int i = 0; i < each * messages.size(); ++i) {
      const Status status =
          messages.receive(std::span<double>(room), Scalar::float64, 3000, any_source, any_tag)
              .wait();
      expect(status.tag == last[status.source]++, "messages of a node overtake each other");
      expect(room[0] == status.tag, "another message");
    }
  }
  for (Request& send : sends) send.wait();
}

void threads(heddle::Node& node) {
  Endpoint messages = node.messages();
  heddle::MatrixSpec spec(400, 400, heddle::Storage::lower);
  auto a = node.matrix<double>(spec);
  a.fill([](std::int64_t i, std::int64_t j) { return i == j ? 2.0 : 1e-3; });
  heddle::Job job = node.submit(heddle::cholesky(a));
  std::array<bool, 4> are_right{};
  std::vector<std::thread> all;
  for (int number = 0; number < 4; ++number) {
    all.emplace_back([&, number] {
      bool is_right = true;
      for (int round = 0; round < 50; ++round) {
        const std::vector<double> sent(number % 2 == 0 ? 10 : 5000, 100.0 * number + round);
        std::vector<double> received(sent.size());
        const auto count = static_cast<std::int64_t>(sent.size());
        Request receive = messages.receive(std::span<double>(received), Scalar::float64, count,
                                           previous_of(messages), number);
        Request send = messages.send(std::span<const double>(sent), Scalar::float64, count,
                                     next_of(messages), number);
        receive.wait();
        send.wait();
        is_right = is_right && received == sent;
      }
      are_right.at(static_cast<std::size_t>(number)) = is_right;
    });
  }
  for (std::thread& thread : all) thread.join();
  for (const bool is_right : are_right) expect(is_right, "a thread got another one's message");
  expect(job.wait().status == heddle::JobResult::Status::done, "the job beside");
}

/// Handles outlive the node; nothing that was not received keeps it from ending.
void leftovers(std::optional<heddle::Node>& node) {
  Endpoint messages = node->messages();
  const std::vector<double> small(3, 1);
  const std::vector<double> large(30'000, 1);
  std::vector<double> room(10);
  std::optional<DeviceMemory> device(messages.allocate(0, 100));
  const int next = next_of(messages);
  for (int i = 0; i < 5; ++i) {
    messages.send(std::span<const double>(small), Scalar::float64, 3, next, 1).wait();
  }
  Request never_taken =
      messages.send(std::span<const double>(large), Scalar::float64, 30'000, next, 2);
  Request never_matched =
      messages.receive(std::span<double>(room), Scalar::float64, 10, any_source, 3);
  Request withdrawn = messages.receive(std::span<double>(room), Scalar::float64, 10, any_source, 4);
  withdrawn.cancel();
  expect(withdrawn.wait().is_cancelled, "a receive is taken back");
  node->stop();
  node.reset();
  expect(never_taken.done() && never_taken.wait().is_cancelled, "a send ends with the node");
  expect(never_matched.wait().is_cancelled, "a receive ends with the node");
  never_matched.cancel();
  const std::string ended = "the node has ended";
  expect_throw([&] { static_cast<void>(messages.rank()); }, ErrorCode::usage, ended);
  expect_throw([&] { device->write(bytes(small)); }, ErrorCode::usage, ended);
  device.reset();
}

void lost_node(heddle::Node& node) {
  Endpoint messages = node.messages();
  std::vector<double> room(10);
  if (messages.rank() == 1) {
    messages.receive(std::span<double>(room), Scalar::float64, 10, 0, 0).wait();
    ::_exit(0);
  }
  messages.send(std::span<double>(room), Scalar::float64, 10, 1, 0).wait();
  try {
    messages.receive(std::span<double>(room), Scalar::float64, 10, 1, 0).wait();
  } catch (const Error& error) {
    const bool is_communication = error.code() == ErrorCode::communication;
    std::printf("node 0 was told: %s (%s)\n", is_communication ? "communication" : "?",
                error.what());
  }
  static_cast<void>(std::fflush(stdout));
  ::_exit(0);
}

/// Node 1 goes without Node::stop() while node 0 waits for its message.
void gone_node(std::optional<heddle::Node>& node) {
  Endpoint messages = node->messages();
  std::vector<double> room(10);
  if (messages.rank() == 0) {
    try {
      messages.receive(std::span<double>(room), Scalar::float64, 10, 1, 0).wait();
    } catch (const Error& error) {
      const bool is_communication = error.code() == ErrorCode::communication;
      std::printf("node 0 was told: %s (%s)\n", is_communication ? "communication" : "?",
                  error.what());
    }
  }
  node.reset();
}

int run(const std::string& what) {
  std::optional<heddle::Node> node;
  node.emplace(config(), MPI_COMM_WORLD);
  if (what == "wrong_calls") wrong_calls(*node);
  if (what == "places") places(*node);
  if (what == "wildcards") wildcards(*node);
  if (what == "threads") threads(*node);
  if (what == "leftovers") leftovers(node);
  if (what == "lost_node") lost_node(*node);
  if (what == "gone_node") gone_node(node);
  if (node) node->stop();
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  int provided = 0;
  MPI_Init_thread(&count, &words, MPI_THREAD_SERIALIZED, &provided);
  int status = 1;
  try {
    if (count == 2) status = run(words[1]);
  } catch (const std::exception& error) {
    std::printf("an error that was not expected: %s\n", error.what());
  }
  static_cast<void>(std::fflush(stdout));
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Finalize();
  return status;
}
