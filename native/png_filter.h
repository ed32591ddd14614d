// The filters of PNG (clause 9 of its specification): each row as differences to its neighbours.
#pragma once

#include <cstddef>
#include <cstdint>

#include "framing.h"

namespace datum {

// Undoes the filters of inflated rows: for each row its filter, then `row_bytes` bytes. Writes the
// pixels to `out`, which must not overlap. Returns false if `filtered` is not whole rows with known
// filters; `out` is then undefined. `pixel_bytes` is at least 1.
bool undo_png_filters(ByteSpan filtered, size_t row_bytes, size_t pixel_bytes, uint8_t* out);

}  // namespace datum
