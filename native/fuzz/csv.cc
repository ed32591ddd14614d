// Fuzzes CSV: rows do not depend on how the text is cut, and columns stay within it.
#include "checks.h"
#include "csv_columns.h"
#include "csv_rows.h"

using namespace datum;
using datum::fuzz::Input;
using datum::fuzz::require;

namespace {

using Row = std::vector<std::string>;

struct Found {
  std::vector<Row> rows;
  std::vector<CsvBadRow> bad;
};

void append(Found& found, ByteSpan text, const CsvRows& read, size_t offset) {
  const size_t first = found.rows.size() + found.bad.size();
  for (const CsvChunk& chunk : read.chunks) {
    require(chunk.fields.size() == chunk.rows * read.columns, "every row has its fields");
    for (size_t row = 0; row < chunk.rows; ++row) {
      Row& fields = found.rows.emplace_back();
      for (size_t i = 0; i < read.columns; ++i) {
        const CsvField& field = chunk.fields[row * read.columns + i];
        const ByteSpan raw = text.subspan(chunk.begin + field.start, field.length);
        std::string copy(raw.begin(), raw.end());
        fields.push_back(field.is_escaped ? unescaped_csv(std::move(copy)) : std::move(copy));
      }
    }
  }
  for (CsvBadRow bad : read.bad) {
    bad.record += first;
    bad.offset += offset;
    found.bad.push_back(bad);
  }
}

void require_same(const Found& a, const Found& b) {
  require(a.rows == b.rows, "the same rows, however the text is cut");
  require(a.bad.size() == b.bad.size(), "the same bad rows");
  for (size_t i = 0; i < a.bad.size(); ++i) {
    const CsvBadRow &x = a.bad[i], &y = b.bad[i];
    const bool is_same = x.record == y.record && x.offset == y.offset && x.fault == y.fault;
    require(is_same && x.fields == y.fields, "each bad row at its place");
  }
}

void read_in_two(ByteSpan text, size_t cut, CsvOptions options, const Found& whole) {
  Found found;
  options.is_last = false;
  const std::vector<uint8_t> start = fuzz::exact_copy(text.first(cut));
  const CsvRows first = read_csv_rows(start, options);
  require(first.end <= cut, "no more is read than there is");
  append(found, start, first, 0);
  options.is_last = true;
  options.columns = first.columns;
  const CsvRows second = read_csv_rows(text.subspan(first.end), options);
  append(found, text.subspan(first.end), second, first.end);
  require_same(whole, found);
}

void read_columns(std::vector<uint8_t> text, CsvRows&& rows, uint32_t others) {
  const size_t columns = rows.columns;
  const size_t count = rows.rows;
  const size_t lines = count_csv_lines(text);
  CsvReading reading{CsvWords({""}), CsvWords({"NA"}),
                     static_cast<uint8_t>(others % 2 ? ',' : '.')};
  CsvColumns read(text.data(), std::move(rows), std::move(reading), 1);
  std::vector<size_t> all;
  std::vector<CsvType> wanted;
  for (size_t i = 0; i < columns; ++i) {
    all.push_back(i);
    wanted.push_back(static_cast<CsvType>((others / 8 + i) % 8 > 4 ? 0 : (others / 8 + i) % 8));
  }
  const std::vector<CsvLook> looks = read.look(all, wanted);
  for (size_t i = 0; i < columns; ++i) {
    for (const size_t row : looks[i].bad) require(row < count, "bad rows are rows");
    if (looks[i].odd > 0) {
      require(read.offset(looks[i].first_odd, i) <= text.size(), "an odd cell lies in the text");
    }
    // Only the requested type is seen.
    const bool is_free = wanted[i] == CsvType::kEmpty;
    CsvColumn column = read.take(i, looks[i].seen | (is_free ? others : 0));
    const size_t size = column.type == CsvType::kText ? 16 : column.type == CsvType::kBool ? 1 : 8;
    if (column.type == CsvType::kEmpty) continue;
    require(column.values.size() == size * count, "a value for each row");
    if (column.type != CsvType::kText) continue;
    const auto* slices = reinterpret_cast<const int64_t*>(column.values.data());
    for (size_t row = 0; row < count; ++row) {
      const int64_t end = slices[2 * row] + slices[2 * row + 1];
      require(slices[2 * row] >= 0 && slices[2 * row + 1] >= 0, "slices are not negative");
      require(end <= static_cast<int64_t>(text.size()), "slices lie within the text");
    }
  }
  require(count_csv_lines(text) == lines, "as many lines end in the text as before");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  CsvOptions options;
  options.max_row_bytes = 1 + input.byte();
  options.threads = input.byte() == 1 ? 2 : 1;  // threads are slow to start
  const size_t chunk_bytes = 1 + input.byte() % 64;
  const size_t place = input.byte();
  const uint32_t others = input.byte();
  options.comment = others % 4 == 3 ? '#' : 0;
  const std::vector<uint8_t> text = fuzz::exact_copy(input.rest());
  CsvRows rows = read_csv_rows(text, options);
  require(rows.end == text.size(), "the last text is read to its end");
  Found whole;
  append(whole, text, rows, 0);
  if (!rows.header.empty()) {
    CsvOptions small = options;
    small.chunk_bytes = chunk_bytes;
    Found found;
    append(found, text, read_csv_rows(text, small), 0);
    require_same(whole, found);
    const size_t cut = text.size() * place / 256;
    small.is_last = false;
    if (!read_csv_rows(ByteSpan(text).first(cut), small).header.empty()) {
      read_in_two(text, cut, small, whole);
    }
  }
  require(count_csv_lines(text) <= text.size(), "a line has a byte at least");
  read_columns(text, std::move(rows), others);
  return 0;
}
