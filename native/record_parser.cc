#include "record_parser.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace datum {
namespace {

constexpr size_t kMaxUnit = size_t{1} << 48;  // so that sizes in bytes cannot overflow

bool same_bytes(ByteSpan a, ByteSpan b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

bool is_kind_tag(uint32_t tag) {
  return (tag & 7) == static_cast<uint32_t>(WireType::kBytes) && (tag >> 3) <= 3;
}

// Returns whether `list` is one field 1 of bytes: a packed chunk, or a single byte string.
bool is_single_chunk(ByteSpan list, ByteSpan& chunk) {
  WireReader reader(list);
  uint32_t tag;
  return reader.read_tag(tag) && tag == kFieldOneBytes && reader.read_bytes(chunk) &&
         reader.at_end();
}

}  // namespace

Plan::Plan(std::vector<ColumnSpec> columns) : columns_(std::move(columns)) {
  for (size_t i = 0; i < columns_.size(); ++i) {
    const ColumnSpec& spec = columns_[i];
    if (spec.unit > kMaxUnit || (spec.unit == 0 && !spec.has_fixed_units())) {
      throw std::invalid_argument("the units of a column are too large, or empty");
    }
    Map& map = spec.is_sequence() ? sequences_ : context_;
    map.emplace(spec.key, static_cast<int32_t>(i));
  }
}

int32_t Plan::find(ByteSpan key, bool is_sequence) const {
  const Map& map = is_sequence ? sequences_ : context_;
  const auto found = map.find({reinterpret_cast<const char*>(key.data()), key.size()});
  return found == map.end() ? -1 : found->second;
}

RecordParser::RecordParser(const Plan& plan, std::vector<Column>& columns, size_t rows,
                           size_t payload_bytes, ByteSpan buffer)
    : plan_(plan) {
  builders_.reserve(columns.size());
  for (size_t c = 0; c < columns.size(); ++c) {
    builders_.emplace_back(plan.columns()[c], columns[c], rows, payload_bytes, buffer);
    if (builders_.back().is_too_large() && fault_.code == FaultCode::kNone) {
      fault_ = {FaultCode::kBlank, 0, static_cast<int32_t>(c), -1, 0, static_cast<int64_t>(rows)};
    }
  }
  for (Map* map : {&context_, &sequences_}) map->nameless = plan.find({}, map->is_sequence);
  context_.guesses.reserve(std::min(columns.size(), kMaxGuesses));
}

bool RecordParser::parse(ByteSpan payload, size_t row) {
  if (fault_.code != FaultCode::kNone) return false;
  row_ = row;
  seen_count_ = 0;
  context_.position = sequences_.position = 0;
  WireReader reader(payload);
  while (!reader.at_end()) {
    uint32_t tag;
    if (!reader.read_tag(tag)) return malformed();
    const bool is_context = tag == kFieldOneBytes;
    if (!is_context && (tag != kFieldTwoBytes || !plan_.has_sequences())) {
      if (!reader.skip(tag)) return malformed();
      continue;
    }
    ByteSpan bytes;
    if (!reader.read_bytes(bytes)) return malformed();
    if (!parse_map(bytes, is_context ? context_ : sequences_)) return false;
  }
  if (!pending_.empty()) {
    fault_ = pending_.front();
    return false;
  }
  return seen_count_ == builders_.size() || fill_absent();
}

inline ColumnBuilder& RecordParser::begin_value(int32_t column) {
  ColumnBuilder& builder = builders_[static_cast<size_t>(column)];
  if (!builder.has_value(row_)) {
    ++seen_count_;
  } else if (!pending_.empty()) {
    std::erase_if(pending_, [&](const Fault& fault) { return fault.column == column; });
  }
  builder.begin_value(row_);
  return builder;
}

bool RecordParser::parse_map(ByteSpan bytes, Map& map) {
  const uint8_t* at = bytes.data();
  const uint8_t* end = at + bytes.size();
  while (at < end) {
    at = parse_known_entries(at, end, map);
    if (at == end) break;
    WireReader reader({at, end});
    uint32_t tag;
    if (!reader.read_tag(tag)) return malformed();
    if (tag != kFieldOneBytes) {
      if (!reader.skip(tag)) return malformed();
      at = reader.position();
      continue;
    }
    if (map.position == map.guesses.size() && map.position < kMaxGuesses) {
      map.guesses.push_back({{}, map.nameless, {}});
    }
    Guess& guess = map.guesses[std::min(map.position, kMaxGuesses - 1)];
    ByteSpan entry;
    if (!reader.read_bytes(entry)) return malformed();
    if (!parse_entry(at, entry, map, guess)) return false;
    at = reader.position();
    ++map.position;
  }
  return true;
}

// Reads entries as long as they look like those of the previous record.
const uint8_t* RecordParser::parse_known_entries(const uint8_t* at, const uint8_t* end, Map& map) {
  const size_t count = map.guesses.size();
  const Guess* guesses = map.guesses.data();
  size_t position = map.position;
  while (at < end && position < count) {
    const Guess& guess = guesses[position];
    ByteSpan body;
    if (!guess.memo.match(at, end, body)) break;
    if (guess.column >= 0) {
      if (!builders_[static_cast<size_t>(guess.column)].take_chunk(row_, body)) break;
      ++seen_count_;
    }
    at = body.data() + body.size();
    ++position;
  }
  map.position = position;
  return at;
}

bool RecordParser::has_kind(int32_t column, Kind kind) const {
  return column < 0 || builders_[static_cast<size_t>(column)].spec().kind == kind;
}

// Parses an entry in the common form: one key, then one value with one list.
bool RecordParser::parse_entry(const uint8_t* tag_at, ByteSpan entry, Map& map, Guess& guess) {
  WireReader reader(entry);
  uint32_t tag;
  ByteSpan key;
  ByteSpan value;
  guess.memo.forget();
  if (!reader.read_tag(tag) || tag != kFieldOneBytes || !reader.read_bytes(key) ||
      !reader.read_tag(tag) || tag != kFieldTwoBytes || !reader.read_bytes(value) ||
      !reader.at_end()) {
    return parse_odd_entry(entry, map, guess);
  }
  if (!same_bytes(key, guess.key)) {
    if (!is_utf8(key)) return malformed();
    guess.key = key;
    guess.column = plan_.find(key, map.is_sequence);
  }
  if (map.is_sequence) {
    if (guess.column < 0) return true;
    value_pieces_.assign(1, value);
    return parse_sequence_value(guess.column, value_pieces_);
  }
  WireReader feature(value);
  ByteSpan list;
  ByteSpan chunk;
  const bool is_common = !feature.at_end() && feature.read_tag(tag) && is_kind_tag(tag) &&
                         feature.read_bytes(list) && feature.at_end() &&
                         is_single_chunk(list, chunk);
  if (is_common && has_kind(guess.column, static_cast<Kind>(tag >> 3))) {
    guess.memo.learn(tag_at, chunk, key.size());
    if (guess.column >= 0 && builders_[static_cast<size_t>(guess.column)].take_chunk(row_, chunk)) {
      ++seen_count_;
      return true;
    }
  }
  if (guess.column < 0) return true;
  value_pieces_.assign(1, value);
  return parse_context_value(guess.column, value_pieces_);
}

bool RecordParser::parse_odd_entry(ByteSpan entry, const Map& map, Guess& guess) {
  if (!read_entry(entry, guess.key, value_pieces_)) return malformed();
  guess.column = plan_.find(guess.key, map.is_sequence);
  if (guess.column < 0) return true;
  return map.is_sequence ? parse_sequence_value(guess.column, value_pieces_)
                         : parse_context_value(guess.column, value_pieces_);
}

bool RecordParser::parse_context_value(int32_t column, const Pieces& value) {
  Kind kind = Kind::kUnset;
  list_pieces_.clear();
  for (const ByteSpan piece : value) {
    if (!read_feature(piece, kind, list_pieces_)) return malformed();
  }
  ColumnBuilder& builder = begin_value(column);
  if (kind == Kind::kUnset) {  // equivalent to absent, even if an earlier entry had a value
    builder.forget_value();
    --seen_count_;
    return true;
  }
  return finish_value(column, builder.append_list(kind, list_pieces_));
}

bool RecordParser::parse_sequence_value(int32_t column, const Pieces& value) {
  ColumnBuilder& builder = begin_value(column);
  Outcome whole;
  for (const ByteSpan piece : value) {
    const bool is_sound = for_each_field(piece, kFieldOneBytes, [&](ByteSpan feature) {
      Kind kind = Kind::kUnset;
      list_pieces_.clear();
      if (!read_feature(feature, kind, list_pieces_)) return false;
      Outcome step;
      if (kind != Kind::kUnset) {
        step = builder.append_list(kind, list_pieces_);
      } else if (builder.spec().layout == Layout::kSteps) {
        step.code = FaultCode::kMissing;
      }
      if (step.code == FaultCode::kMalformed) return false;
      if (!step.is_sound() && whole.is_sound()) {
        step_ = static_cast<int64_t>(whole.units);
        whole = step;
      }
      builder.end_step(step.units);
      whole.units += whole.is_sound() ? 1 : 0;
      return true;
    });
    if (!is_sound) return malformed();
  }
  const bool is_finished = finish_value(column, whole);
  step_ = -1;
  return is_finished;
}

// Mismatches are noted, not raised: protobuf lets a later entry of the same key replace this one.
bool RecordParser::finish_value(int32_t column, const Outcome& outcome) {
  if (outcome.code == FaultCode::kMalformed) return malformed();
  if (outcome.is_sound()) {
    builders_[static_cast<size_t>(column)].end_value(row_, outcome.units);
  } else {
    note_mismatch(column, outcome);
  }
  return true;
}

bool RecordParser::fill_absent() {
  for (size_t c = 0; c < builders_.size(); ++c) {
    if (builders_[c].has_value(row_) || builders_[c].fill_absent(row_)) continue;
    note_mismatch(static_cast<int32_t>(c), {.code = FaultCode::kMissing});
    fault_ = pending_.front();
    return false;
  }
  return true;
}

bool RecordParser::malformed() {
  fault_ = {FaultCode::kMalformed, row_, -1, -1, 0, 0};
  return false;
}

void RecordParser::note_mismatch(int32_t column, const Outcome& outcome) {
  pending_.push_back({outcome.code, row_, column, step_, outcome.expected, outcome.got});
}

}  // namespace datum
