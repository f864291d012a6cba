/// How fast does heddle pack and unpack parts of matrices on the host, beside memcpy of as many
/// bytes and MPI_Pack of the same type? A sub-matrix and a triangle of a large matrix, its
/// transpose, and tiles of 256. All three are measured in turns, and every result is validated.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fmt/core.h>
#include <functional>
#include <mpi.h>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/median.hpp"
#include "bench/host_timing.hpp"
#include "node-runtime/transport/datatype/datatype.hpp"
#include "node-runtime/transport/datatype/overlap.hpp"
#include "node-runtime/transport/datatype/pack.hpp"

namespace heddle {
namespace {

/// A part of a column-major matrix of doubles, as heddle and as MPI describe it.
struct Case {
  std::string name;
  Datatype type;
  MPI_Datatype reference;
  std::int64_t n;
  std::int64_t leading;
  std::int64_t elements;  ///< of the memory that the type lies in
  /// Tiles of one matrix, `tile_step` elements apart, are packed one after the other; 1 otherwise.
  std::int64_t tiles = 1;
  std::int64_t tile_step = 0;
};

struct Options {
  int repetitions = 21;
  double seconds_min = 0.02;  ///< of one timing: small ones are repeated within
  std::int64_t fragment = 0;
};

Case sub_matrix(std::int64_t n, std::int64_t leading) {
  MPI_Datatype reference = MPI_DATATYPE_NULL;
  MPI_Type_vector_c(n, n, leading, MPI_DOUBLE, &reference);
  return {"submatrix",
          Datatype::vector(n, n, leading, Scalar::float64),
          committed(reference),
          n,
          leading,
          n * leading};
}

Case triangle(std::int64_t n, std::int64_t leading, Datatype::TriangleShape::Part part) {
  const bool lower = part == Datatype::TriangleShape::Part::lower;
  std::vector<MPI_Count> lengths;
  std::vector<MPI_Count> displacements;
  for (std::int64_t j = 0; j < n; ++j) {
    lengths.push_back(lower ? n - j : j + 1);
    displacements.push_back(j * leading + (lower ? j : 0));
  }
  MPI_Datatype reference = MPI_DATATYPE_NULL;
  MPI_Type_indexed_c(n, lengths.data(), displacements.data(), MPI_DOUBLE, &reference);
  return {lower ? "lower" : "upper",
          Datatype::triangle({.part = part, .rows = n, .columns = n, .leading = leading},
                             Scalar::float64),
          committed(reference),
          n,
          leading,
          n * leading};
}

Case transpose(std::int64_t n, std::int64_t leading) {
  MPI_Datatype row = MPI_DATATYPE_NULL;
  MPI_Datatype reference = MPI_DATATYPE_NULL;
  MPI_Type_vector_c(n, 1, leading, MPI_DOUBLE, &row);
  MPI_Type_create_hvector_c(n, 1, sizeof(double), row, &reference);
  MPI_Type_free(&row);
  return {"transpose",
          Datatype::hvector(n, 1, sizeof(double), Datatype::vector(n, 1, leading, Scalar::float64)),
          committed(reference),
          n,
          leading,
          n * leading};
}

/// The tiles along a row of tiles of a matrix, so that they do not all stay in a cache.
Case tile(std::int64_t n, std::int64_t leading, std::int64_t tiles) {
  Case result = sub_matrix(n, leading);
  result.name = tiles == 1 ? "tile" : "tiles";
  result.tiles = tiles;
  result.tile_step = n * leading;
  result.elements = tiles * n * leading;
  return result;
}

/// One way of moving the bytes; the matrix and the packed stream are its operands.
struct Way {
  const char* name;
  std::function<void()> pack;
  std::function<void()> unpack;
  std::vector<double> pack_seconds;
  std::vector<double> unpack_seconds;
};

class Bench {
 public:
  Bench(const Case& what, const Options& options)
      : what_(what),
        options_(options),
        plan_(make_plan(what.type)),
        matrix_(static_cast<std::size_t>(what.elements)),
        packed_(static_cast<std::size_t>(what.tiles * plan_.size) / sizeof(double)),
        source_(packed_.size(), 1.0) {
    for (std::size_t i = 0; i < matrix_.size(); ++i) matrix_[i] = static_cast<double>(i);
    ways_ = {{"heddle", [&] { pack_ours(); }, [&] { unpack_ours(); }, {}, {}},
             {"mpi", [&] { pack_theirs(); }, [&] { unpack_theirs(); }, {}, {}},
             {"memcpy", [&] { copy(); }, [&] { copy(); }, {}, {}}};
  }

  void run() {
    validate();
    const double bytes = static_cast<double>(packed_.size() * sizeof(double));
    for (int r = 0; r < options_.repetitions; ++r) {
      // In turns, each first as often as the others: what slows one down meets all.
      for (std::size_t w = 0; w < ways_.size(); ++w) {
        Way& way = ways_[(w + static_cast<std::size_t>(r)) % ways_.size()];
        way.pack_seconds.push_back(timed(way.pack));
        way.unpack_seconds.push_back(timed(way.unpack));
      }
    }
    report("pack", bytes, &Way::pack_seconds);
    report("unpack", bytes, &Way::unpack_seconds);
  }

 private:
  double timed(const std::function<void()>& call) const {
    call();  // warms up
    int calls = 0;
    const double start = now();
    double end = start;
    while (calls == 0 || end - start < options_.seconds_min) {
      call();
      ++calls;
      end = now();
    }
    return (end - start) / calls;
  }

  void report(const char* operation, double bytes, std::vector<double> Way::*seconds) const {
    const auto ratio = [&](const Way& peer) {
      std::vector<double> ratios;
      for (std::size_t r = 0; r < (peer.*seconds).size(); ++r) {
        ratios.push_back((peer.*seconds)[r] / (ways_[0].*seconds)[r]);
      }
      return median(ratios);
    };
    const auto rate = [&](const Way& way) { return bytes * 1e-9 / median(way.*seconds); };
    fmt::print(
        "peer=heddle op={} what={} n={} leading={} bytes={:.0f} gbs_median={:.2f} gbs_mpi={:.2f} "
        "gbs_memcpy={:.2f} ratio_mpi={:.2f} ratio_memcpy={:.2f}\n",
        operation, what_.name, what_.n, what_.leading, bytes, rate(ways_[0]), rate(ways_[1]),
        rate(ways_[2]), ratio(ways_[1]), ratio(ways_[2]));
  }

  /// Both ways give the same stream, which fills the same places again and no others.
  void validate() {
    check_receivable(plan_, 1);
    pack_theirs();
    const std::vector<double> expected = packed_;
    std::fill(packed_.begin(), packed_.end(), 0.0);
    pack_ours();
    if (packed_ != expected) throw Error(ErrorCode::internal, "packed other bytes than MPI_Pack\n");
    const std::vector<double> before = matrix_;
    for (double& element : packed_) element = -element - 1;
    unpack_theirs();
    const std::vector<double> changed = matrix_;
    matrix_ = before;
    unpack_ours();
    if (matrix_ != changed) throw Error(ErrorCode::internal, "unpacked other bytes than MPI\n");
  }

  double* matrix_of(std::int64_t tile) { return matrix_.data() + tile * what_.tile_step; }
  std::byte* stream_of(std::int64_t tile) {
    return reinterpret_cast<std::byte*>(packed_.data()) + tile * plan_.size;
  }

  template <class Move>
  void fragments(const Move& move) {
    const std::int64_t step = options_.fragment > 0 ? options_.fragment : plan_.size;
    for (std::int64_t t = 0; t < what_.tiles; ++t) {
      for (std::int64_t begin = 0; begin < plan_.size; begin += step) {
        move(t, StreamRange{begin, std::min(step, plan_.size - begin)});
      }
    }
  }
  void pack_ours() {
    fragments([&](std::int64_t t, StreamRange range) {
      pack(plan_, 1, matrix_of(t), range, stream_of(t) + range.begin);
    });
  }
  void unpack_ours() {
    fragments([&](std::int64_t t, StreamRange range) {
      unpack(plan_, 1, range, stream_of(t) + range.begin, matrix_of(t));
    });
  }
  void pack_theirs() {
    for (std::int64_t t = 0; t < what_.tiles; ++t) {
      MPI_Count position = 0;
      MPI_Pack_c(matrix_of(t), 1, what_.reference, stream_of(t), plan_.size, &position,
                 MPI_COMM_SELF);
    }
  }
  void unpack_theirs() {
    for (std::int64_t t = 0; t < what_.tiles; ++t) {
      MPI_Count position = 0;
      MPI_Unpack_c(stream_of(t), plan_.size, &position, matrix_of(t), 1, what_.reference,
                   MPI_COMM_SELF);
    }
  }
  void copy() { std::memcpy(packed_.data(), source_.data(), packed_.size() * sizeof(double)); }

  const Case& what_;
  const Options& options_;
  PackPlan plan_;
  std::vector<double> matrix_;
  std::vector<double> packed_;
  std::vector<double> source_;
  std::vector<Way> ways_;
};

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) try {
  using namespace heddle;
  Options options;
  std::int64_t n = 4000;
  std::int64_t leading = 4500;
  std::vector<std::string> only;
  CLI::App app{"Packing and unpacking on the host, beside memcpy and MPI_Pack"};
  app.add_option("-n", n, "order of the sub-matrix, the triangles and the transpose")
      ->check(CLI::Range(1, 100'000));
  app.add_option("--leading", leading, "leading dimension of the matrix");
  app.add_option("--repetitions", options.repetitions, "timings of each")
      ->check(CLI::Range(1, 1000));
  app.add_option("--fragment", options.fragment, "bytes of the stream that are packed at once");
  app.add_option("--only", only, "submatrix, lower, upper, transpose, tile, tiles");
  CLI11_PARSE(app, argc, argv);
  MPI_Init(nullptr, nullptr);
  using Part = Datatype::TriangleShape::Part;
  for (const Case& what : {sub_matrix(n, leading), triangle(n, leading, Part::lower),
                           triangle(n, leading, Part::upper), transpose(n, leading),
                           tile(256, 4000, 1), tile(256, 4000, 15)}) {
    if (only.empty() || std::find(only.begin(), only.end(), what.name) != only.end()) {
      Bench(what, options).run();
    }
    MPI_Datatype used = what.reference;
    MPI_Type_free(&used);
  }
  MPI_Finalize();
  return 0;
} catch (const std::exception& error) {
  std::fputs(error.what(), stderr);
  return 1;
}
