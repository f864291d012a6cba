#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/system/heddle_run.hpp"

namespace heddle::testing {

/// `heddle simulate` and `heddle replay`, on a machine of a file, whose results do not depend on
/// this one.
class SimulateRun : public HeddleRun {
 protected:
  void SetUp() override {
    HeddleRun::SetUp();
    folder_.write("p.yaml",
                  "problem: {matrix: {generate: spd, n: 800}}\nlayout: {tile: 100, strip: 0}\n");
    folder_.write("q.yaml",
                  "problem: {factorization: qr, matrix: {generate: random, m: 1200, n: 600}}\n"
                  "layout: {tile: 100, strip: 0, inner: 20, virtual: 2}\n");
    std::string machine =
        "heddle_simulated_machine: 1\nname: small\nnodes: 4\ncpu_workers: 3\n"
        "kernels:\n  host:\n";
    for (const char* kernel :
         {"potrf", "trsm", "syrk", "gsmm", "geqrt", "tsqrt", "unmqr", "tsmqr", "ttqrt", "ttmqr"}) {
      machine += std::string("    - {kernel: ") + kernel + ", size: 100, gflops: 10}\n";
    }
    folder_.write("m.yaml", machine);
  }
  [[nodiscard]] Ended simulate(std::vector<std::string> words) {
    words.insert(words.begin(), "simulate");
    return run(on(1, words));
  }
  static void expect_80_columns(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      const auto starts = [](char c) { return (c & 0xC0) != 0x80; };  // a character of UTF-8
      EXPECT_LE(std::ranges::count_if(line, starts), 80) << line;
    }
  }
  [[nodiscard]] nlohmann::json report(const std::string& name) {
    return nlohmann::json::parse(read_file(folder_ / name));
  }
};

}  // namespace heddle::testing
