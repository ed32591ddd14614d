// Batches read ahead by threads: submitted as tickets, taken in any order.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include "batch_reader.h"

namespace datum {

// The result of a ticket.
struct BatchResult {
  BatchFault fault;
  Batch batch;
  std::exception_ptr error;  // for example std::bad_alloc
};

// Thread-safe. The plan and the shards must outlive it.
//
// After a fork only the parent has the threads: in the child, `is_inherited` is true and nothing
// else may be called. Destroying it there is harmless, though its memory is not released.
class BatchLoader {
 public:
  // Without threads, or if none can be started, `take` does the work.
  BatchLoader(const Plan& plan, const ShardSet& shards, size_t threads, bool skips_damage);
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  bool is_inherited() const;

  // Returns a ticket for the records of these numbers, which must be in the set; 0 once closed.
  uint64_t submit(std::vector<int64_t> numbers);

  enum class TakeStatus : uint8_t { kReady, kNotYet, kClosed, kUnknown };
  // Waits for at most `patience`. A ticket is unknown once its result was taken.
  TakeStatus take(uint64_t ticket, std::chrono::milliseconds patience, BatchResult& result);

  // Reads records immediately, on the caller's thread; false, and nothing is read, once closed.
  bool read(std::span<const int64_t> numbers, BatchResult& result);

  // Stops the threads and waits for them to end; a call waiting in `take` returns. May be called
  // again.
  void close();

 private:
  struct State;
  State* state_;  // not touched in a forked child: its locks may be held by threads that are gone
};

}  // namespace datum
