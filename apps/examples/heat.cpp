/// The heat equation in a cube that is dealt out to a grid of nodes, whose faces are exchanged
/// while the points inside are computed.
///
///   mpiexec -n P heat [N] [STEPS]
///
/// N^3 points, 0 on the boundary. Explicit steps on the product of three sines, which each step
/// multiplies by the same number: so every point is known.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <heddle.hpp>
#include <mpi.h>
#include <node-runtime/collectives/group.hpp>
#include <numbers>
#include <utility>
#include <vector>

namespace {

using Triple = std::array<std::int64_t, 3>;

constexpr double rate = 0.15;  // of a time step: below 1/6 it is stable

/// A node's part of the cube: points 1 to size[d] in each direction, and a layer around them.
struct Box {
  Triple size;
  Triple first;                                    ///< of the cube, from 0
  std::array<std::array<int, 2>, 3> neighbours{};  ///< by direction and side; -1: the boundary

  /// Node `rank` of a grid; the first n % grid[d] nodes of a direction have a point more.
  Box(std::int64_t n, const std::array<int, 3>& grid, int rank) : size{}, first{} {
    const std::array<int, 3> strides{grid[1] * grid[2], grid[2], 1};
    for (std::size_t d = 0; d < 3; ++d) {
      const int place = rank / strides.at(d) % grid.at(d);
      const std::int64_t rest = n % grid.at(d);
      size.at(d) = n / grid.at(d) + (place < rest ? 1 : 0);
      first.at(d) = n / grid.at(d) * place + std::min<std::int64_t>(place, rest);
      neighbours.at(d) = {place > 0 ? rank - strides.at(d) : -1,
                          place + 1 < grid.at(d) ? rank + strides.at(d) : -1};
    }
  }

  [[nodiscard]] std::size_t index(std::int64_t i, std::int64_t j, std::int64_t k) const {
    return static_cast<std::size_t>((i * (size[1] + 2) + j) * (size[2] + 2) + k);
  }
  [[nodiscard]] std::size_t points() const { return index(size[0] + 2, 0, 0); }

  /// The points of one layer across a direction, in an array of all points.
  [[nodiscard]] heddle::Datatype layer(std::size_t direction, std::int64_t at) const {
    std::array<heddle::Datatype::Dimension, 3> dimensions{};
    for (std::size_t d = 0; d < 3; ++d) {
      dimensions.at(d) = d == direction
                             ? heddle::Datatype::Dimension{size.at(d) + 2, 1, at}
                             : heddle::Datatype::Dimension{size.at(d) + 2, size.at(d), 1};
    }
    return heddle::Datatype::subarray(dimensions, heddle::Datatype::Order::row_major,
                                      heddle::Scalar::float64);
  }

  /// Outermost points go to the neighbours, theirs come into the layer around.
  [[nodiscard]] heddle::Exchange exchange(const heddle::Group& group,
                                          std::vector<double>& u) const {
    std::vector<heddle::OutgoingPart> outgoing;
    std::vector<heddle::IncomingPart> incoming;
    for (std::size_t d = 0; d < 3; ++d) {
      for (const std::size_t side : {0U, 1U}) {
        const int other = neighbours.at(d).at(side);
        if (other < 0) continue;
        outgoing.push_back({other, {u.data(), 1, layer(d, side == 0 ? 1 : size.at(d))}});
        incoming.push_back({other, {u.data(), 1, layer(d, side == 0 ? 0 : size.at(d) + 1)}});
      }
    }
    return group.exchange(outgoing, incoming, {.name = "faces"});
  }
};

/// One step for the points from `begin` up to `end`.
void advance(const Box& box, const std::vector<double>& u, std::vector<double>& next,
             const Triple& begin, const Triple& end) {
  const std::size_t plane = box.index(1, 0, 0);
  const std::size_t row = box.index(0, 1, 0);
  for (std::int64_t i = begin[0]; i < end[0]; ++i) {
    for (std::int64_t j = begin[1]; j < end[1]; ++j) {
      for (std::int64_t k = begin[2]; k < end[2]; ++k) {
        const std::size_t p = box.index(i, j, k);
        const double around =
            u[p - plane] + u[p + plane] + u[p - row] + u[p + row] + u[p - 1] + u[p + 1];
        next[p] = u[p] + rate * (around - 6 * u[p]);
      }
    }
  }
}

/// The points that need nothing from others: all but the outermost ones.
void advance_inside(const Box& box, const std::vector<double>& u, std::vector<double>& next) {
  advance(box, u, next, {2, 2, 2}, box.size);
}

/// The outermost ones: both sides of each direction, of those that are left.
void advance_outside(const Box& box, const std::vector<double>& u, std::vector<double>& next) {
  Triple begin{1, 1, 1};
  Triple end{box.size[0] + 1, box.size[1] + 1, box.size[2] + 1};
  for (std::size_t d = 0; d < 3; ++d) {
    Triple first_end = end;
    first_end.at(d) = 2;
    advance(box, u, next, begin, first_end);
    if (box.size.at(d) > 1) {
      Triple last_begin = begin;
      last_begin.at(d) = box.size.at(d);
      advance(box, u, next, last_begin, end);
    }
    begin.at(d) = 2;
    end.at(d) = box.size.at(d);
  }
}

bool run(std::int64_t n, int steps) {
  heddle::Node node(heddle::Config::from_text("runtime: {devices: {backend: none}}", "heat"),
                    MPI_COMM_WORLD);
  const heddle::Group world = node.group();
  std::array<int, 3> grid{};
  MPI_Dims_create(world.size(), 3, grid.data());
  if (n < grid[0]) {
    throw heddle::Error(heddle::ErrorCode::usage,
                        "heat needs a point for each node of a direction");
  }
  const Box box(n, grid, world.rank());
  const auto wave = [&](std::size_t d, std::int64_t i) {
    const auto place = static_cast<double>(box.first.at(d) + i);
    return std::sin(std::numbers::pi * place / static_cast<double>(n + 1));
  };
  const auto initial = [&](std::int64_t i, std::int64_t j, std::int64_t k) {
    return wave(0, i) * wave(1, j) * wave(2, k);
  };
  const auto for_each_point = [&](const auto& visit) {
    for (std::int64_t i = 1; i <= box.size[0]; ++i) {
      for (std::int64_t j = 1; j <= box.size[1]; ++j) {
        for (std::int64_t k = 1; k <= box.size[2]; ++k) visit(i, j, k);
      }
    }
  };

  std::array<std::vector<double>, 2> u{std::vector<double>(box.points()),
                                       std::vector<double>(box.points())};
  for_each_point([&](auto i, auto j, auto k) { u[0][box.index(i, j, k)] = initial(i, j, k); });
  // Both in the same order on all nodes; planned once, for all steps.
  const std::array<heddle::Exchange, 2> faces{box.exchange(world, u[0]), box.exchange(world, u[1])};
  for (int step = 0; step < steps; ++step) {
    const auto now = static_cast<std::size_t>(step % 2);
    faces.at(now).begin();
    advance_inside(box, u.at(now), u.at(1 - now));
    faces.at(now).wait();
    advance_outside(box, u.at(now), u.at(1 - now));
  }

  const double factor =
      1 - 6 * rate * (1 - std::cos(std::numbers::pi / static_cast<double>(n + 1)));
  const double left = std::pow(factor, steps);
  const std::vector<double>& result = u.at(static_cast<std::size_t>(steps % 2));
  double error = 0;
  for_each_point([&](auto i, auto j, auto k) {
    const double wrong = std::abs(result[box.index(i, j, k)] - left * initial(i, j, k));
    error = std::max(error, wrong);
  });
  world.all_reduce(heddle::Incoming{&error, 1, heddle::Scalar::float64},
                   heddle::ReduceOperation::maximum());
  const bool is_right = error < 1e-13 * steps;
  if (world.rank() == 0) {
    std::printf("%lld^3 points on %d x %d x %d nodes, %d steps, %s: error %.2g, %s\n",
                static_cast<long long>(n), grid[0], grid[1], grid[2], steps,
                faces[0].report().method.c_str(), error, is_right ? "all is well" : "all is wrong");
  }
  node.stop();
  return is_right;
}

}  // namespace

int main(int count, char** words) {
  int provided = 0;
  MPI_Init_thread(&count, &words, MPI_THREAD_SERIALIZED, &provided);
  int status = 0;
  try {
    const std::int64_t n = count > 1 ? std::strtoll(words[1], nullptr, 10) : 33;
    const int steps = count > 2 ? std::atoi(words[2]) : 100;
    status = run(n, steps) ? 0 : 1;
  } catch (const std::exception& error) {
    static_cast<void>(std::fprintf(stderr, "heat: %s\n", error.what()));
    status = 1;
  }
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Finalize();
  return status;
}
