// A file mapped into memory, to be read only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "wire.h"

namespace datum {

// The file stays mapped, though not open, for as long as this lives: thousands of shards would
// otherwise use up the descriptors that a process may have.
class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  // Maps a regular file; returns 0, or the number of the system's error.
  int open(const std::filesystem::path& path);

  ByteSpan bytes() const { return {data_, size_}; }

  // The size of the file now if it is less than what was mapped: bytes beyond it must not be
  // touched. Another file that took its name is of no concern.
  std::optional<uint64_t> size_if_cut() const;

  // Hands back the pages that were touched; whoever needs them gets them again.
  void drop_pages() const;

  // Starts to read some bytes, without waiting for them.
  void read_ahead(size_t offset, size_t size) const;

 private:
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  std::filesystem::path path_;
  uint64_t device_ = 0;  // with `inode_` tells one file from another
  uint64_t inode_ = 0;
};

}  // namespace datum
