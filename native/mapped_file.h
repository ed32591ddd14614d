// A read-only memory-mapped file that survives the loss of its bytes.
//
// Truncating a file removes its pages from every mapping: touching one of them raises SIGBUS, which
// ends the process. A handler of that signal puts zeros in place of pages that a mapping of this
// class has lost, and marks it. So every use is: copy, then check `state`; the copy counts only if
// the file has not changed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "wire.h"

namespace datum {

// Identity of one version of a file.
struct FileVersion {
  // The times of a file that is filled in while it is read: a sparse file of a cache, whose readers
  // know which of its bytes are there. When it was written to says nothing then, nor its rights.
  static constexpr int64_t kFilling = -1;

  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t bytes = 0;
  int64_t modified_ns = 0;  // anybody can set it
  int64_t changed_ns = 0;   // the system's own; also changes with the name and with `rights`
  uint64_t rights = 0;      // a digest of mode, owner, group and number of links

  bool is_filling() const { return modified_ns == kFilling; }
  bool operator==(const FileVersion&) const = default;
};

// Finds the version of the file of this name. Returns 0, or the error number of the system.
int find_version(const std::filesystem::path& path, FileVersion& version);

// The state of a file since it was opened.
enum class FileState : uint8_t {
  kSame,
  kCut,         // truncated
  kRewritten,   // with other bytes
  kTouched,     // changed, according to the system; nothing else differs
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
  // cannot change. A file that `is_filling` is always mapped, and its version has these times.
  // Returns 0, or an errno.
  int open(const std::filesystem::path& path, size_t max_copied = 0, bool is_filling = false);

  // Bytes that the file loses read as zeros.
  ByteSpan bytes() const { return {data_, size_}; }
  const FileVersion& version() const { return version_; }
  const std::filesystem::path& path() const { return path_; }

  // Sets the checksum of all bytes, if it is known: a file that was touched is compared with it.
  void expect(uint32_t crc32c) { expected_crc_ = crc32c; }

  // Whether bytes that were read are lost: free, but may miss some.
  bool has_lost_bytes() const;
  // Returns the state of the file; sets `bytes_now` to its size. Another file that took its name is
  // ignored, and so are changes of rights and links alone. Makes a system call.
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
  FileState state_of_touched(const FileVersion& now) const;

  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  std::vector<uint8_t> copy_;
  size_t guard_ = 0;  // of the mapping
  std::filesystem::path path_;
  FileVersion version_;
  std::optional<uint32_t> expected_crc_;
  // As they were when the bytes were last known to be those that were opened.
  mutable std::atomic<int64_t> changed_ns_{0};
  mutable std::atomic<uint64_t> rights_{0};
};

// The number of files mapped in this process, and the limit.
size_t mapped_files();
constexpr size_t kMaxMappedFiles = 16 * 1024;  // Linux lets a process have 65,530 maps of all kinds

// Makes sure that the handler is the first to receive SIGBUS. Others may install theirs at any time
// (for example Python's faulthandler), so call this before reading; it costs little within a
// millisecond of the last call.
void guard_mapped_files();

}  // namespace datum
