// Prefetching of memory that will be needed soon.
#pragma once

namespace datum {

inline void prefetch(const void* address) { __builtin_prefetch(address); }

}  // namespace datum
