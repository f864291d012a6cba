#include "tests/page/page_reader.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <zlib.h>

namespace heddle::page::test {
namespace {

std::string from_base64(const std::string& text) {
  std::string bytes;
  std::uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::size_t value = letters.find(c);
    EXPECT_NE(value, std::string::npos) << c;
    group = group << 6U | static_cast<std::uint32_t>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(group >> bits & 0xFFU);
  }
  return bytes;
}

std::string inflated(std::string packed) {
  std::string bytes;
  std::string room(std::size_t{1} << 16, '\0');
  z_stream stream{};
  EXPECT_EQ(::inflateInit(&stream), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  for (int status = Z_OK; status == Z_OK;) {
    stream.next_out = reinterpret_cast<Bytef*>(room.data());
    stream.avail_out = static_cast<uInt>(room.size());
    status = ::inflate(&stream, Z_NO_FLUSH);
    EXPECT_GE(status, Z_OK);
    bytes.append(room, 0, room.size() - stream.avail_out);
  }
  ::inflateEnd(&stream);
  return bytes;
}

}  // namespace

std::optional<std::string> between(const std::string& text, const std::string& begin,
                                   const std::string& end) {
  const std::size_t from = text.find(begin);
  if (from == std::string::npos) return std::nullopt;
  const std::size_t to = text.find(end, from + begin.size());
  if (to == std::string::npos) return std::nullopt;
  return text.substr(from + begin.size(), to - from - begin.size());
}

std::optional<std::string> part_of(const std::string& page, std::size_t run,
                                   const std::string& name) {
  const auto text = between(
      page, fmt::format(R"(<script type="text/plain" id="run-{}-{}">)", run, name), "</script>");
  return text ? std::optional(inflated(from_base64(*text))) : std::nullopt;
}

nlohmann::json index_of(const std::string& page) {
  return nlohmann::json::parse(
      between(page, R"(<script type="application/json" id="index">)", "</script>").value());
}

std::uint64_t ColumnReader::one() {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes_.at(at_++));
    value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
    if (byte < 0x80) return value;
  }
}

std::int64_t ColumnReader::signed_one() {
  const std::uint64_t value = one();
  const auto half = static_cast<std::int64_t>(value >> 1U);
  return (value & 1U) != 0 ? -half - 1 : half;
}

std::vector<std::int64_t> ColumnReader::column(std::size_t count) {
  std::vector<std::int64_t> all(count);
  for (auto& value : all) value = static_cast<std::int64_t>(one());
  return all;
}

std::vector<std::int64_t> ColumnReader::signed_column(std::size_t count) {
  std::vector<std::int64_t> all(count);
  for (auto& value : all) value = signed_one();
  return all;
}

DecodedTasks decode_tasks(const std::string& bytes, std::size_t threads) {
  ColumnReader reader(bytes);
  DecodedTasks tasks;
  tasks.counts = reader.column(threads);
  for (std::size_t t = 0; t < threads; ++t) {
    tasks.thread.insert(tasks.thread.end(), static_cast<std::size_t>(tasks.counts[t]), t);
  }
  const std::size_t n = tasks.thread.size();
  tasks.start_ns = reader.signed_column(n);
  tasks.end_ns = reader.column(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (i > 0 && tasks.thread[i] == tasks.thread[i - 1]) tasks.start_ns[i] += tasks.end_ns[i - 1];
    tasks.end_ns[i] += tasks.start_ns[i];
  }
  tasks.kernel = reader.column(n);
  tasks.count = reader.column(n);
  tasks.stream = reader.column(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t idle_ns =
        tasks.count[i] > 1 ? static_cast<std::int64_t>(reader.one()) : std::int64_t{0};
    tasks.busy_ns.push_back(tasks.end_ns[i] - tasks.start_ns[i] - idle_ns);
  }
  EXPECT_TRUE(reader.at_end());
  return tasks;
}

DecodedDetails decode_details(const std::string& bytes, const DecodedTasks& tasks) {
  ColumnReader reader(bytes);
  DecodedDetails details;
  details.job = reader.column(tasks.thread.size());
  details.matrix = reader.column(tasks.thread.size());
  for (auto* const column : {&details.tile, &details.order, &details.priority}) {
    *column = reader.signed_column(tasks.thread.size());
    for (std::size_t i = 1; i < column->size(); ++i) {
      if (tasks.thread[i] == tasks.thread[i - 1]) (*column)[i] += (*column)[i - 1];
    }
  }
  details.fine = reader.column(tasks.thread.size());
  details.last = reader.column(tasks.thread.size());
  for (std::size_t i = 0; i < tasks.thread.size(); ++i) {
    --details.job[i];
    --details.matrix[i];
  }
  EXPECT_TRUE(reader.at_end());
  return details;
}

std::vector<std::vector<replay::Access>> decode_accesses(
    const std::string& bytes, const DecodedTasks& tasks, const DecodedDetails& details,
    const std::map<std::int64_t, std::int64_t>& matrix_rows) {
  struct Place {
    std::int64_t row = 0;
    std::int64_t column = 0;
    std::int64_t version = 0;
  };
  const auto rows_of = [&](std::int64_t matrix) {
    const auto found = matrix_rows.find(matrix);
    return found == matrix_rows.end() ? 0 : found->second;
  };
  ColumnReader reader(bytes);
  const std::vector<std::int64_t> counts = reader.column(tasks.thread.size());
  std::size_t all = 0;
  for (const std::int64_t count : counts) all += static_cast<std::size_t>(count);
  const std::vector<std::int64_t> codes = reader.column(all);
  const auto open = [&](const auto& is_open, const auto& read) {
    std::vector<std::int64_t> values(all);
    for (std::size_t a = 0; a < all; ++a) values[a] = is_open(codes[a]) ? read() : 0;
    return values;
  };
  const auto matrices = open([](std::int64_t code) { return (code >> 2 & 1) != 0; },
                             [&] { return static_cast<std::int64_t>(reader.one()) - 1; });
  const auto rows = open([](std::int64_t code) { return (code >> 3 & 3) == 3; },
                         [&] { return reader.signed_one(); });
  const auto columns = open([](std::int64_t code) { return (code >> 5 & 3) == 3; },
                            [&] { return reader.signed_one(); });
  const auto versions = reader.signed_column(all);
  EXPECT_TRUE(reader.at_end());

  std::map<std::pair<std::size_t, std::int64_t>, std::vector<Place>> seen;
  std::vector<std::vector<replay::Access>> result(tasks.thread.size());
  std::size_t a = 0;
  for (std::size_t i = 0; i < tasks.thread.size(); ++i) {
    auto& last = seen[{tasks.thread[i], tasks.kernel[i]}];
    const std::int64_t height = rows_of(details.matrix[i]);
    const Place main{height > 0 ? details.tile[i] % height : details.tile[i],
                     height > 0 ? details.tile[i] / height : 0};
    Place before = main;
    std::int64_t step = 0;
    for (std::size_t slot = 0; slot < static_cast<std::size_t>(counts[i]); ++slot, ++a) {
      if (slot == last.size()) last.emplace_back();
      if (slot == 0) step = versions[a];
      const auto pick = [](std::int64_t how, std::int64_t same, std::int64_t other,
                           std::int64_t previous, std::int64_t value) {
        return how == 0 ? same : how == 1 ? other : how == 2 ? previous : value;
      };
      const Place at{
          pick(codes[a] >> 3 & 3, main.row, main.column, before.row, rows[a] + last[slot].row),
          pick(codes[a] >> 5 & 3, main.column, main.row, before.column,
               columns[a] + last[slot].column + step),
          versions[a] + (slot == 0 ? last[slot].version : before.version)};
      const std::int64_t matrix = (codes[a] >> 2 & 1) != 0 ? matrices[a] : details.matrix[i];
      const std::int64_t tile = rows_of(matrix) > 0 ? at.row + at.column * rows_of(matrix) : at.row;
      result[i].push_back({{static_cast<std::int32_t>(matrix), static_cast<std::int32_t>(tile)},
                           Version(static_cast<std::int32_t>(at.version)),
                           static_cast<trace::AccessMode>(codes[a] & 3)});
      last[slot] = before = at;
    }
  }
  return result;
}

}  // namespace heddle::page::test
