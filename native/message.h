// The messages tf.train.Example and tf.train.SequenceExample, read without copying.
//
//   Example         { Features features = 1; }
//   SequenceExample { Features context = 1; FeatureLists feature_lists = 2; }
//   Features        { map<string, Feature> feature = 1; }
//   FeatureLists    { map<string, FeatureList> feature_list = 1; }
//   FeatureList     { repeated Feature feature = 1; }
//   Feature         { oneof kind { BytesList = 1; FloatList = 2; Int64List = 3; } }
//   BytesList, FloatList, Int64List { repeated T value = 1 [packed]; }
//
// protobuf merges a message field that occurs twice, and merging equals concatenation, so the
// general form of every message here is a list of pieces that are read one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "wire.h"

namespace datum {

enum class Kind : uint8_t { kUnset = 0, kBytes = 1, kFloat = 2, kInt64 = 3 };

constexpr uint32_t kFieldOneBytes = make_tag(1, WireType::kBytes);
constexpr uint32_t kFieldTwoBytes = make_tag(2, WireType::kBytes);
constexpr uint32_t kFieldOneVarint = make_tag(1, WireType::kVarint);
constexpr uint32_t kFieldOneFixed32 = make_tag(1, WireType::kFixed32);

using Pieces = std::vector<ByteSpan>;

bool is_utf8(ByteSpan text);

// Calls `visit(ByteSpan)` for each length-delimited field `tag`; other fields are skipped.
// Returns false if the message is malformed or a visit returns false.
template <typename Visit>
bool for_each_field(ByteSpan message, uint32_t tag, Visit&& visit) {
  WireReader reader(message);
  while (!reader.at_end()) {
    uint32_t found;
    if (!reader.read_tag(found)) return false;
    if (found != tag) {
      if (!reader.skip(found)) return false;
      continue;
    }
    ByteSpan bytes;
    if (!reader.read_bytes(bytes) || !visit(bytes)) return false;
  }
  return true;
}

// Splits a map entry: the last key, and every piece of the value. Other fields are refused: one
// protobuf runtime keeps such an entry, another drops it, and TensorFlow rejects the record.
bool read_entry(ByteSpan entry, ByteSpan& key, Pieces& value);

// Splits a Feature: the kind that was set last, and every piece of its list. Call it for each piece
// of the Feature in turn, starting with kUnset and no pieces.
bool read_feature(ByteSpan piece, Kind& kind, Pieces& list);

// Visits the values of a FloatList or Int64List piece: `packed(ByteSpan)` for each packed chunk,
// `single(uint64_t)` for each unpacked value.
template <typename Packed, typename Single>
bool walk_numbers(ByteSpan piece, Kind kind, Packed&& packed, Single&& single) {
  WireReader reader(piece);
  while (!reader.at_end()) {
    uint32_t tag;
    if (!reader.read_tag(tag)) return false;
    if (tag == kFieldOneBytes) {
      ByteSpan chunk;
      if (!reader.read_bytes(chunk) || !packed(chunk)) return false;
    } else if (kind == Kind::kInt64 && tag == kFieldOneVarint) {
      uint64_t value;
      if (!reader.read_varint(value) || !single(value)) return false;
    } else if (kind == Kind::kFloat && tag == kFieldOneFixed32) {
      uint32_t value;
      if (!reader.read_fixed32(value) || !single(value)) return false;
    } else if (!reader.skip(tag)) {
      return false;
    }
  }
  return true;
}

// Counts the values in the pieces of a list; false if they are malformed.
bool count_values(const Pieces& list, Kind kind, size_t& count);

}  // namespace datum
