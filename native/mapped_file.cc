#include "mapped_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>

#include "crc32c.h"

namespace datum {
namespace {

// The mappings visible to the handler, which may run at any moment in any thread, so that nothing
// here is ever locked or freed.
struct Guard {
  std::atomic<uintptr_t> begin{0};  // 0 if free, 1 while it is being claimed
  std::atomic<uintptr_t> end{0};
  std::atomic<bool> has_lost_bytes{false};
};

constexpr uintptr_t kFree = 0;
constexpr uintptr_t kTaken = 1;

Guard guards[kMaxMappedFiles];
std::atomic<size_t> guard_count{0};
std::atomic<size_t> next_guard{0};

const auto page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));

// Returns the number of a free guard; `kMaxMappedFiles` if there is none.
size_t take_guard() {
  for (size_t tried = 0; tried < kMaxMappedFiles; ++tried) {
    const size_t at = next_guard.fetch_add(1, std::memory_order_relaxed) % kMaxMappedFiles;
    uintptr_t expected = kFree;
    if (guards[at].begin.compare_exchange_strong(expected, kTaken)) {
      guard_count.fetch_add(1, std::memory_order_relaxed);
      return at;
    }
  }
  return kMaxMappedFiles;
}

void release_guard(size_t at) {
  guards[at].begin.store(kFree);
  guard_count.fetch_sub(1, std::memory_order_relaxed);
}

// The handler.

struct sigaction previous_actions[2];
std::atomic<const struct sigaction*> previous_action{nullptr};
std::atomic<uintptr_t> chaining_thread{0};  // the thread that calls the previous handler

uintptr_t this_thread() {
  const pthread_t self = pthread_self();
  uintptr_t number = 0;
  static_assert(sizeof self <= sizeof number);
  std::copy_n(reinterpret_cast<const uint8_t*>(&self), sizeof self,
              reinterpret_cast<uint8_t*>(&number));
  return number;
}

bool is_lost_page(const siginfo_t& info) {
#ifdef BUS_MCEERR_AR
  if (info.si_code == BUS_MCEERR_AR || info.si_code == BUS_MCEERR_AO) return false;  // of memory
#endif
  return info.si_code > 0;  // not sent by a process
}

// Replaces everything after an address of a mapping with zeros; false if it is in no mapping.
bool replace_lost_pages(uintptr_t address) {
  for (Guard& guard : guards) {
    const uintptr_t begin = guard.begin.load();
    if (begin <= kTaken || address < begin) continue;
    const uintptr_t end = guard.end.load();
    if (address >= end || guard.begin.load() != begin) continue;
    const uintptr_t start = address - (address - begin) % page_bytes;
    void* zeros = mmap(reinterpret_cast<void*>(start), end - start, PROT_READ,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (zeros == MAP_FAILED) return false;
    guard.has_lost_bytes.store(true);
    return true;
  }
  return false;
}

void end_process(const siginfo_t& info) {
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGBUS, &standard, nullptr);
  if (!is_lost_page(info)) raise(SIGBUS);  // a signal sent by a process does not repeat by itself
}

void on_bus_error(int number, siginfo_t* info, void* context) {
  const int error = errno;
  if (is_lost_page(*info) && replace_lost_pages(reinterpret_cast<uintptr_t>(info->si_addr))) {
    errno = error;
    return;
  }
  const struct sigaction* previous = previous_action.load();
  const uintptr_t self = this_thread();
  // A handler that was installed after this one, and calls it, must not do so endlessly.
  const bool is_circle = chaining_thread.load() == self;
  const bool is_handler =
      previous != nullptr && ((previous->sa_flags & SA_SIGINFO) != 0 ||
                              (previous->sa_handler != SIG_DFL && previous->sa_handler != SIG_IGN));
  if (is_circle || !is_handler) {
    end_process(*info);
  } else {
    chaining_thread.store(self);
    if ((previous->sa_flags & SA_SIGINFO) != 0) {
      previous->sa_sigaction(number, info, context);
    } else {
      previous->sa_handler(number);
    }
    chaining_thread.store(0);
  }
  errno = error;
}

void install_handler() {
  struct sigaction current;
  if (sigaction(SIGBUS, nullptr, &current) != 0) return;
  if ((current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == on_bus_error) return;
  static std::atomic_flag is_installing = ATOMIC_FLAG_INIT;
  if (is_installing.test_and_set()) return;  // another thread does; never wait, because of forks
  const bool is_first = previous_action.load() != &previous_actions[0];
  struct sigaction& kept = previous_actions[is_first ? 0 : 1];
  kept = current;
  previous_action.store(&kept);
  struct sigaction ours = {};
  ours.sa_sigaction = on_bus_error;
  // SA_NODEFER: a previous handler may raise the signal to end the process.
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&ours.sa_mask);
  sigaction(SIGBUS, &ours, nullptr);
  is_installing.clear();
}

int64_t to_ns(const timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

uint64_t rights_of(const struct stat& status) {
  uint64_t digest = 0;
  for (const uint64_t part :
       {static_cast<uint64_t>(status.st_mode), static_cast<uint64_t>(status.st_uid),
        static_cast<uint64_t>(status.st_gid), static_cast<uint64_t>(status.st_nlink)}) {
    digest = (digest ^ part) * 0x9E3779B97F4A7C15;  // odd: no part is lost
  }
  return digest;
}

FileVersion version_of(const struct stat& status) {
#ifdef __APPLE__
  const timespec &modified = status.st_mtimespec, &changed = status.st_ctimespec;
#else
  const timespec &modified = status.st_mtim, &changed = status.st_ctim;
#endif
  return {.device = static_cast<uint64_t>(status.st_dev),
          .inode = static_cast<uint64_t>(status.st_ino),
          .bytes = static_cast<uint64_t>(status.st_size),
          .modified_ns = to_ns(modified),
          .changed_ns = to_ns(changed),
          .rights = rights_of(status)};
}

}  // namespace

int find_version(const std::filesystem::path& path, FileVersion& version) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return errno;
  version = version_of(status);
  return 0;
}

size_t mapped_files() { return guard_count.load(std::memory_order_relaxed); }

void guard_mapped_files() {
  static std::atomic<int64_t> installed_ms{INT64_MIN};
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const int64_t now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  if (installed_ms.exchange(now_ms, std::memory_order_relaxed) != now_ms) install_handler();
}

int MappedFile::open(const std::filesystem::path& path, size_t max_copied, bool is_filling) {
  // Not blocking: opening a FIFO would wait for a writer before it could be refused.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return errno;
  struct stat status;
  int error = fstat(descriptor, &status) == 0 ? 0 : errno;
  if (error == 0 && !S_ISREG(status.st_mode)) error = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
  if (error == 0) {
    path_ = path;
    version_ = version_of(status);
    if (is_filling) {
      version_.modified_ns = version_.changed_ns = FileVersion::kFilling;
      version_.rights = 0;
    }
    changed_ns_.store(version_.changed_ns);
    rights_.store(version_.rights);
    const auto size = static_cast<size_t>(status.st_size);
    const bool is_copied = size <= max_copied && !is_filling;
    if (size > 0) error = is_copied ? copy(descriptor, size) : map(descriptor, size);
  }
  close(descriptor);
  return error;
}

int MappedFile::copy(int descriptor, size_t size) {
  copy_.resize(size);
  size_t done = 0;
  while (done < size) {
    const ssize_t got =
        pread(descriptor, copy_.data() + done, size - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;  // just truncated: the size in `version` shows it
    done += static_cast<size_t>(got);
  }
  copy_.resize(done);
  version_.bytes = done;
  data_ = done > 0 ? copy_.data() : nullptr;
  size_ = done;
  return 0;
}

int MappedFile::map(int descriptor, size_t size) {
  const size_t guard = take_guard();
  if (guard == kMaxMappedFiles) return ENFILE;
  void* data = mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
  if (data == MAP_FAILED) {
    const int error = errno;
    release_guard(guard);
    return error;
  }
  data_ = static_cast<const uint8_t*>(data);
  size_ = size;
  guard_ = guard;
  const auto begin = reinterpret_cast<uintptr_t>(data);
  guards[guard].has_lost_bytes.store(false);
  guards[guard].end.store(begin + size);
  guards[guard].begin.store(begin);
  guard_mapped_files();
  return 0;
}

MappedFile::~MappedFile() {
  if (!is_mapped()) return;
  release_guard(guard_);
  munmap(const_cast<uint8_t*>(data_), size_);
}

bool MappedFile::has_lost_bytes() const {
  return is_mapped() && guards[guard_].has_lost_bytes.load();
}

FileState MappedFile::state(uint64_t& bytes_now) const {
  bytes_now = size_;
  if (!is_mapped()) return FileState::kSame;
  FileVersion now;
  if (find_version(path_, now) == 0) {
    if (now.device == version_.device && now.inode == version_.inode) {
      bytes_now = now.bytes;
      if (now.bytes < version_.bytes) return FileState::kCut;
      if (version_.is_filling())
        return has_lost_bytes() ? FileState::kUnreadable : FileState::kSame;
      const bool is_modified = now.modified_ns != version_.modified_ns;
      if (now.bytes == version_.bytes && is_modified) return FileState::kRewritten;
      if (now.bytes > version_.bytes && !has_lost_bytes()) return FileState::kGrown;
      if (now.changed_ns != changed_ns_.load() && !has_lost_bytes()) return state_of_touched(now);
    }
  }
  return has_lost_bytes() ? FileState::kUnreadable : FileState::kSame;
}

// Who writes to a file and restores its time of modification cannot restore that of its change.
// New rights and links explain one; otherwise the checksum of all bytes decides.
FileState MappedFile::state_of_touched(const FileVersion& now) const {
  if (expected_crc_) {
    const bool is_same = crc32c(data_, size_) == *expected_crc_ && !has_lost_bytes();
    if (!is_same) return has_lost_bytes() ? FileState::kUnreadable : FileState::kRewritten;
  } else if (now.rights == rights_.load()) {
    return FileState::kTouched;
  }
  changed_ns_.store(now.changed_ns);
  rights_.store(now.rights);
  return FileState::kSame;
}

void MappedFile::drop_pages(size_t end) const {
  if (is_mapped()) madvise(const_cast<uint8_t*>(data_), std::min(end, size_), MADV_DONTNEED);
}

void MappedFile::read_ahead(size_t offset, size_t size) const {
  if (!is_mapped() || offset >= size_) return;
  const size_t start = offset - offset % page_bytes;
  const size_t end = offset + std::min(size, size_ - offset);
  madvise(const_cast<uint8_t*>(data_) + start, end - start, MADV_WILLNEED);
}

}  // namespace datum
