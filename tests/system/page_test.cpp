#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tests/system/heddle_run.hpp"

/// `heddle analyze --html`, and what a browser makes of the page where Chromium is installed.
namespace heddle {
namespace {

using nlohmann::json;
using testing::Ended;
using testing::HeddleRun;
using testing::Process;

/// Where Chromium is, if it is.
std::optional<std::string> chromium() {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    for (const char* const name : {"chromium", "chromium-browser", "google-chrome"}) {
      const auto file = std::filesystem::path(folder) / name;
      if (std::filesystem::exists(file)) return file.string();
    }
  }
  return std::nullopt;
}

void replace_all(std::string& text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at)) {
    text.replace(at, what.size(), by);
    at += by.size();
  }
}

class PageOfRuns : public HeddleRun {
 protected:
  static constexpr const char* problem =
      "problem: {matrix: {generate: spd, n: 400}}\nlayout: {tile: 50, strip: 0}\n"
      "runtime: {cpu_workers: 2}\n";

  /// The document after its program has run.
  [[nodiscard]] std::string dom(const std::string& browser, const std::string& file) const {
    const Ended ended =
        Process({browser, "--headless=new", "--no-sandbox", "--disable-gpu",
                 "--user-data-dir=" + (folder_ / "profile"), "--virtual-time-budget=20000",
                 "--dump-dom", "file://" + (folder_ / file)},
                folder_.path(), std::chrono::seconds(120))
            .wait();
    EXPECT_EQ(ended.status, 0) << ended.error;
    return ended.out;
  }
  /// What the page's program has added up from the page's own columns.
  [[nodiscard]] static json decoded(const std::string& dom) {
    const std::string begin = R"(<pre id="decoded" hidden="">)";
    const std::size_t from = dom.find(begin);
    if (from == std::string::npos) return nullptr;
    std::string text =
        dom.substr(from + begin.size(), dom.find("</pre>", from) - from - begin.size());
    replace_all(text, "&lt;", "<");
    replace_all(text, "&gt;", ">");
    replace_all(text, "&amp;", "&");
    return json::parse(text, nullptr, false);
  }
  static void expect_same(const json& page, const json& report) {
    const double seconds = report.at("seconds").get<double>();
    EXPECT_NEAR(page.at("seconds").get<double>(), seconds, 1e-9);
    EXPECT_EQ(page.at("tasks"), report.at("tasks"));
    EXPECT_EQ(page.at("dependencies"), report.at("dependencies"));
    for (const char* const what : {"messages", "copies"}) {
      EXPECT_EQ(page.at(what).at("count"), report.at(what).at("count")) << what;
      EXPECT_EQ(page.at(what).at("bytes").get<double>(), report.at(what).at("bytes").get<double>());
    }
    ASSERT_EQ(page.at("threads").size(), report.at("threads").size());
    for (std::size_t i = 0; i < report.at("threads").size(); ++i) {
      const json& mine = page.at("threads").at(i);
      const json& known = report.at("threads").at(i);
      EXPECT_EQ(mine.at("name"), known.at("name"));
      EXPECT_NEAR(mine.at("busy").get<double>(), known.at("busy").get<double>(), 1e-9);
      for (const auto& [cause, idle] : known.at("idle").items()) {
        EXPECT_NEAR(mine.at("idle").at(cause).get<double>(), idle.get<double>(), 1e-9) << cause;
      }
    }
    ASSERT_EQ(page.at("kernels").size(), report.at("kernels").size());
    for (const json& known : report.at("kernels")) {
      const json& mine = page.at("kernels").at(known.at("kernel").get<std::string>() + " on a " +
                                               known.at("role").get<std::string>());
      EXPECT_EQ(mine.at("count"), known.at("count"));
      EXPECT_NEAR(mine.at("seconds").get<double>(), known.at("seconds").get<double>(), 1e-9);
      EXPECT_NEAR(mine.at("median_us").get<double>(), known.at("median_us").get<double>(), 1e-3);
    }
  }
};

}  // namespace

TEST_F(PageOfRuns, is_one_file_and_its_size_is_told) {
  ASSERT_EQ(solve(problem, 2, {"--trace", "run"}).status, 0);
  const Ended ended = run(on(1, {"analyze", "run", "run", "--html", "page.html"}));
  ASSERT_EQ(ended.status, 0) << ended.error;
  EXPECT_NE(ended.out.find("page.html: "), std::string::npos) << ended.out;
  const std::string page = testing::read_file(folder_ / "page.html");
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
  EXPECT_NE(page.find("id=\"run-1-accesses\""), std::string::npos);
}

TEST_F(PageOfRuns, is_refused_where_it_cannot_be_written) {
  ASSERT_EQ(solve(problem, 1, {"--trace", "run"}).status, 0);
  const Ended ended = run(on(1, {"analyze", "run", "--html", "nowhere/page.html"}));
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.error.find("nowhere/page.html"), std::string::npos) << ended.error;
  EXPECT_EQ(ended.out, "") << "before anything is read";
}

TEST_F(PageOfRuns, shows_in_a_browser_what_the_report_says) {
  const auto browser = chromium();
  if (!browser) GTEST_SKIP() << "there is no Chromium to open the page with (apt install chromium)";
  ASSERT_EQ(solve(problem, 2, {"--trace", "two<b>nodes"}).status, 0);
  ASSERT_EQ(solve(problem, 1,
                  {"--trace", "device", "--set",
                   "runtime.devices={backend: emulated, per_node: 2, memory: 64MiB}"})
                .status,
            0);
  const Ended ended =
      run(on(1, {"analyze", "two<b>nodes", "device", "--html", "page.html", "--report", "a.json"}));
  ASSERT_EQ(ended.status, 0) << ended.error;
  const std::string shown = dom(*browser, "page.html");
  const json page = decoded(shown);
  ASSERT_TRUE(page.is_object()) << shown.substr(0, 4000);
  const json runs = json::parse(testing::read_file(folder_ / "a.json")).at("runs");
  ASSERT_EQ(page.at("runs").size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) expect_same(page.at("runs").at(i), runs.at(i));
  EXPECT_GT(runs.at(1).at("copies").at("count").get<int>(), 0);
  EXPECT_NE(shown.find("<h1>Cholesky, 400 × 400</h1>"), std::string::npos);
  EXPECT_NE(shown.find("two&lt;b&gt;nodes"), std::string::npos) << "a name is text";
  EXPECT_EQ(shown.find("two<b>nodes"), std::string::npos);
  EXPECT_NE(shown.find("data-ready=\"yes\""), std::string::npos);
}

}  // namespace heddle
