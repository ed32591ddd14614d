// Discovery of the keys of serialized records: their kinds and lengths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "message.h"

namespace datum {

struct CountRange {
  uint64_t least = UINT64_MAX;
  uint64_t most = 0;

  void add(uint64_t count) { add(CountRange{count, count}); }
  void add(const CountRange& other) {
    least = other.least < least ? other.least : least;
    most = other.most > most ? other.most : most;
  }
};

struct FeatureStats {
  uint64_t records = 0;    // records that have the key
  uint64_t kinds[4] = {};  // occurrences of each Kind, including kUnset (in records, or in steps)
  CountRange values;       // in a record, or in a step
  CountRange steps;        // in a record; feature lists only
  CountRange bytes;        // of a byte string
  uint64_t not_utf8 = 0;   // byte strings that are not text

  void add(const FeatureStats& other);
};

// Collects over records; keys are sorted.
class Discovery {
 public:
  using Features = std::map<std::string, FeatureStats, std::less<>>;

  // Returns false if the payload is not a well-formed message: nothing of it is counted.
  bool add(ByteSpan payload);

  uint64_t records() const { return records_; }
  // Records with a top-level field that neither Example nor SequenceExample has.
  uint64_t with_unknown_fields() const { return with_unknown_fields_; }
  const Features& context() const { return context_; }
  const Features& lists() const { return lists_; }

 private:
  // Small, since a record can have one for every two bytes.
  struct Entry {
    std::string_view key;
    ByteSpan bytes;
  };
  using Entries = std::vector<Entry>;

  static bool read_map(ByteSpan map, Entries& entries);
  static void sort(Entries& entries);
  static bool measure(const Entries& entries, bool are_lists, Features* features);

  uint64_t records_ = 0;
  uint64_t with_unknown_fields_ = 0;
  Features context_;
  Features lists_;
};

}  // namespace datum
