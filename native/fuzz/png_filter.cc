// Fuzzes the filters of PNG: filtered pixels are restored, and nothing else is touched.
#include "png_filter.h"

#include "checks.h"

using namespace datum;
using datum::fuzz::Input;
using datum::fuzz::require;

namespace {

constexpr size_t kMaxRowBytes = 64;
constexpr uint8_t kGuard = 0xA5;

// The specification, literally.
uint8_t predict(uint8_t filter, int left, int up, int corner) {
  switch (filter) {
    case 1:
      return static_cast<uint8_t>(left);
    case 2:
      return static_cast<uint8_t>(up);
    case 3:
      return static_cast<uint8_t>((left + up) / 2);
    case 4: {
      const int p = left + up - corner;
      const int a = std::abs(p - left), b = std::abs(p - up), c = std::abs(p - corner);
      return static_cast<uint8_t>(a <= b && a <= c ? left : b <= c ? up : corner);
    }
    default:
      return 0;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const size_t row_bytes = 1 + input.byte() % kMaxRowBytes;
  const size_t pixel_bytes = 1 + input.byte() % 4;
  const std::vector<uint8_t> filtered = fuzz::exact_copy(input.rest());
  std::vector<uint8_t> out(filtered.size() + 1, kGuard);
  const bool is_done = undo_png_filters(filtered, row_bytes, pixel_bytes, out.data());
  const size_t stride = row_bytes + 1;
  bool is_sound = filtered.size() % stride == 0;
  for (size_t at = 0; is_sound && at < filtered.size(); at += stride) is_sound = filtered[at] <= 4;
  require(is_done == is_sound, "whole rows with known filters are undone, and no others");
  if (!is_done) return 0;
  const size_t rows = filtered.size() / stride;
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < row_bytes; ++i) {
      const uint8_t* at = out.data() + row * row_bytes + i;
      const int left = i < pixel_bytes ? 0 : at[-static_cast<ptrdiff_t>(pixel_bytes)];
      const int up = row == 0 ? 0 : at[-static_cast<ptrdiff_t>(row_bytes)];
      const int corner =
          row == 0 || i < pixel_bytes ? 0 : at[-static_cast<ptrdiff_t>(row_bytes + pixel_bytes)];
      const uint8_t* in = filtered.data() + row * stride;
      const auto expected = static_cast<uint8_t>(in[1 + i] + predict(in[0], left, up, corner));
      require(*at == expected, "pixels are as the specification has them");
    }
  }
  require(out[rows * row_bytes] == kGuard, "nothing is written behind them");
  return 0;
}
