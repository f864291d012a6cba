#include "apps/results.hpp"

#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <vector>

#include "node-runtime/trace/atomic_file.hpp"
#include "tests/support/files.hpp"

namespace heddle {
namespace {

using testing::expect_error;
using testing::read_file;
using testing::TemporaryFolder;

class ResultsOf : public ::testing::Test {
 protected:
  ResultsOf() { results_ = std::make_unique<Results>(janitor_); }
  void expect_files(const std::vector<std::string>& expected) const {
    std::vector<std::string> names = folder_.names();
    std::sort(names.begin(), names.end());
    EXPECT_EQ(names, expected);
  }

  TemporaryFolder folder_;
  Janitor janitor_{false};
  std::unique_ptr<Results> results_;
};

}  // namespace

TEST_F(ResultsOf, a_command_get_their_names_together) {
  folder_.write("x.npy", "old");
  results_->add_text(folder_ / "x.npy", "new");
  results_->add_text(folder_ / "r.json", "report");
  EXPECT_EQ(read_file(folder_ / "x.npy"), "old");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "r.json"));
  EXPECT_EQ(results_->account(), "no results were written");
  results_->commit();
  EXPECT_EQ(read_file(folder_ / "x.npy"), "new");
  EXPECT_EQ(read_file(folder_ / "r.json"), "report");
  expect_files({"r.json", "x.npy"});
  EXPECT_EQ(results_->account(), "all results had been written: '" + folder_ / "x.npy" + "', '" +
                                     folder_ / "r.json" + "'");
}

TEST_F(ResultsOf, a_command_without_any_are_committed_in_vain) {
  results_->commit();
  EXPECT_FALSE(results_->are_written());
}

TEST_F(ResultsOf, a_writer_with_a_temporary_name_of_its_own_are_staged) {
  {
    trace::AtomicFile file(results_->stage(folder_ / "t.json"));
    file.commit();
  }
  results_->commit();
  expect_files({"t.json"});
}

TEST_F(ResultsOf, a_command_that_fails_are_removed) {
  results_->add_text(folder_ / "x.npy", "new");
  results_->add_text(folder_ / "l.npy", "new");
  results_.reset();
  expect_files({});
}

TEST_F(ResultsOf, a_commit_that_fails_half_way_have_their_old_contents_again) {
  folder_.write("a", "old");
  results_->add_text(folder_ / "a", "new");
  results_->add_text(folder_ / "b", "new");
  results_->add_text(folder_ / "c", "new");
  std::filesystem::create_directory(folder_ / "c");  // nothing can be renamed to that
  expect_error(ErrorCode::internal, {folder_ / "c", "Is a directory", "no results were written"},
               [&] { results_->commit(); });
  EXPECT_FALSE(results_->are_written());
  EXPECT_EQ(read_file(folder_ / "a"), "old");
  expect_files({"a", "c"});
}

TEST_F(ResultsOf, a_commit_that_cannot_be_taken_back_are_named) {
  folder_.write("a", "old");
  results_->add_text(folder_ / "a", "new");
  results_->add_text(folder_ / "b", "new");
  std::filesystem::create_directory(folder_ / "b");
  // Where the old one would be kept there is a folder, so it cannot be.
  for (const std::string& name : folder_.names()) {
    if (name.starts_with("a.")) std::filesystem::create_directory(folder_ / (name + ".old"));
  }
  expect_error(ErrorCode::internal,
               {folder_ / "b", "of the results only these were written: '" + folder_ / "a" + "'"},
               [&] { results_->commit(); });
  EXPECT_EQ(read_file(folder_ / "a"), "new");
}

TEST_F(ResultsOf, a_command_keep_links_and_modes) {
  std::filesystem::create_directory(folder_ / "far");
  ASSERT_EQ(::chmod(folder_.write("far/x", "old").c_str(), 0640), 0);
  std::filesystem::create_symlink("far/x", folder_ / "x");
  std::filesystem::create_symlink("far/y", folder_ / "y");
  results_->add_text(folder_ / "x", "new");
  results_->add_text(folder_ / "y", "new");
  results_->commit();
  expect_files({"far", "x", "y"});
  for (const char* name : {"x", "y"}) {
    EXPECT_TRUE(std::filesystem::is_symlink(folder_ / name)) << name;
    EXPECT_EQ(read_file(folder_ / "far/" + name), "new") << name;
  }
  struct stat file {};
  ASSERT_EQ(::stat((folder_ / "far/x").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 07777U, 0640U);
}

TEST_F(ResultsOf, an_interrupted_command_are_not_committed) {
  folder_.write("a", "old");
  results_->add_text(folder_ / "a", "new");
  EXPECT_EQ(results_->seal(), "no results were written");
  expect_error(ErrorCode::interrupted, {"ending"}, [&] { results_->commit(); });
  EXPECT_EQ(read_file(folder_ / "a"), "old");
}

/// Whenever the interruption comes, all are there or none, and it says which.
TEST_F(ResultsOf, an_interrupted_command_are_all_there_or_none) {
  constexpr int rounds = 200;
  for (int round = 0; round < rounds; ++round) {
    Results results(janitor_);
    for (const char* name : {"a", "b", "c"}) {
      folder_.write(name, "old");
      results.add_text(folder_ / name, "new");
    }
    bool are_committed = false;
    std::thread committing([&] {
      try {
        results.commit();
        are_committed = true;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::interrupted);
      }
    });
    const bool are_there = results.seal() != "no results were written";
    for (const char* name : {"a", "b", "c"}) {
      EXPECT_EQ(read_file(folder_ / name), are_there ? "new" : "old");
    }
    committing.join();
    EXPECT_EQ(are_committed, are_there);
  }
}

}  // namespace heddle
