#include "parse.h"

#include <algorithm>
#include <cstring>

#include "parallel.h"

namespace datum {
namespace {

// Below this, starting a thread costs more than it saves.
constexpr size_t kMinBytesPerThread = 256 * 1024;

// Appends the later part of a column to the earlier.
void append_column(const ColumnSpec& spec, const Column& part, Column& whole) {
  const auto append = [](const Buffer& from, Buffer& to) {
    if (from.size() > 0) std::memcpy(to.extend(from.size()), from.data(), from.size());
  };
  const auto append_splits = [](const Buffer& from, Buffer& to) {
    const size_t count = from.size() / 8 - 1;  // without the leading 0, the end of what is there
    int64_t last;
    std::memcpy(&last, to.data() + to.size() - 8, 8);
    auto* out = reinterpret_cast<int64_t*>(to.extend(8 * count));
    const auto* splits = reinterpret_cast<const int64_t*>(from.data()) + 1;
    for (size_t i = 0; i < count; ++i) out[i] = last + splits[i];
  };
  append(part.values, whole.values);
  append(part.present, whole.present);
  if (spec.layout != Layout::kFixed) append_splits(part.splits, whole.splits);
  if (spec.layout == Layout::kNestedSteps) append_splits(part.inner_splits, whole.inner_splits);
}

Fault parse_rows(const Plan& plan, const RecordRun& records, size_t first, size_t last,
                 std::vector<Column>& columns) {
  size_t payload_bytes = 0;
  for (size_t i = first; i < last; ++i) payload_bytes += static_cast<size_t>(records.lengths[i]);
  columns = std::vector<Column>(plan.columns().size());
  RecordParser parser(plan, columns, last - first, payload_bytes, records.buffer);
  for (size_t i = first; i < last; ++i) {
    if (!parser.parse(records[i], i - first)) {
      Fault fault = parser.fault();
      fault.row = i;
      return fault;
    }
  }
  return {};
}

}  // namespace

bool RecordRun::is_sound() const {
  if (starts.size() != lengths.size()) return false;
  const auto size = static_cast<int64_t>(buffer.size());
  for (size_t i = 0; i < starts.size(); ++i) {
    if (starts[i] < 0 || starts[i] > size || lengths[i] < 0 || lengths[i] > size - starts[i]) {
      return false;
    }
  }
  return true;
}

Fault parse_records(const Plan& plan, const RecordRun& records, size_t threads,
                    std::vector<Column>& columns) {
  const size_t rows = records.size();
  size_t total = 0;
  for (const int64_t length : records.lengths) total += static_cast<size_t>(length);
  const size_t parts = std::clamp<size_t>(std::min(threads, total / kMinBytesPerThread), 1,
                                          std::max<size_t>(rows, 1));
  if (parts == 1) return parse_rows(plan, records, 0, rows, columns);

  const std::vector<size_t> bounds =
      split_evenly(rows, parts, [&](size_t i) { return records.lengths[i]; });
  std::vector<std::vector<Column>> partial(parts);
  std::vector<Fault> faults(parts);
  run_parallel(parts, [&](size_t part) {
    faults[part] = parse_rows(plan, records, bounds[part], bounds[part + 1], partial[part]);
  });
  for (const Fault& fault : faults) {
    if (fault.code != FaultCode::kNone) return fault;
  }
  columns = std::move(partial[0]);
  run_parallel(parts, [&](size_t part) {
    for (size_t c = part; c < columns.size(); c += parts) {
      const ColumnSpec& spec = plan.columns()[c];
      size_t bytes = 64 + columns[c].values.size();
      for (size_t p = 1; p < parts; ++p) bytes += partial[p][c].values.size();
      columns[c].values.reserve(bytes);
      for (size_t p = 1; p < parts; ++p) append_column(spec, partial[p][c], columns[c]);
    }
  });
  return {};
}

}  // namespace datum
