// Large blocks of memory, kept for a while after they are released.
//
// Batches come and go thousands of times a second. With the system's allocator, each new one costs
// a page fault for every 4 KiB, which can take as long as filling it.
#pragma once

#include <cstddef>

namespace datum {

constexpr size_t kBlockAlignment = 64;  // for SIMD, and for frameworks that adopt memory

// Returns a block of at least `bytes`; sets `capacity` to its size. Throws std::bad_alloc.
void* allocate_block(size_t bytes, size_t& capacity);

// Releases a block, from any thread; null is fine.
void release_block(void* block) noexcept;

}  // namespace datum
