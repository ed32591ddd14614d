// A file mapped into memory, to be read only, that survives the loss of its bytes.
//
// Whoever cuts a file takes its pages out of every mapping: to touch one of them is SIGBUS, which
// ends the process. A handler of that signal puts zeros in the place of pages that a mapping of
// this class has lost, and marks it. So every use is: copy, then ask `state`; what was copied
// counts only if nothing happened to the file.
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

// What became of a file since it was opened.
enum class FileState : uint8_t {
  kSame,
  kCut,         // it is shorter
  kRewritten,   // it has other bytes
  kGrown,       // it is longer; what it had may be as it was
  kUnreadable,  // some of it could not be read, though it is as long as it was
};

// The file stays mapped, though not open, for as long as this lives: thousands of shards would
// otherwise use up the descriptors that a process may have.
class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  // Maps a regular file, or copies one of at most `max_copied` bytes: that takes no map, and
  // nothing can happen to it. Returns 0, or the number of the system's error.
  int open(const std::filesystem::path& path, size_t max_copied = 0);

  // Bytes that the file loses become zeros.
  ByteSpan bytes() const { return {data_, size_}; }
  const FileVersion& version() const { return version_; }
  const std::filesystem::path& path() const { return path_; }

  // Whether bytes that were asked for are lost: costs nothing, but may miss some.
  bool has_lost_bytes() const;
  // What became of the file; `bytes_now` is its size. Another file that took its name is of no
  // concern. Asks the system.
  FileState state(uint64_t& bytes_now) const;

  // Hands back the pages of the first bytes; whoever needs them gets them again.
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

// How many files are mapped in this process, and may be.
size_t mapped_files();
constexpr size_t kMaxMappedFiles = 16 * 1024;  // Linux lets a process have 65,530 maps of all kinds

// Makes sure that the handler is the first to hear of SIGBUS. Others install theirs at any time
// (faulthandler of Python, for one), so whoever is about to read calls this; it costs little if
// it was called within the same millisecond.
void guard_mapped_files();

}  // namespace datum
