#include "memory.h"

#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace datum {
namespace {

constexpr size_t kMinKept = 16 * 1024;  // the system handles smaller ones well
constexpr size_t kMaxKeptInAll =
    256 * 1024 * 1024;  // a few batches of images; memory stays bounded

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kKeepBlocks = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool kKeepBlocks = false;
#else
constexpr bool kKeepBlocks = true;
#endif
#else
constexpr bool kKeepBlocks = true;
#endif

// The header just before each block.
struct Prefix {
  void* start;  // of the memory from the system
  size_t capacity;
};
static_assert(sizeof(Prefix) <= kBlockAlignment);

Prefix& prefix_of(void* block) { return static_cast<Prefix*>(block)[-1]; }

// Rounds up so that batches of similar size use the same blocks: to a quarter of a power of two.
size_t round_up(size_t bytes) {
  if (bytes < kMinKept || bytes > SIZE_MAX / 2) return bytes;
  const size_t step = std::bit_floor(bytes) / 4;
  return (bytes + step - 1) / step * step;
}

// Free blocks by capacity. A thread that does not get the lock immediately uses the system instead:
// nobody waits, and a process that was forked while the lock was held cannot hang.
class Pool {
 public:
  void* take(size_t capacity) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return nullptr;
    const auto found = free_.find(capacity);
    if (found == free_.end()) return nullptr;
    found->second.used = ++uses_;
    if (found->second.blocks.empty()) return nullptr;
    return take_from(*found);
  }

  bool keep(void* block, size_t capacity) noexcept {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || capacity > kMaxKeptInAll) return false;
    try {
      Blocks& same = free_[capacity];
      same.blocks.push_back(block);
      same.used = ++uses_;
    } catch (const std::bad_alloc&) {
      return false;
    }
    kept_ += capacity;
    while (kept_ > kMaxKeptInAll) drop_one();
    return true;
  }

 private:
  struct Blocks {
    std::vector<void*> blocks;
    uint64_t used = 0;  // when it was last requested or returned
  };
  using Sizes = std::map<size_t, Blocks>;

  void* take_from(Sizes::value_type& size) {
    void* block = size.second.blocks.back();
    size.second.blocks.pop_back();
    kept_ -= size.first;
    return block;
  }

  // Drops a block of the size that was unused for the longest time.
  void drop_one() {
    Sizes::value_type* oldest = nullptr;
    for (Sizes::value_type& size : free_) {
      if (size.second.blocks.empty()) continue;
      if (oldest == nullptr || size.second.used < oldest->second.used) oldest = &size;
    }
    ::operator delete(prefix_of(take_from(*oldest)).start);
  }

  std::mutex mutex_;
  Sizes free_;
  size_t kept_ = 0;
  uint64_t uses_ = 0;
};

// Never destroyed: arrays may outlive the module.
Pool& pool() {
  static Pool& instance = *new Pool;
  return instance;
}

}  // namespace

void* allocate_block(size_t bytes, size_t& capacity) {
  capacity = round_up(bytes);
  if (kKeepBlocks && capacity >= kMinKept) {
    if (void* block = pool().take(capacity)) return block;
  }
  // Aligned by hand: the system is several times slower for small aligned blocks.
  constexpr size_t kExtra = 2 * kBlockAlignment;
  if (capacity > SIZE_MAX - kExtra) throw std::bad_alloc();
  void* start = ::operator new(capacity + kExtra);
  void* block = static_cast<uint8_t*>(start) + sizeof(Prefix);
  size_t room = capacity + kExtra - sizeof(Prefix);
  std::align(kBlockAlignment, capacity, block, room);
  prefix_of(block) = {start, capacity};
  return block;
}

void release_block(void* block) noexcept {
  if (block == nullptr) return;
  const auto [start, capacity] = prefix_of(block);
  if (kKeepBlocks && capacity >= kMinKept && pool().keep(block, capacity)) return;
  ::operator delete(start);
}

}  // namespace datum
