// The promises of parsing for example.cc and sequence.cc: the same columns in every way.
#pragma once

#include <string>
#include <utility>

#include "checks.h"
#include "discover.h"
#include "parse.h"

namespace datum::fuzz {

struct Rows {
  std::vector<uint8_t> buffer;
  std::vector<int64_t> starts;
  std::vector<int64_t> lengths;

  RecordRun run() const { return {buffer, starts, lengths}; }
  RecordRun row(size_t i) const {
    return {buffer, std::span(starts).subspan(i, 1), std::span(lengths).subspan(i, 1)};
  }
  void add(ByteSpan payload) {
    starts.push_back(static_cast<int64_t>(buffer.size()));
    lengths.push_back(static_cast<int64_t>(payload.size()));
    buffer.insert(buffer.end(), payload.begin(), payload.end());
  }
};

// Two messages, the two merged (protobuf's meaning of their concatenated bytes), and the first
// again: keys disappear, and reappear in the same order.
inline Rows make_rows(Input input) {
  const size_t split = input.byte() | size_t{input.byte()} << 8;
  const auto size = static_cast<int64_t>(input.rest().size());
  const auto middle = static_cast<int64_t>(split % (input.rest().size() + 1));
  return {exact_copy(input.rest()), {0, middle, 0, 0}, {middle, size - middle, size, middle}};
}

inline std::span<const int64_t> as_int64(const Buffer& buffer) {
  return {reinterpret_cast<const int64_t*>(buffer.data()), buffer.size() / 8};
}

inline std::span<const Slice> as_slices(const Buffer& buffer) {
  return {reinterpret_cast<const Slice*>(buffer.data()), buffer.size() / sizeof(Slice)};
}

inline void require_splits(const Buffer& splits, size_t rows, size_t items) {
  const std::span<const int64_t> ends = as_int64(splits);
  require(ends.size() == rows + 1 && ends.front() == 0, "splits start at 0, one more than rows");
  require(std::is_sorted(ends.begin(), ends.end()), "splits never fall");
  require(static_cast<size_t>(ends.back()) == items, "splits end at the last item");
}

// The sizes of all buffers agree, and every slice is within the records.
inline void require_sound(const Plan& plan, const RecordRun& run,
                          const std::vector<Column>& columns) {
  require(columns.size() == plan.columns().size(), "one column each");
  for (size_t c = 0; c < columns.size(); ++c) {
    const ColumnSpec& spec = plan.columns()[c];
    const Column& column = columns[c];
    const size_t unit_bytes = spec.unit_bytes();
    size_t units = unit_bytes == 0 ? 0 : column.values.size() / unit_bytes;
    require(column.values.size() == units * unit_bytes, "whole units only");
    if (spec.layout == Layout::kFixed) {
      require(unit_bytes == 0 || units == run.size(), "one unit a row");
    } else {
      if (spec.layout == Layout::kNestedSteps) {
        const size_t steps = as_int64(column.inner_splits).size() - 1;
        require_splits(column.inner_splits, steps, units);
        units = steps;
      }
      if (unit_bytes == 0) units = static_cast<size_t>(as_int64(column.splits).back());
      require_splits(column.splits, run.size(), units);
    }
    require(column.present.size() == (spec.is_optional ? run.size() : 0), "presence of each row");
    for (size_t i = 0; i < column.present.size(); ++i) {
      require(column.present.data()[i] <= 1, "presence is 0 or 1");
    }
    if (spec.cell != Cell::kSlice) continue;
    for (const Slice slice : as_slices(column.values)) {
      require(slice.start <= run.buffer.size() && slice.length <= run.buffer.size() - slice.start,
              "every slice lies within the buffer");
    }
  }
}

inline bool same_strings(ByteSpan a_buffer, const Buffer& a, ByteSpan b_buffer, const Buffer& b) {
  const auto same = [&](const Slice& x, const Slice& y) {
    return same_bytes(a_buffer.subspan(x.start, x.length), b_buffer.subspan(y.start, y.length));
  };
  const std::span<const Slice> xs = as_slices(a);
  const std::span<const Slice> ys = as_slices(b);
  return std::equal(xs.begin(), xs.end(), ys.begin(), ys.end(), same);
}

inline bool same_buffer(const Buffer& a, const Buffer& b) {
  return same_bytes({a.data(), a.size()}, {b.data(), b.size()});
}

// Columns of two runs have the same values; their slices may point into other buffers.
inline void require_same(const Plan& plan, const RecordRun& a_run, const std::vector<Column>& a,
                         const RecordRun& b_run, const std::vector<Column>& b,
                         const char* promise) {
  for (size_t c = 0; c < plan.columns().size(); ++c) {
    const bool are_slices = plan.columns()[c].cell == Cell::kSlice;
    require(are_slices ? same_strings(a_run.buffer, a[c].values, b_run.buffer, b[c].values)
                       : same_buffer(a[c].values, b[c].values),
            promise);
    require(same_buffer(a[c].splits, b[c].splits), promise);
    require(same_buffer(a[c].inner_splits, b[c].inner_splits), promise);
    require(same_buffer(a[c].present, b[c].present), promise);
  }
}

inline bool same_fault(const Fault& a, const Fault& b) {
  return a.code == b.code && a.column == b.column && a.step == b.step && a.expected == b.expected &&
         a.got == b.got;
}

// A record is parsed the same whatever was parsed before it: guesses change nothing.
inline void check_rows_alone(const Plan& plan, const Rows& rows, const Fault& fault) {
  const size_t sound = fault.code == FaultCode::kNone ? rows.starts.size() : fault.row;
  for (size_t i = 0; i <= sound && i < rows.starts.size(); ++i) {
    std::vector<Column> alone;
    const Fault found = parse_records(plan, rows.row(i), 1, alone);
    require(i < sound ? found.code == FaultCode::kNone : same_fault(found, fault),
            "a record alone has the fault it has among others");
    if (i == sound) break;
    std::vector<Column> first;
    const RecordRun run = rows.run();
    const RecordRun before{run.buffer, run.starts.first(i + 1), run.lengths.first(i + 1)};
    require(parse_records(plan, before, 1, first).code == FaultCode::kNone, "no new fault");
    for (size_t c = 0; c < alone.size(); ++c) {
      const Buffer& values = alone[c].values;
      const Buffer& among = first[c].values;
      require(values.size() <= among.size() &&
                  same_bytes({values.data(), values.size()},
                             {among.data() + among.size() - values.size(), values.size()}),
              "a record alone has the values it has among others");
    }
  }
}

inline void append_varint(std::vector<uint8_t>& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<uint8_t>(value | 0x80));
  out.push_back(static_cast<uint8_t>(value));
}

inline void append_bytes(std::vector<uint8_t>& out, uint8_t tag, ByteSpan content) {
  out.push_back(tag);
  append_varint(out, content.size());
  out.insert(out.end(), content.begin(), content.end());
}

// A length-delimited field, its content preceded by an unknown field.
inline void append_field(std::vector<uint8_t>& out, uint8_t tag, ByteSpan content) {
  std::vector<uint8_t> longer{make_tag(15, WireType::kVarint), 1};
  longer.insert(longer.end(), content.begin(), content.end());
  append_bytes(out, tag, longer);
}

// Writes the same message in a form that no fast path accepts; false if it is malformed.
inline bool write_unusually(ByteSpan payload, std::vector<uint8_t>& out) {
  WireReader reader(payload);
  while (!reader.at_end()) {
    const uint8_t* start = reader.position();
    uint32_t tag;
    if (!reader.read_tag(tag)) return false;
    if (tag != kFieldOneBytes && tag != kFieldTwoBytes) {
      if (!reader.skip(tag)) return false;
      out.insert(out.end(), start, reader.position());
      continue;
    }
    ByteSpan map;
    if (!reader.read_bytes(map)) return false;
    std::vector<uint8_t> entries;
    const bool is_sound = for_each_field(map, kFieldOneBytes, [&](ByteSpan entry) {
      ByteSpan key;
      Pieces value;
      if (!read_entry(entry, key, value)) return false;
      std::vector<uint8_t> parts;  // no unknown field here: it would be refused
      for (const ByteSpan piece : value) append_field(parts, kFieldTwoBytes, piece);
      append_bytes(parts, kFieldOneBytes, key);  // the key last
      append_bytes(entries, kFieldOneBytes, parts);
      return true;
    });
    if (!is_sound) return false;
    append_field(out, static_cast<uint8_t>(tag), entries);
  }
  return true;
}

// The usual form is read on a fast path, any other on the general one: both return the same.
inline void check_unusual_form(const Plan& plan, const Rows& rows) {
  for (size_t i = 0; i < rows.starts.size(); ++i) {
    std::vector<uint8_t> unusual;
    if (!write_unusually(rows.run()[i], unusual)) continue;
    Rows other;
    other.add(unusual);
    std::vector<Column> a;
    std::vector<Column> b;
    const Fault fault = parse_records(plan, rows.row(i), 1, a);
    require(same_fault(fault, parse_records(plan, other.run(), 1, b)),
            "the form of a record does not change its fault");
    if (fault.code != FaultCode::kNone) continue;
    require_same(plan, rows.row(i), a, other.run(), b, "nor its values");
  }
}

// Records are spread over threads only if they are large: an unknown field makes them large.
inline void check_threads(const Plan& plan, const Rows& rows, const Fault& fault,
                          const std::vector<Column>& columns) {
  constexpr size_t kPadding = 300 * 1024;
  static const std::vector<uint8_t> zeros(kPadding);
  Rows padded;
  padded.buffer.reserve(rows.starts.size() * (kPadding + rows.buffer.size() + 8));
  for (size_t i = 0; i < rows.starts.size(); ++i) {
    const ByteSpan payload = rows.run()[i];
    padded.add(payload);
    const size_t before = padded.buffer.size();
    padded.buffer.push_back(make_tag(15, WireType::kBytes));
    append_varint(padded.buffer, kPadding);
    padded.buffer.insert(padded.buffer.end(), zeros.begin(), zeros.end());
    padded.lengths.back() += static_cast<int64_t>(padded.buffer.size() - before);
  }
  std::vector<Column> spread;
  const Fault found = parse_records(plan, padded.run(), 3, spread);
  if (fault.code == FaultCode::kMalformed) return;  // the field may have completed the message
  require(same_fault(found, fault) && found.row == fault.row, "threads find the same fault");
  if (fault.code != FaultCode::kNone) return;
  require_sound(plan, padded.run(), spread);
  require_same(plan, rows.run(), columns, padded.run(), spread, "threads give the same columns");
}

// A record is read at any position, or refused if that is not within the buffer.
inline void check_place(const Plan& plan, const Rows& rows) {
  Input numbers(rows.buffer.data(), rows.buffer.size());
  const int64_t start[] = {static_cast<int64_t>(numbers.word()) >> (numbers.byte() % 64)};
  const int64_t length[] = {static_cast<int64_t>(numbers.word()) >> (numbers.byte() % 64)};
  const RecordRun run{rows.buffer, start, length};
  std::vector<Column> columns;
  if (run.is_sound()) parse_records(plan, run, 1, columns);
}

inline void check_parsing(const Plan& plan, const Rows& rows) {
  require(rows.run().is_sound(), "records within the buffer are sound");
  check_place(plan, rows);
  std::vector<Column> columns;
  const Fault fault = parse_records(plan, rows.run(), 1, columns);
  if (fault.code == FaultCode::kNone) {
    require_sound(plan, rows.run(), columns);
  } else {
    const auto count = static_cast<int32_t>(plan.columns().size());
    require(fault.row < rows.starts.size() && fault.column >= -1 && fault.column < count &&
                (fault.code == FaultCode::kMalformed) == (fault.column == -1),
            "a fault names a row and a column");
  }
  check_rows_alone(plan, rows, fault);
  check_unusual_form(plan, rows);
  if (rows.buffer.size() % 8 == 0) check_threads(plan, rows, fault, columns);  // it is slow
}

// Makes the column that reads every value of a discovered key; false if the key has several kinds.
inline bool make_spec(const std::string& key, const FeatureStats& stats, bool is_list,
                      ColumnSpec& spec) {
  const Cell cells[] = {Cell::kInt64, Cell::kSlice, Cell::kFloat32, Cell::kInt64};
  size_t kinds = 0;
  for (size_t kind = 1; kind < 4; ++kind) {
    if (stats.kinds[kind] == 0) continue;
    ++kinds;
    spec.key = key;
    spec.kind = static_cast<Kind>(kind);
    spec.layout = is_list ? Layout::kNestedSteps : Layout::kVariable;
    spec.cell = cells[kind];
    spec.is_text = stats.not_utf8 == 0;
    spec.is_optional = true;
  }
  return kinds == 1;
}

// Records that discovery accepts are parsed with the discovered types.
inline void check_discovery(const Rows& rows) {
  Discovery discovery;
  Rows sound;
  for (size_t i = 0; i < rows.starts.size(); ++i) {
    if (discovery.add(rows.run()[i])) sound.add(rows.run()[i]);
  }
  require(discovery.records() == sound.starts.size(), "discovery counts what it accepts");
  std::vector<ColumnSpec> specs;
  std::vector<const FeatureStats*> stats;
  for (const bool is_list : {false, true}) {
    for (const auto& [key, found] : is_list ? discovery.lists() : discovery.context()) {
      ColumnSpec spec;
      if (!make_spec(key, found, is_list, spec)) continue;
      specs.push_back(std::move(spec));
      stats.push_back(&found);
    }
  }
  const Plan plan(std::move(specs));
  std::vector<Column> columns;
  require(parse_records(plan, sound.run(), 1, columns).code == FaultCode::kNone,
          "what was discovered can be parsed");
  require_sound(plan, sound.run(), columns);
  for (size_t c = 0; c < columns.size(); ++c) {
    const bool is_list = plan.columns()[c].is_sequence();
    const Buffer& present = columns[c].present;
    const auto there = static_cast<uint64_t>(
        std::count(present.data(), present.data() + present.size(), uint8_t{1}));
    require(there == stats[c]->records - (is_list ? 0 : stats[c]->kinds[0]),
            "as many records have the key as were counted");
    const std::span<const int64_t> ends = as_int64(columns[c].splits);
    const CountRange& counts = is_list ? stats[c]->steps : stats[c]->values;
    for (size_t i = 0; i + 1 < ends.size(); ++i) {
      const auto count = static_cast<uint64_t>(ends[i + 1] - ends[i]);
      require(present.data()[i] == 0 || (count >= counts.least && count <= counts.most),
              "counts lie within the range");
    }
  }
}

struct Shape {
  Kind kind;
  Layout layout;
  Cell cell;
  size_t unit;
};

// A required key for each bit of `required`; `shift` rotates the shapes along the keys.
template <size_t kCount>
std::vector<ColumnSpec> make_specs(const Shape (&shapes)[kCount], size_t columns, uint8_t shift,
                                   uint8_t required) {
  std::vector<ColumnSpec> specs;
  for (size_t i = 0; i < columns; ++i) {
    const Shape& shape = shapes[(shift + i) % kCount];
    ColumnSpec& spec = specs.emplace_back();
    spec.key = std::string(1, static_cast<char>('a' + i));
    spec.kind = shape.kind;
    spec.layout = shape.layout;
    spec.cell = shape.cell;
    spec.unit = shape.unit;
    spec.is_text = shift % 64 >= 32;
    spec.is_optional = ((required >> i) & 1) == 0;
    const bool has_default = !spec.is_sequence() && spec.cell != Cell::kSlice && shift >= 128;
    if (spec.is_optional && has_default) spec.default_value.assign(spec.unit_bytes(), 1);
  }
  return specs;
}

}  // namespace datum::fuzz
