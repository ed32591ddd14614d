// Batches read ahead by threads: tickets in, batches out, in whatever order they are asked for.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include "batch_reader.h"

namespace datum {

// What a ticket led to.
struct BatchResult {
  BatchFault fault;
  Batch batch;
  std::exception_ptr error;  // say, of memory
};

// Safe to use from several threads. The plan and the shards must outlive it.
//
// After a fork the threads are the parent's alone: in the child, `is_inherited` is true and nothing
// else may be called. Destroying it there is harmless, though its memory is not given back.
class BatchLoader {
 public:
  // Without threads, or where none can be had, `take` does the work.
  BatchLoader(const Plan& plan, const ShardSet& shards, size_t threads, bool skips_damage);
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  bool is_inherited() const;

  // A ticket for the records of these numbers, which are of the set; 0 once it is closed.
  uint64_t submit(std::vector<int64_t> numbers);

  enum class TakeStatus : uint8_t { kReady, kNotYet, kClosed, kUnknown };
  // Waits at most so long. A ticket is unknown once its result was taken.
  TakeStatus take(uint64_t ticket, std::chrono::milliseconds patience, BatchResult& result);

  // Reads records at once, on the caller's thread; false, and nothing read, once it is closed.
  bool read(std::span<const int64_t> numbers, BatchResult& result);

  // Stops the threads and waits for their end; a call that waits in `take` returns. May be called
  // again.
  void close();

 private:
  struct State;
  State* state_;  // left alone in a forked child: locks in it may be held by nobody
};

}  // namespace datum
