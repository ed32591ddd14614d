#include "discover.h"

#include <algorithm>
#include <utility>

namespace datum {
namespace {

bool add_feature(const Pieces& pieces, FeatureStats& stats) {
  Kind kind = Kind::kUnset;
  Pieces list;
  for (const ByteSpan piece : pieces) {
    if (!read_feature(piece, kind, list)) return false;
  }
  size_t count;
  if (!count_values(list, kind, count)) return false;
  ++stats.kinds[static_cast<size_t>(kind)];
  if (kind != Kind::kUnset) stats.values.add(count);
  if (kind != Kind::kBytes) return true;
  for (const ByteSpan piece : list) {
    for_each_field(piece, kFieldOneBytes, [&](ByteSpan string) {
      stats.bytes.add(string.size());
      stats.not_utf8 += is_utf8(string) ? 0 : 1;
      return true;
    });
  }
  return true;
}

bool add_feature_list(const Pieces& pieces, FeatureStats& stats) {
  uint64_t steps = 0;
  for (const ByteSpan piece : pieces) {
    const bool sound = for_each_field(piece, kFieldOneBytes, [&](ByteSpan feature) {
      ++steps;
      return add_feature({feature}, stats);
    });
    if (!sound) return false;
  }
  stats.steps.add(steps);
  return true;
}

}  // namespace

void FeatureStats::add(const FeatureStats& other) {
  records += other.records;
  for (size_t kind = 0; kind < 4; ++kind) kinds[kind] += other.kinds[kind];
  values.add(other.values);
  steps.add(other.steps);
  bytes.add(other.bytes);
  not_utf8 += other.not_utf8;
}

bool Discovery::add(ByteSpan payload) {
  Entries context;
  Entries lists;
  bool has_unknown = false;
  WireReader reader(payload);
  while (!reader.at_end()) {
    uint32_t tag;
    ByteSpan map;
    if (!reader.read_tag(tag)) return false;
    if (tag == kFieldOneBytes || tag == kFieldTwoBytes) {
      if (!reader.read_bytes(map)) return false;
      if (!read_map(map, tag == kFieldOneBytes ? context : lists)) return false;
    } else {
      if (!reader.skip(tag)) return false;
      has_unknown = true;
    }
  }
  sort(context);
  sort(lists);
  // Once to validate, once to count.
  if (!measure(context, false, nullptr) || !measure(lists, true, nullptr)) return false;
  measure(context, false, &context_);
  measure(lists, true, &lists_);
  ++records_;
  with_unknown_fields_ += has_unknown ? 1 : 0;
  return true;
}

bool Discovery::read_map(ByteSpan map, Entries& entries) {
  Pieces value;
  return for_each_field(map, kFieldOneBytes, [&](ByteSpan bytes) {
    ByteSpan key;
    if (!read_entry(bytes, key, value)) return false;
    entries.push_back({{reinterpret_cast<const char*>(key.data()), key.size()}, bytes});
    return true;
  });
}

void Discovery::sort(Entries& entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.key < b.key; });
}

// Counts the entries; only the last of those with the same key counts, though all must be valid.
bool Discovery::measure(const Entries& entries, bool are_lists, Features* features) {
  Pieces value;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    ByteSpan key;
    FeatureStats stats;
    stats.records = 1;
    if (!read_entry(entry.bytes, key, value)) return false;
    if (!(are_lists ? add_feature_list : add_feature)(value, stats)) return false;
    const bool is_replaced = i + 1 < entries.size() && entries[i + 1].key == entry.key;
    if (features == nullptr || is_replaced) continue;
    auto found = features->find(entry.key);
    if (found == features->end()) found = features->emplace(entry.key, FeatureStats{}).first;
    found->second.add(stats);
  }
  return true;
}

}  // namespace datum
