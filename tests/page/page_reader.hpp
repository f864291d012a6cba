#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "replay/run.hpp"

/// What assets/decode.js does, for tests: a page's parts, and the columns in them.
namespace heddle::page::test {

/// The text between two marks; nothing where they are not.
[[nodiscard]] std::optional<std::string> between(const std::string& text, const std::string& begin,
                                                 const std::string& end);

/// A part of a page, uncompressed; nothing where it was left out.
[[nodiscard]] std::optional<std::string> part_of(const std::string& page, std::size_t run,
                                                 const std::string& name);
[[nodiscard]] nlohmann::json index_of(const std::string& page);

class ColumnReader {
 public:
  explicit ColumnReader(std::string bytes) : bytes_(std::move(bytes)) {}
  [[nodiscard]] std::uint64_t one();
  [[nodiscard]] std::int64_t signed_one();
  [[nodiscard]] std::vector<std::int64_t> column(std::size_t count);
  [[nodiscard]] std::vector<std::int64_t> signed_column(std::size_t count);
  [[nodiscard]] bool at_end() const { return at_ == bytes_.size(); }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

struct DecodedTasks {
  std::vector<std::int64_t> counts;  ///< items by thread
  std::vector<std::int64_t> start_ns;
  std::vector<std::int64_t> end_ns;
  std::vector<std::int64_t> kernel;
  std::vector<std::int64_t> count;
  std::vector<std::int64_t> stream;  ///< from 1; 0: of no device
  std::vector<std::int64_t> busy_ns;
  std::vector<std::size_t> thread;
};
[[nodiscard]] DecodedTasks decode_tasks(const std::string& bytes, std::size_t threads);

struct DecodedDetails {
  std::vector<std::int64_t> job;
  std::vector<std::int64_t> matrix;
  std::vector<std::int64_t> tile;
  std::vector<std::int64_t> order;
  std::vector<std::int64_t> priority;
  std::vector<std::int64_t> fine;  ///< its number, from 1; 0: no fine task
  std::vector<std::int64_t> last;  ///< the one that it waited for last; 0: none
};
[[nodiscard]] DecodedDetails decode_details(const std::string& bytes, const DecodedTasks& tasks);

/// By task.
[[nodiscard]] std::vector<std::vector<replay::Access>> decode_accesses(
    const std::string& bytes, const DecodedTasks& tasks, const DecodedDetails& details,
    const std::map<std::int64_t, std::int64_t>& matrix_rows);

}  // namespace heddle::page::test
