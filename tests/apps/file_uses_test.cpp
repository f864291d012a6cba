#include "apps/file_uses.hpp"

#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/support/files.hpp"

namespace heddle {
namespace {

using testing::expect_error;
using testing::TemporaryFolder;

class FileUsesTest : public ::testing::Test {
 protected:
  FileUsesTest() {
    folder_.write("k.npy", "matrix");
    std::filesystem::create_symlink(".", folder_ / "d");
  }
  void expect_clash(const FileUses& files, const std::vector<std::string>& parts) {
    expect_error(ErrorCode::usage, parts, [&] { files.check_distinct(); });
  }
  TemporaryFolder folder_;
  Janitor janitor_{false};
};

}  // namespace

TEST_F(FileUsesTest, different_files_go_together) {
  FileUses files;
  files.reads("matrix", folder_ / "k.npy");
  files.reads("sides", folder_ / "k.npy");  // reading twice is fine
  files.writes("solution", folder_ / "x.npy");
  files.writes("report", folder_ / "d/r.json");
  files.writes_run("trace", folder_ / "t");
  EXPECT_NO_THROW(files.check_distinct());
  EXPECT_NO_THROW(files.check_writable(janitor_));
  EXPECT_EQ(folder_.names().size(), 2U);
}

TEST_F(FileUsesTest, an_output_is_no_input_by_whatever_name) {
  std::filesystem::create_symlink("k.npy", folder_ / "link");
  std::filesystem::create_hard_link(folder_ / "k.npy", folder_ / "hard");
  for (const char* name : {"k.npy", "d/k.npy", "./d/./k.npy", "link", "hard"}) {
    SCOPED_TRACE(name);
    for (const bool output_first : {false, true}) {
      FileUses files;
      if (output_first) files.writes("report", folder_ / name);
      files.reads("matrix", folder_ / "k.npy");
      if (!output_first) files.writes("report", folder_ / name);
      expect_clash(files, {"report: ", name, "would overwrite matrix", "k.npy"});
    }
  }
}

TEST_F(FileUsesTest, two_outputs_are_no_one_file_even_before_it_is_there) {
  std::filesystem::create_symlink("x.npy", folder_ / "link");
  for (const char* name : {"x.npy", "d/x.npy", "d/d/x.npy", "link"}) {
    SCOPED_TRACE(name);
    FileUses files;
    files.writes("solution", folder_ / "x.npy");
    files.writes("factor", folder_ / name);
    expect_clash(files, {"factor", name, "solution", "both name the same file"});
  }
}

TEST_F(FileUsesTest, a_run_is_its_folder_and_its_nodes_files) {
  std::filesystem::create_directory(folder_ / "t");
  folder_.write("t/node-0.trace", "record");
  for (const char* name : {"t/node-0.trace", "d/t/node-0.trace", "t/node-7.trace"}) {
    SCOPED_TRACE(name);
    FileUses analysis;
    analysis.reads_run("the run", folder_ / "t");
    analysis.writes("--html", folder_ / name);
    expect_clash(analysis, {"--html", "would overwrite the run"});
    FileUses solving;
    solving.writes_run("--trace", folder_ / "t");
    solving.writes("--report", folder_ / name);
    expect_clash(solving, {"--report", "--trace", "the same file"});
  }
  for (const char* name : {"t", "t/", "d/t", "d/t/"}) {
    SCOPED_TRACE(name);
    FileUses files;
    files.reads_run("the run", folder_ / "t/node-0.trace");
    files.writes_run("--trace", folder_ / name);
    expect_clash(files, {"--trace", "would overwrite the run"});
  }
  FileUses files;
  files.reads_run("the run", folder_ / "t");
  files.writes("--html", folder_ / "t/page.html");
  files.writes_run("--trace", folder_ / "u/");
  EXPECT_NO_THROW(files.check_distinct());
}

TEST_F(FileUsesTest, a_run_whose_files_are_links_is_where_these_lead) {
  std::filesystem::create_directory(folder_ / "t");
  folder_.write("kept.trace", "record");
  std::filesystem::create_symlink("../kept.trace", folder_ / "t/node-0.trace");
  FileUses files;
  files.reads_run("the run", folder_ / "t");
  files.writes("--report", folder_ / "kept.trace");
  expect_clash(files, {"--report", "would overwrite the run"});
}

TEST_F(FileUsesTest, a_folder_for_a_run_may_end_in_a_slash) {
  for (const char* name : {"t", "t/", "t//"}) {
    FileUses files;
    files.writes_run("--trace", folder_ / name);
    EXPECT_NO_THROW(files.check_writable(janitor_)) << name;
  }
  FileUses files;
  files.writes("--report", folder_ / "r/");
  expect_error(ErrorCode::usage, {"--report", "it is a folder"},
               [&] { files.check_writable(janitor_); });
}

TEST_F(FileUsesTest, a_dash_is_no_name) {
  FileUses files;
  expect_error(ErrorCode::usage, {"--report", "standard output"},
               [&] { files.writes("--report", "-"); });
  expect_error(ErrorCode::usage, {"--trace", "standard output"},
               [&] { files.writes_run("--trace", "-"); });
}

TEST_F(FileUsesTest, links_in_a_circle_are_for_those_who_open_them) {
  std::filesystem::create_symlink("b", folder_ / "a");
  std::filesystem::create_symlink("a", folder_ / "b");
  FileUses files;
  files.reads("matrix", folder_ / "a");
  EXPECT_NO_THROW(files.check_distinct());
}

}  // namespace heddle
