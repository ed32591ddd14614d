// Independent pieces of work, one thread each.
#pragma once

#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace datum {

// Calls `work(0) ... work(pieces - 1)`, the last one on the calling thread; rethrows the first
// exception in piece order once all have ended.
template <typename Work>
void run_parallel(size_t pieces, Work&& work) {
  std::vector<std::exception_ptr> errors(pieces);
  const auto guarded = [&](size_t piece) {
    try {
      work(piece);
    } catch (...) {
      errors[piece] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(pieces);
  size_t started = 0;
  try {
    for (; started + 1 < pieces; ++started) threads.emplace_back(guarded, started);
  } catch (const std::system_error&) {
    // No more threads available: the rest runs here.
  }
  for (size_t piece = started; piece < pieces; ++piece) guarded(piece);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

// Returns the bounds of `pieces` runs over items of these weights, about equally heavy.
template <typename Weight>
std::vector<size_t> split_evenly(size_t items, size_t pieces, Weight&& weight) {
  double total = 0;
  for (size_t i = 0; i < items; ++i) total += static_cast<double>(weight(i));
  std::vector<size_t> bounds{0};
  double sum = 0;
  for (size_t i = 0; i < items && bounds.size() < pieces; ++i) {
    sum += static_cast<double>(weight(i));
    if (sum * static_cast<double>(pieces) >= total * static_cast<double>(bounds.size())) {
      bounds.push_back(i + 1);
    }
  }
  while (bounds.size() < pieces + 1) bounds.push_back(items);
  return bounds;
}

}  // namespace datum
