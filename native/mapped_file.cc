#include "mapped_file.h"

#include <algorithm>

#if defined(_WIN32)
#define NOMINMAX
#include <windows.h>
#else
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#endif

namespace datum {

#if defined(_WIN32)

namespace {

int system_error() {
  switch (GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
      return ENOENT;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
      return EACCES;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_COMMITMENT_LIMIT:
      return ENOMEM;
    default:
      return EIO;
  }
}

// Closes a handle of the system at the end of its scope.
class Handle {
 public:
  explicit Handle(HANDLE handle) : handle_(handle) {}
  ~Handle() {
    if (is_valid()) CloseHandle(handle_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  bool is_valid() const { return handle_ != nullptr && handle_ != INVALID_HANDLE_VALUE; }
  HANDLE get() const { return handle_; }

 private:
  HANDLE handle_;
};

}  // namespace

int MappedFile::open(const std::filesystem::path& path) {
  const Handle file(CreateFileW(path.c_str(), GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE,
                                nullptr, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr));
  LARGE_INTEGER size;
  if (!file.is_valid() || !GetFileSizeEx(file.get(), &size)) return system_error();
  if (size.QuadPart == 0) return 0;
  const Handle mapping(CreateFileMappingW(file.get(), nullptr, PAGE_READONLY, 0, 0, nullptr));
  if (!mapping.is_valid()) return system_error();
  const void* data = MapViewOfFile(mapping.get(), FILE_MAP_READ, 0, 0, 0);
  if (data == nullptr) return system_error();
  data_ = static_cast<const uint8_t*>(data);
  size_ = static_cast<size_t>(size.QuadPart);
  return 0;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) UnmapViewOfFile(data_);
}

// Windows does not let a mapped file be cut, and takes pages back by itself.
std::optional<uint64_t> MappedFile::size_if_cut() const { return std::nullopt; }
void MappedFile::drop_pages() const {}
void MappedFile::read_ahead(size_t, size_t) const {}

#else

int MappedFile::open(const std::filesystem::path& path) {
  // Not blocking: a FIFO would wait for a writer before it could be refused.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return errno;
  struct stat status;
  int error = fstat(descriptor, &status) == 0 ? 0 : errno;
  if (error == 0 && !S_ISREG(status.st_mode)) error = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
  if (error == 0 && status.st_size > 0) {
    const auto size = static_cast<size_t>(status.st_size);
    void* data = mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (data == MAP_FAILED) {
      error = errno;
    } else {
      data_ = static_cast<const uint8_t*>(data);
      size_ = size;
      path_ = path;
      device_ = static_cast<uint64_t>(status.st_dev);
      inode_ = static_cast<uint64_t>(status.st_ino);
    }
  }
  close(descriptor);
  return error;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<uint8_t*>(data_), size_);
}

std::optional<uint64_t> MappedFile::size_if_cut() const {
  struct stat status;
  if (data_ == nullptr || stat(path_.c_str(), &status) != 0) return std::nullopt;
  const bool is_this = static_cast<uint64_t>(status.st_dev) == device_ &&
                       static_cast<uint64_t>(status.st_ino) == inode_;
  const auto size = static_cast<uint64_t>(status.st_size);
  return is_this && size < size_ ? std::optional(size) : std::nullopt;
}

void MappedFile::drop_pages() const {
  if (data_ != nullptr) madvise(const_cast<uint8_t*>(data_), size_, MADV_DONTNEED);
}

void MappedFile::read_ahead(size_t offset, size_t size) const {
  if (data_ == nullptr || offset >= size_) return;
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t start = offset - offset % page;
  const size_t end = offset + std::min(size, size_ - offset);
  madvise(const_cast<uint8_t*>(data_) + start, end - start, MADV_WILLNEED);
}

#endif

}  // namespace datum
