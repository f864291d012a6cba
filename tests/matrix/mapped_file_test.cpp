#include "algorithms/matrix/mapped_file.hpp"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "algorithms/matrix/npy_file.hpp"
#include "tests/matrix/files.hpp"

namespace heddle {
namespace {

using testing::expect_error;
using testing::TemporaryFolder;

constexpr std::size_t size = 1'000'000;

/// As if it had been written to an hour ago, so that the next write is seen to be another one.
void make_older(const std::string& path) {
  std::filesystem::last_write_time(
      path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
}

std::string file_of_ones(const TemporaryFolder& folder) {
  const std::string path = folder.write("a.npy", std::string(size, '\1'));
  make_older(path);
  return path;
}

std::ptrdiff_t ones(const MappedFile& file) {
  return std::count(file.content().begin(), file.content().end(), '\1');
}

/// Outside of every guard: nothing but a crash is right.
void read_a_lost_page(const std::string& path) {
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  const auto* content =
      static_cast<const volatile char*>(::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0));
  if (::ftruncate(file, 0) == 0) static_cast<void>(content[0]);
}

}  // namespace

TEST(MappedFile, that_nobody_changes_passes_its_check) {
  const TemporaryFolder folder;
  const MappedFile file(file_of_ones(folder));
  EXPECT_EQ(ones(file), size);
  EXPECT_FALSE(file.is_broken());
  EXPECT_NO_THROW(file.check_unchanged());
}

TEST(MappedFile, that_becomes_shorter_has_zeros_instead_and_says_so) {
  const TemporaryFolder folder;
  const std::string path = file_of_ones(folder);
  for (int round = 0; round < 3; ++round) {  // guards follow each other
    std::filesystem::resize_file(path, size);
    const MappedFile file(path);
    const MappedFile other(folder.write("b.npy", std::string(size, '\1')));
    EXPECT_FALSE(file.is_broken());
    std::filesystem::resize_file(path, 5000);
    EXPECT_LE(ones(file), 8192);
    EXPECT_TRUE(file.is_broken());
    expect_error(ErrorCode::usage, {"a.npy", "shorter", "1000000 bytes", "5000 now"},
                 [&] { file.check_unchanged(); });
    EXPECT_EQ(ones(other), size);
    EXPECT_NO_THROW(other.check_unchanged());
  }
}

TEST(MappedFile, that_grows_or_is_written_to_says_so) {
  const TemporaryFolder folder;
  const std::string path = file_of_ones(folder);
  {
    const MappedFile file(path);
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary) << "\2";
    expect_error(ErrorCode::usage, {"a.npy", "was changed while it was read"},
                 [&] { file.check_unchanged(); });
  }
  const MappedFile file(path);
  std::filesystem::resize_file(path, size + 1);
  expect_error(ErrorCode::usage, {"a.npy", "longer", "1000001 now"},
               [&] { file.check_unchanged(); });
}

TEST(MappedFile, whose_name_goes_to_another_file_stays_what_it_was) {
  const TemporaryFolder folder;
  const std::string path = file_of_ones(folder);
  const MappedFile file(path);
  std::filesystem::rename(folder.write("next.npy", "2"), path);
  EXPECT_EQ(ones(file), size);
  EXPECT_NO_THROW(file.check_unchanged());
}

TEST(MappedFile, tells_a_change_before_what_its_content_seems_to_be) {
  const TemporaryFolder folder;
  const std::string path = file_of_ones(folder);
  const MappedFile file(path);
  const auto misread = [&] {
    std::filesystem::resize_file(path, 10);
    throw Error(ErrorCode::usage, "there is no comma");
  };
  expect_error(ErrorCode::usage, {"shorter"}, [&] { file.interpret(misread); });
}

TEST(MappedFile, leaves_other_bus_errors_to_the_process) {
  const TemporaryFolder folder;
  const MappedFile file(file_of_ones(folder));
  const std::string other = folder.write("b.npy", std::string(size, '\1'));
  EXPECT_EXIT(read_a_lost_page(other), ::testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(::raise(SIGBUS), ::testing::KilledBySignal(SIGBUS), "");
}

TEST(NpySource, of_a_file_that_becomes_shorter_throws_instead_of_reading_what_is_not_there) {
  const TemporaryFolder folder;
  std::string header = "{'descr': '<f8', 'fortran_order': True, 'shape': (1000, 100), }";
  header.resize(117, ' ');
  const std::string path = folder.write("k.npy", std::string("\x93NUMPY\x01\x00\x76\x00", 10) +
                                                     header + "\n" + std::string(800'000, '\0'));
  const NpySource source(path);
  std::filesystem::resize_file(path, 100'000);
  expect_error(ErrorCode::usage, {"k.npy", "shorter"}, [&] { testing::read_all(source); });
  expect_error(ErrorCode::usage, {"k.npy", "shorter"}, [&] { source.check_unchanged(); });
}

}  // namespace heddle
