// Fuzzes encoding: columns of every cell and layout are restored from the records written.
#include "encode.h"

#include <string>

#include "columns.h"
#include "framing.h"
#include "parse.h"

using namespace datum;
using datum::fuzz::cells_of;
using datum::fuzz::Input;
using datum::fuzz::Owned;
using datum::fuzz::require;
using datum::fuzz::take_column;

namespace {

std::vector<ColumnSource> sources_of(const std::vector<Owned>& columns) {
  std::vector<ColumnSource> sources;
  for (const Owned& owned : columns) sources.push_back(owned.source);
  return sources;
}

ColumnSpec spec_of(const ColumnSource& source) {
  ColumnSpec spec;
  spec.key = source.key;
  spec.kind = source.kind;
  spec.layout = source.layout;
  spec.cell = source.cell;
  spec.unit = source.unit;
  spec.is_optional = source.present != nullptr;
  return spec;
}

ByteSpan content_of(const Encoded& encoded) {
  return ByteSpan(encoded.framed.data(), encoded.framed.size());
}

void require_same_row(const ColumnSource& source, const Column& column, ByteSpan buffer,
                      size_t row) {
  const auto* splits = reinterpret_cast<const int64_t*>(column.splits.data());
  const auto* inner = reinterpret_cast<const int64_t*>(column.inner_splits.data());
  const auto [first, last] = cells_of(source, source.splits, source.inner_splits, row);
  const auto [found, found_last] = cells_of(source, splits, inner, row);
  require(last - first == found_last - found, "a row has as many values as were written");
  if (source.layout == Layout::kNestedSteps) {
    const int64_t steps = source.splits[row + 1] - source.splits[row];
    require(steps == splits[row + 1] - splits[row], "a row has as many steps");
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t* wrote = source.inner_splits + source.splits[row] + step;
      const int64_t* read = inner + splits[row] + step;
      require(wrote[1] - wrote[0] == read[1] - read[0], "a step has as many values");
    }
  }
  if (source.cell == Cell::kSlice) {
    const auto* slices = reinterpret_cast<const Slice*>(column.values.data()) + found;
    for (size_t i = 0; i < last - first; ++i) {
      require(fuzz::same_bytes(source.strings[first + i],
                               buffer.subspan(slices[i].start, slices[i].length)),
              "strings come back");
    }
  } else {
    const size_t bytes = cell_bytes(source.cell);
    require(fuzz::same_bytes({source.values + first * bytes, (last - first) * bytes},
                             {column.values.data() + found * bytes, (last - first) * bytes}),
            "numbers come back");
  }
}

void require_round_trip(const std::vector<Owned>& columns, size_t rows, const Encoded& encoded) {
  const ByteSpan file = content_of(encoded);
  std::vector<RecordRef> records;
  Scanner scanner(ScanOptions{});
  scanner.scan(file, true, SIZE_MAX, records);
  require(!scanner.fatal() && records.size() == rows, "every record is framed");
  std::vector<int64_t> starts;
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < rows; ++i) {
    require(records[i].offset == encoded.offsets[i], "records start where they should");
    starts.push_back(static_cast<int64_t>(records[i].offset + kHeaderBytes));
    lengths.push_back(static_cast<int64_t>(records[i].length));
  }
  std::vector<ColumnSpec> specs;
  for (const Owned& owned : columns) specs.push_back(spec_of(owned.source));
  const Plan plan(std::move(specs));
  std::vector<Column> parsed;
  require(parse_records(plan, {file, starts, lengths}, 2, parsed).code == FaultCode::kNone,
          "what was written can be parsed");
  for (size_t c = 0; c < columns.size(); ++c) {
    const ColumnSource& source = columns[c].source;
    for (size_t row = 0; row < rows; ++row) {
      const bool is_present = source.present == nullptr || source.present[row] != 0;
      require(source.present == nullptr || parsed[c].present.data()[row] == source.present[row],
              "presence comes back");
      if (is_present) require_same_row(source, parsed[c], file, row);
    }
  }
}

// Framed payloads of any content are found again.
void check_framing(Input input) {
  std::vector<ByteSpan> payloads;
  while (!input.rest().empty()) payloads.push_back(input.take(input.byte()));
  Encoded encoded;
  frame_payloads(payloads, encoded);
  const ByteSpan file = content_of(encoded);
  require(encoded.offsets.size() == payloads.size(), "every payload is framed");
  for (size_t i = 0; i < payloads.size(); ++i) {
    const auto offset = static_cast<size_t>(encoded.offsets[i]);
    require(!check_record(file, offset, payloads[i].size()), "every frame is sound");
    require(fuzz::same_bytes(payloads[i], file.subspan(offset + kHeaderBytes, payloads[i].size())),
            "payloads come back");
  }
}

// Splits that decrease or overshoot are refused, never followed.
void check_wrong_splits(std::vector<Owned>& columns, size_t rows, Input& input) {
  for (Owned& owned : columns) {
    for (std::vector<int64_t>* splits : {&owned.splits, &owned.inner_splits}) {
      if (splits->empty()) continue;
      (*splits)[input.byte() % splits->size()] = static_cast<int64_t>(input.word());
    }
    owned.source.values_count -= std::min<size_t>(owned.source.values_count, input.byte() % 2);
  }
  Encoded encoded;
  const EncodeFault fault = encode_records(sources_of(columns), rows, 1, encoded);
  require(fault.error != EncodeError::kRecordTooLarge, "no record is that large");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const size_t rows = input.byte() % 8 + (input.byte() == 255 ? 600 : 0);  // for several threads
  std::vector<Owned> columns(1 + input.byte() % 5);
  for (size_t c = 0; c < columns.size(); ++c) {
    columns[c].source.key = std::string(1, static_cast<char>('a' + c));
    take_column(input, rows, columns[c]);
  }
  Encoded encoded;
  const EncodeFault fault = encode_records(sources_of(columns), rows, 1, encoded);
  require(fault.error == EncodeError::kNone, "sound columns are written");
  Encoded spread;
  encode_records(sources_of(columns), rows, 3, spread);
  require(fuzz::same_bytes(content_of(encoded), content_of(spread)) &&
              encoded.offsets == spread.offsets,
          "threads give the same bytes");
  require_round_trip(columns, rows, encoded);
  check_wrong_splits(columns, rows, input);
  check_framing(Input(data, size));
  return 0;
}
