#include "tests/system/heddle_run.hpp"

#include <algorithm>
#include <cblas.h>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <lapacke.h>

#include "algorithms/matrix/npy_file.hpp"

namespace heddle::testing {

std::string npy(const Dense& matrix, NpyOrder order, NpyDimensions dimensions) {
  std::string header =
      fmt::format("{{'descr': '<f8', 'fortran_order': {}, 'shape': ({},{}), }}",
                  order == NpyOrder::fortran ? "True" : "False", matrix.rows,
                  dimensions == NpyDimensions::one ? "" : fmt::format(" {}", matrix.columns));
  header.resize(117, ' ');
  header += '\n';
  std::string text = std::string("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(header.size());
  text += '\0';
  text += header;
  const auto put = [&text](double value) {
    char bytes[sizeof(double)];
    std::memcpy(bytes, &value, sizeof(double));
    text.append(bytes, sizeof(double));
  };
  if (order == NpyOrder::fortran) {
    for (const double value : matrix.elements) put(value);
  } else {
    for (std::int64_t i = 0; i < matrix.rows; ++i) {
      for (std::int64_t j = 0; j < matrix.columns; ++j) put(matrix(i, j));
    }
  }
  return text;
}

std::string mtx(const Dense& matrix, bool symmetric) {
  std::string text = fmt::format("%%MatrixMarket matrix array real {}\n{} {}\n",
                                 symmetric ? "symmetric" : "general", matrix.rows, matrix.columns);
  for (std::int64_t j = 0; j < matrix.columns; ++j) {
    for (std::int64_t i = symmetric ? j : 0; i < matrix.rows; ++i) {
      text += fmt::format("{:.17g}\n", matrix(i, j));
    }
  }
  return text;
}

Dense read_npy(const std::string& path) {
  const NpySource source(path, OneDimensional::as_column);
  Dense matrix(source.rows(), source.columns());
  source.read(GlobalRow{0}, GlobalColumn{0},
              {matrix.elements.data(), matrix.rows, matrix.columns,
               std::max<std::int64_t>(1, matrix.rows)});
  return matrix;
}

Dense spd(std::int64_t n) {
  Dense a(n, n);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < n; ++i) {
      a(i, j) = i == j ? static_cast<double>(n) : 1.0 / static_cast<double>(1 + std::abs(i - j));
    }
  }
  return a;
}

Dense sides(std::int64_t n, std::int64_t columns) {
  Dense b(n, columns);
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t i = 0; i < n; ++i) b(i, j) = std::sin(static_cast<double>(1 + i + 7 * j));
  }
  return b;
}

Reference reference(const Dense& matrix, const Dense& right_hand_sides) {
  Reference result{0, matrix, right_hand_sides};
  const int n = static_cast<int>(matrix.rows);
  const int columns = static_cast<int>(right_hand_sides.columns);
  const int leading = std::max(1, n);
  int info = 0;
  LAPACK_dpotrf("L", &n, result.factor.elements.data(), &leading, &info);
  result.info = info;
  if (info == 0) {
    LAPACK_dpotrs("L", &n, &columns, result.factor.elements.data(), &leading,
                  result.solution.elements.data(), &leading, &info);
  }
  for (std::int64_t j = 0; j < matrix.columns; ++j) {
    for (std::int64_t i = 0; i < j; ++i) result.factor(i, j) = 0;
  }
  return result;
}

LeastSquares least_squares(const Dense& matrix, const Dense& right_hand_sides) {
  const int m = static_cast<int>(matrix.rows);
  const int n = static_cast<int>(matrix.columns);
  const int columns = static_cast<int>(right_hand_sides.columns);
  const int leading = std::max(1, m);
  const int size = 64 * std::max(1, n + columns);
  std::vector<double> work(static_cast<std::size_t>(size));
  Dense a = matrix;
  Dense b = right_hand_sides;
  int info = 0;
  LAPACK_dgels("N", &m, &n, &columns, a.elements.data(), &leading, b.elements.data(), &leading,
               work.data(), &size, &info);
  EXPECT_EQ(info, 0);
  LeastSquares result{Dense(n, n), Dense(n, columns), {}};
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i <= j; ++i) result.r(i, j) = a(i, j);
  }
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t i = 0; i < n; ++i) result.solution(i, j) = b(i, j);
    double square = 0;
    for (std::int64_t i = n; i < m; ++i) square += b(i, j) * b(i, j);
    result.residual_norms.push_back(std::sqrt(square));
  }
  return result;
}

Dense tall(std::int64_t m, std::int64_t n) {
  Dense a(m, n);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < m; ++i) {
      a(i, j) = std::sin(static_cast<double>(1 + 37 * i + 11 * j * j)) + (i == j ? 4 : 0);
    }
  }
  return a;
}

void HeddleRun::SetUp() {
  adopt_orphans();
  openblas_set_num_threads(1);  // its own threads race in the eyes of the thread sanitizer
  // The kernels are measured once for all tests, not once for each.
  static const TemporaryFolder cache;
  ::setenv("XDG_CACHE_HOME", cache.path().c_str(), 1);
}

void HeddleRun::TearDown() {
  for (const char* name : {"heddle", "heddle-tools", "heddle-cleanup"}) {
    EXPECT_TRUE(eventually([&] { return processes_named(name).empty(); }, std::chrono::seconds(5)))
        << "a process called " << name << " is still there";
  }
  for (const std::string& name : folder_.names()) {
    EXPECT_EQ(name.find("heddle-part"), std::string::npos) << name << " was left behind";
  }
}

std::vector<std::string> HeddleRun::alone(std::vector<std::string> words) {
  words.insert(words.begin(), HEDDLE_BINARY);
  return words;
}

std::vector<std::string> HeddleRun::on(int nodes, std::vector<std::string> words) {
  const std::vector<std::string> launch{HEDDLE_MPIEXEC, "-n", std::to_string(nodes), HEDDLE_BINARY};
  words.insert(words.begin(), launch.begin(), launch.end());
  return words;
}

Ended HeddleRun::run(const std::vector<std::string>& words) const {
  Ended ended = Process(words, folder_.path()).wait();
  EXPECT_FALSE(ended.timed_out) << fmt::format("{}", fmt::join(words, " "));
  return ended;
}

Ended HeddleRun::solve(const std::string& yaml, int nodes,
                       const std::vector<std::string>& options) const {
  std::ofstream(folder_ / "problem.yaml", std::ios::binary) << yaml;
  std::vector<std::string> words{"solve", "problem.yaml"};
  words.insert(words.end(), options.begin(), options.end());
  return run(nodes == 0 ? alone(words) : on(nodes, words));
}

nlohmann::json HeddleRun::solved(const std::string& yaml, int nodes,
                                 std::vector<std::string> options) const {
  options.insert(options.end(), {"--report", "report.json"});
  const Ended ended = solve(yaml, nodes, options);
  EXPECT_EQ(ended.status, 0) << ended.error;
  auto report = nlohmann::json::parse(read_file(folder_ / "report.json"), nullptr, false);
  if (report.is_discarded()) {
    ADD_FAILURE() << "no report; " << ended.error;
    return {};
  }
  EXPECT_EQ(report["status"], "ok");
  if (report["residual"].is_number()) {
    EXPECT_LT(report["residual"].get<double>(), 10);
  }
  if (report["orthogonality"].is_number()) {
    EXPECT_LT(report["orthogonality"].get<double>(), 10);
  }
  return report;
}

void HeddleRun::expect_refused(const Ended& ended, const std::vector<std::string>& parts) const {
  EXPECT_EQ(ended.status, 2) << ended.out << ended.error;
  for (const std::string& part : parts) {
    EXPECT_NE(ended.error.find(part), std::string::npos)
        << "'" << part << "' is not in: " << ended.error;
  }
  const std::string marker = "heddle: ";
  std::size_t messages = 0;
  for (auto at = ended.error.find(marker); at != std::string::npos;
       at = ended.error.find(marker, at + 1)) {
    messages += at == 0 || ended.error[at - 1] == '\n' ? 1U : 0U;
  }
  EXPECT_EQ(messages, 1U) << ended.error;
  for (const std::string& name : folder_.names()) {
    EXPECT_FALSE(name == "x.npy" || name == "l.npy" || name == "r.npy" || name == "q.npy")
        << name << " was written";
  }
}

}  // namespace heddle::testing
