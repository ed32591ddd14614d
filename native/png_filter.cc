#include "png_filter.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace datum {
namespace {

enum Filter : uint8_t { kNone, kSub, kUp, kAverage, kPaeth };

// Returns the one of the three that is nearest to left + up - corner.
uint8_t paeth(uint8_t left, uint8_t up, uint8_t corner) {
  const int to_left = std::abs(up - corner);
  const int to_up = std::abs(left - corner);
  const int to_corner = std::abs(left + up - 2 * corner);
  if (to_left <= to_up && to_left <= to_corner) return left;
  return to_up <= to_corner ? up : corner;
}

void undo_sub(const uint8_t* in, size_t bytes, size_t step, uint8_t* out) {
  for (size_t i = 0; i < bytes; ++i) out[i] = in[i] + (i < step ? 0 : out[i - step]);
}

void undo_up(const uint8_t* in, size_t bytes, const uint8_t* above, uint8_t* out) {
  for (size_t i = 0; i < bytes; ++i) out[i] = in[i] + above[i];
}

void undo_average(const uint8_t* in, size_t bytes, size_t step, const uint8_t* above,
                  uint8_t* out) {
  for (size_t i = 0; i < bytes; ++i) {
    const int left = i < step ? 0 : out[i - step];
    const int up = above == nullptr ? 0 : above[i];
    out[i] = static_cast<uint8_t>(in[i] + (left + up) / 2);
  }
}

void undo_paeth(const uint8_t* in, size_t bytes, size_t step, const uint8_t* above, uint8_t* out) {
  const size_t first = std::min(step, bytes);
  for (size_t i = 0; i < first; ++i) out[i] = in[i] + above[i];
  for (size_t i = first; i < bytes; ++i) {
    out[i] = in[i] + paeth(out[i - step], above[i], above[i - step]);
  }
}

}  // namespace

bool undo_png_filters(ByteSpan filtered, size_t row_bytes, size_t pixel_bytes, uint8_t* out) {
  if (filtered.size() % (row_bytes + 1) != 0) return false;
  const uint8_t* above = nullptr;
  for (const uint8_t* in = filtered.data(); in != filtered.data() + filtered.size();
       in += row_bytes + 1) {
    const uint8_t* row = in + 1;
    switch (in[0]) {
      case kUp:
        if (above != nullptr) {
          undo_up(row, row_bytes, above, out);
          break;
        }
        [[fallthrough]];  // the row above the first is zero
      case kNone:
        std::memcpy(out, row, row_bytes);
        break;
      case kPaeth:
        if (above != nullptr) {
          undo_paeth(row, row_bytes, pixel_bytes, above, out);
          break;
        }
        [[fallthrough]];  // of left, 0 and 0, left is always the nearest
      case kSub:
        undo_sub(row, row_bytes, pixel_bytes, out);
        break;
      case kAverage:
        undo_average(row, row_bytes, pixel_bytes, above, out);
        break;
      default:
        return false;
    }
    above = out;
    out += row_bytes;
  }
  return true;
}

}  // namespace datum
