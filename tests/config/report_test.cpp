#include "apps/report.hpp"

#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "base/error.hpp"

namespace heddle {
namespace {

using nlohmann::json;

Report full_report() {
  Report report;
  report.status = RunStatus::ok;
  report.m = report.n = 8000;
  report.nrhs = 4;
  report.nodes = 2;
  report.grid = {1, 2};
  report.tile = 512;
  report.strip = 128;
  report.small = 64;
  report.cpu_workers = 1;
  report.window = 64;
  report.priorities = "path";
  report.devices = 1;
  report.device_backend = "emulated";
  report.blas_kernels = "Haswell";
  report.machine_file = "machine.json";
  report.version = "1.2.3";
  report.seconds = {0.01, 0.12, 0.05, 3.21, 0.2, 0.3, 0.07, {}, 3.9};
  report.gflops = 53.2;
  report.gemm_gflops = 55.3;
  report.efficiency = 0.962;
  report.stolen = 0.02;
  report.residual = 0.03;
  report.factorization_residual = 0.021;
  report.solution_residual = 0.03;
  report.log_determinant = -12345.6789012;
  report.tasks = 123456;
  report.messages = 512;
  report.bytes_sent = 1'234'567'890;
  report.copies = 12;
  report.bytes_copied = 1 << 20;
  report.evictions = 3;
  report.placement = "dynamic";
  report.tasks_lent = 5;
  report.peak_bytes = {1ULL << 30U, 512ULL << 20U};
  report.device_memory = 1ULL << 30U;
  report.threads = {{"worker 0", 0, 3.1, 0.1, 4000}, {"mpi", 1, 0.1, 3.2, 0}};
  return report;
}

TEST(Report, SurvivesTheWayThroughJson) {
  const Report report = full_report();
  EXPECT_EQ(report_from_json(json::parse(to_json(report).dump())), report);
  EXPECT_EQ(report_from_json(to_json(Report{})), Report{});
}

TEST(Report, HasExactlyTheDocumentedFields) {
  const json written = to_json(Report{});
  std::vector<std::string> names;
  for (const auto& [name, value] : written.items()) names.push_back(name);
  const std::vector<std::string> expected{"blas_kernels",
                                          "bytes_copied",
                                          "bytes_sent",
                                          "chosen",
                                          "copies",
                                          "cpu_workers",
                                          "device_backend",
                                          "device_memory",
                                          "devices",
                                          "efficiency",
                                          "evictions",
                                          "factorization",
                                          "factorization_residual",
                                          "gemm_gflops",
                                          "gflops",
                                          "grid",
                                          "hierarchy",
                                          "hint",
                                          "info",
                                          "inner",
                                          "log_determinant",
                                          "m",
                                          "machine_file",
                                          "messages",
                                          "n",
                                          "nodes",
                                          "nodes_per_host",
                                          "nrhs",
                                          "orthogonality",
                                          "peak_bytes",
                                          "placement",
                                          "priorities",
                                          "reproducible",
                                          "residual",
                                          "residual_norms",
                                          "seconds",
                                          "small",
                                          "solution_residual",
                                          "status",
                                          "stolen",
                                          "strip",
                                          "tasks",
                                          "tasks_lent",
                                          "threads",
                                          "tile",
                                          "tree",
                                          "verification",
                                          "version",
                                          "virtual",
                                          "window"};
  EXPECT_EQ(names, expected);
  const json full = to_json(full_report());
  EXPECT_EQ(full["grid"], (json{1, 2}));
  EXPECT_EQ(full["seconds"]["factor"], 3.21);
  EXPECT_EQ(full["peak_bytes"]["device"], 512 << 20);
  EXPECT_EQ(full["threads"][0]["role"], "worker 0");
}

TEST(Report, WhatDoesNotApplyOrIsNoNumberIsNull) {
  Report report;
  report.residual = std::numeric_limits<double>::quiet_NaN();
  report.gflops = std::numeric_limits<double>::infinity();
  const json written = to_json(report);
  EXPECT_TRUE(written["residual"].is_null());
  EXPECT_TRUE(written["gflops"].is_null());
  EXPECT_TRUE(written["orthogonality"].is_null());
  EXPECT_TRUE(written["seconds"]["read"].is_null());
}

TEST(Report, NamesEveryStatus) {
  EXPECT_EQ(status_name(RunStatus::ok), "ok");
  EXPECT_EQ(status_name(RunStatus::not_positive_definite), "not_positive_definite");
  EXPECT_EQ(status_name(RunStatus::rank_deficient), "rank_deficient");
  EXPECT_EQ(status_name(RunStatus::failed), "failed");
}

TEST(Report, ReadingNamesTheFieldThatIsMissingOrWrong) {
  json incomplete = to_json(Report{});
  incomplete.erase("tasks");
  json wrong = to_json(Report{});
  wrong["status"] = "fine";
  for (const auto& [bad, word] : {std::pair{incomplete, "tasks"}, std::pair{wrong, "fine"}}) {
    try {
      static_cast<void>(report_from_json(bad));
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  }
}

TEST(Report, IsValidJsonEvenWithNamesThatAreNoText) {
  Report report;
  report.machine_file = "\xFF.json";
  EXPECT_TRUE(json::accept(json_text(to_json(report))));
}

TEST(Report, ComesBackFromItsText) {
  EXPECT_EQ(report_from_json(json::parse(json_text(to_json(full_report())))), full_report());
}

TEST(FinalTable, ShowsPhasesChecksTrafficAndThreads) {
  const std::string expected =
      R"(heddle 1.2.3: cholesky of 8000 x 8000, 4 right-hand sides
--------------------------------------------------------------------------------
  status              solved
  nodes               2 (grid 1 x 2), 1 CPU worker and 1 emulated device each
  tiles               512, strip 128 in pieces of 64
  kernels             OpenBLAS Haswell, machine file machine.json

  phase                  seconds
  start                    0.010
  read                     0.120
  prepare                  0.050
  factor                   3.210   53.2 GFLOP/s, 96.2 % of DGEMM's 55.3
  solve                    0.200
  verify                   0.300
  write                    0.070
  total                    3.900

  factor residual          0.021   ok
  solution residual         0.03   ok
  log-determinant     -12345.6789012

  tasks                   123456
  messages                   512   1.15 GiB
  copies                      12   1.00 MiB
  run by CPUs                  5   of devices' tasks
  evictions                    3
  peak host memory      1.00 GiB
  peak device memory  512.00 MiB

  thread                    node   busy (s)  waiting (s)      busy       tasks
  worker 0                     0      3.100        0.100    96.9 %        4000
  mpi                          1      0.100        3.200     3.0 %           0
)";
  EXPECT_EQ(final_table(full_report()), expected);
}

TEST(FinalTable, TellsWhatOfTheFactorizationWasBesideTheReading) {
  Report report = full_report();
  report.seconds.overlap = 0.08;
  report.gflops = report.gemm_gflops = report.efficiency = std::nullopt;
  EXPECT_NE(final_table(report).find("  factor                   3.210\n"
                                     "                      0.080 of them while the file was read\n"
                                     "  solve "),
            std::string::npos)
      << final_table(report);
  EXPECT_EQ(report_from_json(to_json(report)), report);
}

TEST(FinalTable, TellsWhatAVirtualMachinesHostTookWhereItIsEnough) {
  Report report = full_report();
  report.stolen = 0.1;  // of 2 workers' 3.21 s
  EXPECT_NE(final_table(report).find(
                "  factor                   3.210   53.2 GFLOP/s, 96.2 % of DGEMM's 55.3\n"
                "                      this virtual machine's host gave 0.10 s of its processor\n"
                "                      time, 1.6 % of the workers', to others meanwhile\n"),
            std::string::npos)
      << final_table(report);
  report.stolen.reset();
  EXPECT_EQ(final_table(report).find("virtual machine"), std::string::npos);
}

TEST(Report, OfARunBeforeStolenTimeWasToldIsRead) {
  json old = to_json(full_report());
  old.erase("stolen");
  EXPECT_EQ(report_from_json(old).stolen, std::nullopt);
}

TEST(FinalTable, ShowsWhatBelongsToQr) {
  Report report;
  report.factorization = "qr";
  report.status = RunStatus::rank_deficient;
  report.info = 4;
  report.m = 900;
  report.n = 30;
  report.nrhs = 2;
  report.tile = 16;
  report.inner = 8;
  report.virtual_tiles = 5;
  report.tree = "binomial";
  report.residual_norms = std::vector<double>{0.25, 1.5};
  EXPECT_EQ(report_from_json(json::parse(to_json(report).dump())), report);
  const std::string table = final_table(report);
  for (const char* row : {"qr of 900 x 30, 2 right-hand sides\n", "RANK DEFICIENT, info = 4\n",
                          "tiles               16, inner 8, virtual 5, binomial tree\n",
                          "|b - A x|                 0.25 to 1.5, of 2 right-hand sides\n"}) {
    EXPECT_NE(table.find(row), std::string::npos) << row << table;
  }
}

TEST(FinalTable, ShowsAFailureWithItsHintAndNothingThatWasNotComputed) {
  Report report;
  report.version = "1.2.3";
  report.status = RunStatus::not_positive_definite;
  report.info = 17;
  report.hint =
      "pivot 17 is -3.25e-5: the matrix is not positive definite there; add a nugget to the "
      "diagonal, or use factorization: qr";
  report.m = report.n = 100;
  report.cpu_workers = 2;
  report.reproducible = false;
  report.tasks = 40;
  const std::string expected =
      R"(heddle 1.2.3: cholesky of 100 x 100
--------------------------------------------------------------------------------
  status              NOT POSITIVE DEFINITE, info = 17
                      pivot 17 is -3.25e-5: the matrix is not positive definite
                      there; add a nugget to the diagonal, or use factorization:
                      qr
  nodes               1 (grid 1 x 1), 2 CPU workers
  reproducible        no: dynamic placement depends on timing

  tasks                       40
)";
  EXPECT_EQ(final_table(report), expected);
}

TEST(FinalTable, GivesAVerdictOnEveryResidual) {
  Report report;
  report.solution_residual = 10.0;
  report.factorization_residual = std::numeric_limits<double>::quiet_NaN();
  report.orthogonality = 9.9;
  const std::string table = final_table(report);
  EXPECT_NE(table.find("solution residual           10   TOO LARGE, expected < 10\n"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("factor residual            nan   TOO LARGE"), std::string::npos);
  EXPECT_NE(table.find("orthogonality              9.9   ok"), std::string::npos);
}

TEST(FinalTable, SumsUpTheThreadsOfManyNodesAndStaysWithin80Columns) {
  Report report = full_report();
  report.threads.clear();
  report.hint = std::string(200, 'x') + " " + std::string(30, 'y');
  for (int node = 0; node < 30; ++node) {
    report.threads.push_back({"worker 0", node, 1, 1, 10});
    report.threads.push_back({"worker 1", node, 3, 1, 20});
    report.threads.push_back({"mpi", node, 0, 0, 0});
  }
  const std::string table = final_table(report);
  EXPECT_NE(table.find("  60 x worker                all    120.000       60.000    66.7 %         "
                       "900\n"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("  30 x mpi"), std::string::npos);
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

}  // namespace
}  // namespace heddle
