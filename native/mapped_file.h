// A read-only memory-mapped file that survives the loss of its bytes.
//
// Truncating a file removes its pages from every mapping: touching one of them raises SIGBUS, which
// ends the process. A handler of that signal puts zeros in place of pages that a mapping of this
// class has lost, and marks it. So every use is: copy, then check `state`; the copy counts only if
// the file has not changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "wire.h"

namespace datum {

// Identity of one version of a file.
struct FileVersion {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t bytes = 0;
  int64_t modified_ns = 0;

  bool operator==(const FileVersion&) const = default;
};

// The state of a file since it was opened.
enum class FileState : uint8_t {
  kSame,
  kCut,         // truncated
  kRewritten,   // with other bytes
  kGrown,       // longer; the old bytes may be unchanged
  kUnreadable,  // some of it could not be read, though its size is the same
};

// The file stays mapped, though not open, while this exists: thousands of shards would otherwise
// exhaust the file descriptors of a process.
class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  // Maps a regular file, or copies one of at most `max_copied` bytes, which needs no mapping and
  // cannot change. Returns 0, or an errno.
  int open(const std::filesystem::path& path, size_t max_copied = 0);

  // Bytes that the file loses read as zeros.
  ByteSpan bytes() const { return {data_, size_}; }
  const FileVersion& version() const { return version_; }
  const std::filesystem::path& path() const { return path_; }

  // Whether bytes that were read are lost: free, but may miss some.
  bool has_lost_bytes() const;
  // Returns the state of the file; sets `bytes_now` to its size. Another file that took its name is
  // ignored. Makes a system call.
  FileState state(uint64_t& bytes_now) const;

  // Releases the pages of the first bytes; they are read again when needed.
  void drop_pages(size_t end) const;
  void drop_pages() const { drop_pages(size_); }

  // Starts to read some bytes, without waiting for them.
  void read_ahead(size_t offset, size_t size) const;

 private:
  bool is_mapped() const { return data_ != nullptr && copy_.empty(); }
  int copy(int descriptor, size_t size);
  int map(int descriptor, size_t size);

  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  std::vector<uint8_t> copy_;
  size_t guard_ = 0;  // of the mapping
  std::filesystem::path path_;
  FileVersion version_;
};

// The number of files mapped in this process, and the limit.
size_t mapped_files();
constexpr size_t kMaxMappedFiles = 16 * 1024;  // Linux lets a process have 65,530 maps of all kinds

// Makes sure that the handler is the first to receive SIGBUS. Others may install theirs at any time
// (for example Python's faulthandler), so call this before reading; it costs little within a
// millisecond of the last call.
void guard_mapped_files();

}  // namespace datum
