#include "columns.h"

#include <cstring>

namespace datum {

void Buffer::reallocate(size_t capacity) {
  auto* data = static_cast<uint8_t*>(allocate_block(capacity, capacity));
  if (size_ > 0) std::memcpy(data, data_, size_);
  release_block(data_);
  data_ = data;
  capacity_ = capacity;
}

size_t cell_bytes(Cell cell) {
  switch (cell) {
    case Cell::kBool:
    case Cell::kInt8:
    case Cell::kUint8:
    case Cell::kRaw:
      return 1;
    case Cell::kInt16:
    case Cell::kUint16:
      return 2;
    case Cell::kInt32:
    case Cell::kUint32:
    case Cell::kFloat32:
      return 4;
    case Cell::kInt64:
    case Cell::kUint64:
      return 8;
    case Cell::kSlice:
      return sizeof(Slice);
  }
  return 0;
}

}  // namespace datum
