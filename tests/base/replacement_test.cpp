#include "base/replacement.hpp"

#include <cerrno>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "tests/support/files.hpp"

namespace heddle {
namespace {

using testing::expect_error;
using testing::OrdinaryUser;
using testing::TemporaryFolder;

struct stat status_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status;
}

/// Makes the new file and gives it its name.
void replace(const std::string& path) {
  const std::string target = target_of(path);
  const std::string temporary = target + ".part";
  const int file = create_replacement(temporary, target);
  ASSERT_GE(file, 0);
  ::close(file);
  std::filesystem::rename(temporary, target);
}

}  // namespace

TEST(TargetOf, is_the_path_itself_where_there_is_no_link) {
  const TemporaryFolder folder;
  EXPECT_EQ(target_of("x.npy"), "x.npy");
  EXPECT_EQ(target_of(folder / "none/x.npy"), folder / "none/x.npy");
}

TEST(TargetOf, follows_links_even_to_what_is_not_there_yet) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "far");
  std::filesystem::create_symlink("b", folder / "a");
  std::filesystem::create_symlink("far/x.npy", folder / "b");
  EXPECT_EQ(target_of(folder / "a"), folder / "far/x.npy");
  std::filesystem::create_symlink(folder / "far/y.npy", folder / "c");
  EXPECT_EQ(target_of(folder / "c"), folder / "far/y.npy");
}

TEST(TargetOf, refuses_links_in_a_circle) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("b", folder / "a");
  std::filesystem::create_symlink("a", folder / "b");
  expect_error(ErrorCode::usage, {folder / "a", "circle"},
               [&] { static_cast<void>(target_of(folder / "a")); });
  expect_error(ErrorCode::usage, {folder / "a", "circle"},
               [&] { check_output_path(folder / "a"); });
}

TEST(CreateReplacement, gives_the_file_the_mode_of_the_one_before) {
  const TemporaryFolder folder;
  const std::string path = folder.write("x.npy", "old");
  for (const mode_t mode : {0600U, 0664U, 0755U, 02640U}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    replace(path);
    EXPECT_EQ(status_of(path).st_mode & 07777U, mode);
  }
}

TEST(CreateReplacement, gives_the_file_the_owner_of_the_one_before) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files to others";
  const TemporaryFolder folder;
  const std::string path = folder.write("x.npy", "old");
  ASSERT_EQ(::chown(path.c_str(), 1234, 4321), 0);
  ASSERT_EQ(::chmod(path.c_str(), 04755), 0);
  replace(path);
  EXPECT_EQ(status_of(path).st_uid, 1234U);
  EXPECT_EQ(status_of(path).st_gid, 4321U);
  EXPECT_EQ(status_of(path).st_mode & 07777U, 04755U);
}

TEST(CreateReplacement, refuses_what_would_change_the_owner_and_leaves_nothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs files of two users";
  const TemporaryFolder folder;
  const std::string path = folder.write("x.npy", "theirs");
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
  const OrdinaryUser user;
  EXPECT_NO_THROW(check_output_path(path));
  expect_error(ErrorCode::usage, {path, "user 0", "another name"},
               [&] { static_cast<void>(create_replacement(path + ".part", path)); });
  EXPECT_EQ(folder.names(), std::vector<std::string>{"x.npy"});
}

TEST(CreateReplacement, makes_nothing_where_the_name_is_taken) {
  const TemporaryFolder folder;
  const std::string path = folder.write("x.npy.part", "somebody's");
  EXPECT_EQ(create_replacement(path, folder / "x.npy"), -1);
  EXPECT_EQ(errno, EEXIST);
  EXPECT_EQ(testing::read_file(path), "somebody's");
  ::close(renew_replacement(path, folder / "x.npy"));
  EXPECT_EQ(testing::read_file(path), "");
}

TEST(CodeOfWriteFailure, blames_full_disks_and_limits_on_the_surroundings) {
  for (const int error : {ENOSPC, EDQUOT, EFBIG}) {
    EXPECT_EQ(code_of_write_failure(error), ErrorCode::usage);
  }
  EXPECT_EQ(code_of_write_failure(EIO), ErrorCode::internal);
}

TEST(CheckOutputPath, accepts_new_and_existing_files) {
  const TemporaryFolder folder;
  EXPECT_NO_THROW(check_output_path(folder / "x.npy"));
  EXPECT_NO_THROW(check_output_path(folder.write("y.npy", "old")));
  EXPECT_NO_THROW(check_output_path("in_the_working_folder.npy"));
  EXPECT_EQ(folder.names(), std::vector<std::string>{"y.npy"});
}

TEST(CheckOutputPath, refuses_what_cannot_become_a_file) {
  const TemporaryFolder folder;
  const std::string file = folder.write("file", "");
  const auto refused = [](const std::string& path, const std::string& reason) {
    expect_error(ErrorCode::usage, {path, reason}, [&] { check_output_path(path); });
  };
  refused("", "empty");
  refused(folder.path(), "is a folder");
  refused(folder / "new/", "is a folder");
  refused(folder / "none/x.npy", "no folder '" + folder / "none" + "'");
  refused(file + "/x.npy", "not a folder");
  refused("/dev/full", "not a regular file");
}

TEST(CheckOutputPath, refuses_a_folder_that_is_not_writable) {
  const TemporaryFolder folder;
  const std::string locked = folder / "locked";
  std::filesystem::create_directory(locked);
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(locked.c_str(), 0555), 0);
  const OrdinaryUser user;
  expect_error(ErrorCode::usage, {locked, "not writable", "Permission denied"},
               [&] { check_output_path(locked + "/x.npy"); });
}

TEST(CheckOutputPath, refuses_to_replace_another_users_file_in_a_shared_folder) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs files of two users";
  const TemporaryFolder folder;
  const std::string path = folder.write("x.npy", "theirs");
  ASSERT_EQ(::chmod(folder.path().c_str(), 01777), 0);
  const OrdinaryUser user;
  EXPECT_NO_THROW(check_output_path(folder / "y.npy"));
  expect_error(ErrorCode::usage, {path, "another user"}, [&] { check_output_path(path); });
}

TEST(CheckOutputPath, refuses_a_file_that_is_write_protected) {
  const TemporaryFolder folder;
  const std::string path = folder.write("x.npy", "dear");
  ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0444), 0);
  std::filesystem::create_symlink("x.npy", folder / "y.npy");
  const OrdinaryUser user;
  for (const char* name : {"x.npy", "y.npy"}) {
    expect_error(ErrorCode::usage, {name, "write-protected"},
                 [&] { check_output_path(folder / name); });
  }
}

TEST(CheckOutputPath, looks_where_links_lead) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "far");
  std::filesystem::create_symlink("far/x.npy", folder / "x.npy");
  std::filesystem::create_symlink("gone/y.npy", folder / "y.npy");
  EXPECT_NO_THROW(check_output_path(folder / "x.npy"));
  expect_error(ErrorCode::usage, {folder / "y.npy", "no folder '" + folder / "gone'"},
               [&] { check_output_path(folder / "y.npy"); });
}

}  // namespace heddle
