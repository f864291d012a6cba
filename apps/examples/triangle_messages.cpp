/// A program's own messages between its nodes: the lower triangle of a matrix goes from device
/// memory of each node to device memory of the next one.
///
///   mpiexec.mpich -n 2 triangle_messages 1000 cuda        a GPU for each node
///   mpiexec.mpich -n 2 triangle_messages 1000 emulated    devices that threads emulate
///
/// One description of the triangle says which elements travel, and where they lie on either side:
/// the sender's matrix has a leading dimension of N + 3, the receiver's of N.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <heddle.hpp>
#include <mpi.h>
#include <node-runtime/messages.hpp>
#include <span>
#include <string>
#include <vector>

namespace {

constexpr double untouched = -1;

heddle::Datatype lower_triangle(std::int64_t n, std::int64_t leading) {
  heddle::Datatype::TriangleShape shape;
  shape.rows = shape.columns = n;
  shape.leading = leading;
  return heddle::Datatype::triangle(shape, heddle::Scalar::float64);
}

std::size_t index(std::int64_t i, std::int64_t j, std::int64_t leading) {
  return static_cast<std::size_t>(i + j * leading);
}

/// Element (i, j) of the matrix of a node; every element of every node is another number.
double element(int node, std::int64_t i, std::int64_t j) {
  return node + 1 + 1e-3 * static_cast<double>(i) + 1e-6 * static_cast<double>(j);
}

/// Elements of the received matrix that are not what they should be.
std::int64_t wrong_elements(const std::vector<double>& matrix, std::int64_t n, int sender) {
  std::int64_t wrong = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < n; ++i) {
      const double expected = i >= j ? element(sender, i, j) : untouched;
      if (matrix[index(i, j, n)] != expected) ++wrong;
    }
  }
  return wrong;
}

/// `backend`: cuda, or emulated.
bool run(std::int64_t n, const std::string& backend) {
  // Messages take device memory that the node sets aside for them.
  const heddle::Config config = heddle::Config::from_text(
      "runtime: {cpu_workers: 1, messages: {device_memory: 64MiB}, devices: {per_node: 1, "
      "backend: " +
          backend + "}}",
      "triangle_messages");
  heddle::Node node(config, MPI_COMM_WORLD);
  heddle::messages::Endpoint messages = node.messages();
  const int next = (messages.rank() + 1) % messages.size();
  const int previous = (messages.rank() + messages.size() - 1) % messages.size();

  const std::int64_t leading = n + 3;
  std::vector<double> outgoing(index(0, n, leading), untouched);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = j; i < n; ++i) {
      outgoing[index(i, j, leading)] = element(messages.rank(), i, j);
    }
  }
  std::vector<double> incoming(index(0, n, n), untouched);
  auto from = messages.allocate(0, outgoing.size() * sizeof(double));
  auto into = messages.allocate(0, incoming.size() * sizeof(double));
  from.write(std::as_bytes(std::span(outgoing)));
  into.write(std::as_bytes(std::span(incoming)));

  auto receive = messages.receive(into.all(), lower_triangle(n, n), 1, previous, 0);
  auto send = messages.send(from.all(), lower_triangle(n, leading), 1, next, 0);
  const heddle::messages::Status status = receive.wait();
  send.wait();

  into.read(std::as_writable_bytes(std::span(incoming)));
  double wrong = static_cast<double>(wrong_elements(incoming, n, previous));
  node.all_reduce({&wrong, 1}, heddle::Reduction::sum);
  if (messages.rank() == 0) {
    std::printf("%d nodes sent %lld bytes each from device to device, %s\n", messages.size(),
                static_cast<long long>(status.bytes), wrong == 0 ? "all is well" : "all is wrong");
  }
  node.stop();
  return wrong == 0;
}

bool run(int count, char** words) {
  char* end = nullptr;
  const long long n = count > 1 ? std::strtoll(words[1], &end, 10) : 500;
  const std::string backend = count > 2 ? words[2] : "emulated";
  const bool is_number = end == nullptr || *end == '\0';
  if (count > 3 || !is_number || n < 1 || n > 2000) {
    throw heddle::Error(heddle::ErrorCode::usage,
                        "usage: triangle_messages [N [cuda|emulated]], N from 1 to 2000");
  }
  return run(n, backend);
}

}  // namespace

int main(int count, char** words) {
  int provided = 0;
  MPI_Init_thread(&count, &words, MPI_THREAD_SERIALIZED, &provided);
  int status = 0;
  try {
    status = run(count, words) ? 0 : 1;
  } catch (const heddle::Error& error) {
    static_cast<void>(std::fprintf(stderr, "triangle_messages: %s\n", error.what()));
    status = heddle::exit_status(error.code());
  } catch (const std::exception& error) {
    static_cast<void>(std::fprintf(stderr, "triangle_messages: %s\n", error.what()));
    status = 1;
  }
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Finalize();
  return status;
}
