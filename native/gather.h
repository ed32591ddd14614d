// Pieces of memory copied into one block, in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "columns.h"

namespace datum {

// Appends `data[starts[i], starts[i] + sizes[i])` to `out` for each i; throws std::out_of_range,
// having copied nothing, when a piece is outside `data`.
void gather(ByteSpan data, std::span<const int64_t> starts, std::span<const int64_t> sizes,
            size_t threads, Buffer& out);

// The hash of a record's key: FNV-1a of its bytes, mixed like SplitMix64. It decides splits, so it
// must never change.
uint64_t hash_key(ByteSpan key);

}  // namespace datum
