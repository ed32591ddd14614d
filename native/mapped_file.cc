#include "mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace datum {

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

}  // namespace datum
