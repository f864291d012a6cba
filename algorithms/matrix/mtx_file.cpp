#include "algorithms/matrix/mtx_file.hpp"

#include <algorithm>
#include <cstddef>
#include <fmt/core.h>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"

namespace heddle {

namespace {

struct Position {
  std::int64_t row;
  std::int64_t column;
};

/// Takes the two indices, counted from 1 in the file, off `line`.
Position take_position(std::string_view& line, std::int64_t number, const MtxHeader& header,
                       const std::string& path) {
  Position position{};
  const auto take = [&](std::int64_t size, std::string_view what) {
    const std::string_view word = take_word(line);
    const IntegerText index = read_integer(word);
    if (index.state == RealText::State::no_number) {
      refuse_mtx_line(path, number, fmt::format("a {} expected, found {}", what, quote_text(word)));
    }
    if (index.state != RealText::State::fits || index.value < 1 || index.value > size) {
      refuse_mtx_line(path, number, fmt::format("{} {} is outside of 1 to {}", what, word, size));
    }
    return index.value - 1;
  };
  position.row = take(header.rows, "row");
  position.column = take(header.columns, "column");
  return position;
}

/// The position of the pair's element in the lower triangle.
Position stored_position(Position position, const MtxHeader& header) {
  if (header.is_symmetric && position.row < position.column) {
    std::swap(position.row, position.column);
  }
  return position;
}

}  // namespace

MtxSource::MtxSource(std::string path)
    : MatrixSource(0, 0),
      file_(std::move(path)),
      header_(parse_mtx_header(file_.content(), file_.path())) {
  set_shape(header_.rows, header_.columns);
  check_length();
}

/// Before anything is allocated for a size that is plainly wrong.
void MtxSource::check_length() const {
  const std::size_t rest = file_.content().size() - header_.body;
  // The last line may lack its end.
  const std::int64_t bytes_per_entry = header_.is_array ? 2 : 6;
  const auto entries_max = static_cast<std::int64_t>(rest + 1) / bytes_per_entry;
  if (header_.entries > entries_max) {
    refuse_mtx_line(file_.path(), header_.body_line - 1,
                    fmt::format("too few entries: {} are announced, the {} bytes that follow have "
                                "room for at most {}",
                                header_.entries, rest, entries_max));
  }
}

std::string MtxSource::description() const {
  return fmt::format("'{}' (Matrix Market, {} x {}, {}, {})", printable(file_.path()), rows(),
                     columns(), header_.is_array ? "array" : "coordinate",
                     header_.is_symmetric ? "symmetric" : "general");
}

void MtxSource::prepare(const WantedRows& wanted) {
  HEDDLE_CHECK(!is_prepared_, "{}", file_.path());
  is_prepared_ = true;
  kept_ = KeptElements(
      rows(), columns(),
      header_.is_symmetric ? KeptElements::Stored::lower_triangle : KeptElements::Stored::all,
      wanted);
  diagonal_.assign(static_cast<std::size_t>(std::min(rows(), columns())), 0.0);
  file_.expect_sequential_reading();
  // What is kept is read no more, so later changes do not matter.
  file_.interpret([this] { header_.is_array ? scan_array() : scan_coordinates(); });
}

void MtxSource::scan_array() {
  LineReader lines(file_.content(), header_.body, header_.body_line);
  for (std::int64_t column = 0; column < columns(); ++column) scan_array_column(lines, column);
  expect_end(lines);
}

void MtxSource::scan_array_column(LineReader& lines, std::int64_t column) {
  std::int64_t row = header_.is_symmetric ? column : 0;
  const std::span<double> values = kept_.values();
  const auto keep = [&](std::int64_t begin, std::int64_t end) {
    skip_values(lines, begin - row);
    const auto first = kept_.find(GlobalRow{begin}, GlobalColumn{column});
    for (row = begin; row < end; ++row) {
      const auto [text, number] = lines.next_entry();
      if (text.empty()) refuse_end(number);
      const double value = parse_value(text, number);
      if (first) values[*first + static_cast<std::size_t>(row - begin)] = value;
      if (row == column) diagonal_[static_cast<std::size_t>(row)] = value;
    }
  };
  const bool has_diagonal = column < rows();
  for (const RowRange& range : kept_.ranges(GlobalColumn{column})) {
    const std::int64_t begin = std::max(row, range.begin.value());
    const std::int64_t end = range.end.value();
    if (has_diagonal && row <= column && column < begin) keep(column, column + 1);
    if (begin < end) keep(begin, end);
  }
  if (has_diagonal && row <= column) keep(column, column + 1);
  skip_values(lines, rows() - row);
  row = rows();
}

void MtxSource::skip_values(LineReader& lines, std::int64_t count) const {
  if (lines.skip(count) < count) refuse_end(lines.line());
}

/// The text ends before `line`, and entries are missing.
void MtxSource::refuse_end(std::int64_t line) const {
  LineReader all(file_.content(), header_.body, header_.body_line);
  refuse_mtx_line(
      file_.path(), line,
      fmt::format("too few entries: {} are announced in line {}, the file ends after {}; write "
                  "or copy it again",
                  header_.entries, header_.body_line - 1, all.skip(header_.entries)));
}

/// The value at the end of an entry, which is all of an array's.
double MtxSource::parse_value(std::string_view text, std::int64_t line) const {
  using State = RealText::State;
  std::string_view rest = text;
  const std::string_view word = take_word(rest);
  if (!rest.empty()) {
    refuse_mtx_line(file_.path(), line,
                    fmt::format("unexpected {} after the value {}; write one entry on each line",
                                quote_text(rest), quote_text(word)));
  }
  const RealText real = read_mtx_real(word);
  if (real.state == State::too_large) {
    refuse_mtx_line(
        file_.path(), line,
        fmt::format("{} is too large for a double: the largest is 1.79e+308", quote_text(word)));
  }
  if (real.state == State::no_number) {
    refuse_mtx_line(file_.path(), line,
                    fmt::format("{} is not a number{}", quote_text(word),
                                word.find(',') == std::string_view::npos
                                    ? ""
                                    : "; write a point before the decimals, not a comma"));
  }
  if (header_.is_integer && read_integer(word).state == State::no_number) {
    refuse_mtx_line(file_.path(), line,
                    fmt::format("{} is not an integer, which the first line announces; if other "
                                "numbers are meant, write 'real' there",
                                quote_text(word)));
  }
  return real.value;
}

void MtxSource::scan_coordinates() {
  LineReader lines(file_.content(), header_.body, header_.body_line);
  std::vector<bool> is_set(kept_.values().size());
  std::vector<bool> is_diagonal_set(diagonal_.size());
  for (std::int64_t entry = 0; entry < header_.entries; ++entry) {
    auto [line, number] = lines.next_entry();
    if (line.empty()) refuse_end(number);
    const auto [row, column] =
        stored_position(take_position(line, number, header_, file_.path()), header_);
    const auto place = kept_.find(GlobalRow{row}, GlobalColumn{column});
    if (!place && row != column) continue;
    if (line.empty())
      refuse_mtx_line(file_.path(), number, "the value is missing behind row and column");
    const double value = parse_value(line, number);
    const auto diagonal = static_cast<std::size_t>(row);
    if ((place && is_set[*place]) || (row == column && is_diagonal_set[diagonal])) {
      refuse_duplicate(row, column, number);
    }
    if (place) {
      is_set[*place] = true;
      kept_.values()[*place] = value;
    }
    if (row == column) {
      is_diagonal_set[diagonal] = true;
      diagonal_[diagonal] = value;
    }
  }
  expect_end(lines);
}

void MtxSource::refuse_duplicate(std::int64_t row, std::int64_t column, std::int64_t line) const {
  LineReader lines(file_.content(), header_.body, header_.body_line);
  std::int64_t first = 0;
  while (first == 0) {
    auto [text, number] = lines.next_entry();
    const Position found =
        stored_position(take_position(text, number, header_, file_.path()), header_);
    if (found.row == row && found.column == column) first = number;
  }
  refuse_mtx_line(
      file_.path(), line,
      fmt::format("element ({}, {}){} was given before, in line {}; keep one", row + 1, column + 1,
                  header_.is_symmetric ? " of the lower triangle" : "", first));
}

void MtxSource::expect_end(LineReader& lines) const {
  const auto [line, number] = lines.next_entry();
  if (line.empty()) return;
  refuse_mtx_line(
      file_.path(), number,
      fmt::format("too many entries: {} are expected after line {}, then comes {}; correct "
                  "the sizes there, or leave it out",
                  header_.entries, header_.body_line - 1, quote_text(line)));
}

void MtxSource::read_block(GlobalRow row, GlobalColumn column, TileView out) const {
  HEDDLE_CHECK(is_prepared_, "{}", file_.path());
  kept_.read(row, column, out);
}

void MtxSource::read_diagonal_part(std::int64_t begin, std::span<double> out) const {
  HEDDLE_CHECK(is_prepared_, "{}", file_.path());
  std::copy_n(diagonal_.begin() + begin, out.size(), out.begin());
}

}  // namespace heddle
