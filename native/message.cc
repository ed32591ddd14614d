#include "message.h"

namespace datum {

namespace {

// Counts the varints of a packed chunk; false if the last is truncated or one is over-long.
bool count_varints(ByteSpan chunk, size_t& count) {
  constexpr int kMaxVarint = 10;
  int length = 0;
  for (const uint8_t byte : chunk) {
    if (++length > kMaxVarint) return false;
    if (byte < 0x80) {
      ++count;
      length = 0;
    }
  }
  return length == 0;
}

}  // namespace

bool is_utf8(ByteSpan text) {
  const uint8_t* at = text.data();
  const uint8_t* end = at + text.size();
  while (at < end) {
    uint64_t word;
    if (end - at >= 8 && (std::memcpy(&word, at, 8), (word & 0x8080808080808080ull) == 0)) {
      at += 8;
      continue;
    }
    const uint8_t lead = *at++;
    if (lead < 0x80) continue;
    // The lead byte determines how many bytes follow, and the range of the first of them.
    uint8_t low = 0x80;
    uint8_t high = 0xbf;
    int more;
    if (lead >= 0xc2 && lead <= 0xdf) {
      more = 1;
    } else if (lead >= 0xe0 && lead <= 0xef) {
      more = 2;
      if (lead == 0xe0) low = 0xa0;   // over-long
      if (lead == 0xed) high = 0x9f;  // surrogates
    } else if (lead >= 0xf0 && lead <= 0xf4) {
      more = 3;
      if (lead == 0xf0) low = 0x90;   // over-long
      if (lead == 0xf4) high = 0x8f;  // above U+10FFFF
    } else {
      return false;
    }
    for (; more > 0; --more) {
      if (at == end || *at < low || *at > high) return false;
      ++at;
      low = 0x80;
      high = 0xbf;
    }
  }
  return true;
}

bool read_entry(ByteSpan entry, ByteSpan& key, Pieces& value) {
  key = {};
  value.clear();
  WireReader reader(entry);
  while (!reader.at_end()) {
    uint32_t tag;
    if (!reader.read_tag(tag)) return false;
    if (tag == kFieldOneBytes) {
      if (!reader.read_bytes(key) || !is_utf8(key)) return false;
    } else if (tag == kFieldTwoBytes) {
      ByteSpan piece;
      if (!reader.read_bytes(piece)) return false;
      value.push_back(piece);
    } else {
      return false;
    }
  }
  return true;
}

bool read_feature(ByteSpan piece, Kind& kind, Pieces& list) {
  WireReader reader(piece);
  while (!reader.at_end()) {
    uint32_t tag;
    if (!reader.read_tag(tag)) return false;
    const uint32_t field = tag >> 3;
    if ((tag & 7) != static_cast<uint32_t>(WireType::kBytes) || field > 3) {
      if (!reader.skip(tag)) return false;
      continue;
    }
    ByteSpan bytes;
    if (!reader.read_bytes(bytes)) return false;
    const Kind found = static_cast<Kind>(field);
    if (found != kind) {  // the last kind wins, but what it replaces must be valid too
      size_t ignored;
      if (!count_values(list, kind, ignored)) return false;
      list.clear();
    }
    kind = found;
    list.push_back(bytes);
  }
  return true;
}

bool count_values(const Pieces& list, Kind kind, size_t& count) {
  count = 0;
  for (const ByteSpan piece : list) {
    bool sound;
    if (kind == Kind::kBytes) {
      sound = for_each_field(piece, kFieldOneBytes, [&](ByteSpan) {
        ++count;
        return true;
      });
    } else {
      sound = walk_numbers(
          piece, kind,
          [&](ByteSpan chunk) {
            if (kind == Kind::kFloat) {
              count += chunk.size() / 4;
              return chunk.size() % 4 == 0;
            }
            return count_varints(chunk, count);
          },
          [&](uint64_t) {
            ++count;
            return true;
          });
    }
    if (!sound) return false;
  }
  return true;
}

}  // namespace datum
