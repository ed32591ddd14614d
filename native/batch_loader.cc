#include "batch_loader.h"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

namespace datum {
namespace {

// Uses only what is known without reading the index: the caller must not wait for a disk.
void read_ahead(const ShardSet& shards, std::span<const int64_t> numbers) {
  if (!shards.has_large_frames()) return;
  for (const int64_t number : numbers) {
    const size_t run = shards.find_run(number);
    const ShardRunPointer opened = shards.get_if_open(run);
    if (opened == nullptr || !opened->has_large_frames()) continue;
    const auto place = opened->find(static_cast<uint64_t>(number - shards.start_of(run)));
    if (!place || !place->length) continue;
    opened->file().read_ahead(static_cast<size_t>(place->offset),
                              static_cast<size_t>(*place->length + kFrameBytes));
  }
}

}  // namespace

struct BatchLoader::State {
  struct Ticket {
    std::vector<int64_t> numbers;
    BatchResult result;
    bool is_started = false;
    bool is_done = false;
    bool is_taken = false;
  };
  using TicketPointer = std::shared_ptr<Ticket>;

  const Plan& plan;
  const ShardSet& shards;
  const bool skips_damage;
  const int64_t process = getpid();
  std::atomic<bool> is_closed{false};

  std::mutex mutex;  // guards everything below, and every ticket except those in progress
  std::condition_variable has_work;
  std::condition_variable has_result;
  std::deque<TicketPointer> waiting;
  std::unordered_map<uint64_t, TicketPointer> tickets;
  uint64_t last_ticket = 0;

  std::mutex joining;
  std::vector<std::thread> threads;

  State(const Plan& the_plan, const ShardSet& the_shards, bool skips)
      : plan(the_plan), shards(the_shards), skips_damage(skips) {}

  void start(size_t count) {
    try {
      threads.reserve(count);
      for (size_t i = 0; i < count; ++i) threads.emplace_back([this] { work(); });
    } catch (const std::exception&) {
      // No more threads available: the existing ones do all the work, or `take` does.
    }
  }

  void work() {
    BatchReader reader(plan, shards, skips_damage);
    std::unique_lock lock(mutex);
    while (true) {
      has_work.wait(lock, [this] { return is_closed || !waiting.empty(); });
      if (is_closed) return;
      const TicketPointer ticket = std::move(waiting.front());
      waiting.pop_front();
      ticket->is_started = true;
      lock.unlock();
      read(reader, ticket->numbers, ticket->result);
      lock.lock();
      ticket->is_done = true;
      has_result.notify_all();
    }
  }

  void read(BatchReader& reader, std::span<const int64_t> numbers,
            BatchResult& result) const noexcept {
    try {
      result.fault = reader.read(numbers, is_closed, result.batch);
    } catch (...) {
      result.error = std::current_exception();
    }
  }

  TakeStatus hand_over(uint64_t number, Ticket& ticket, BatchResult& result) {
    ticket.is_taken = true;
    tickets.erase(number);
    result = std::move(ticket.result);
    return TakeStatus::kReady;
  }
};

BatchLoader::BatchLoader(const Plan& plan, const ShardSet& shards, size_t threads,
                         bool skips_damage)
    : state_(new State(plan, shards, skips_damage)) {
  state_->start(threads);
}

BatchLoader::~BatchLoader() {
  if (is_inherited()) return;
  close();
  delete state_;
}

bool BatchLoader::is_inherited() const { return state_->process != getpid(); }

uint64_t BatchLoader::submit(std::vector<int64_t> numbers) {
  State& state = *state_;
  const bool has_threads = !state.threads.empty();
  if (has_threads) read_ahead(state.shards, numbers);
  auto ticket = std::make_shared<State::Ticket>();
  ticket->numbers = std::move(numbers);
  const std::lock_guard lock(state.mutex);
  if (state.is_closed) return 0;
  const uint64_t number = ++state.last_ticket;
  state.tickets.emplace(number, ticket);
  if (has_threads) {
    state.waiting.push_back(std::move(ticket));
    state.has_work.notify_one();
  }
  return number;
}

BatchLoader::TakeStatus BatchLoader::take(uint64_t number, std::chrono::milliseconds patience,
                                          BatchResult& result) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  if (state.is_closed) return TakeStatus::kClosed;
  const auto found = state.tickets.find(number);
  if (found == state.tickets.end()) return TakeStatus::kUnknown;
  const State::TicketPointer ticket = found->second;
  if (state.threads.empty() && !ticket->is_started) {
    ticket->is_started = true;
    lock.unlock();
    BatchReader reader(state.plan, state.shards, state.skips_damage);
    state.read(reader, ticket->numbers, ticket->result);
    lock.lock();
    ticket->is_done = true;
    state.has_result.notify_all();
  }
  state.has_result.wait_for(lock, patience, [&] { return state.is_closed || ticket->is_done; });
  if (ticket->is_taken) return TakeStatus::kUnknown;
  if (state.is_closed) return TakeStatus::kClosed;
  return ticket->is_done ? state.hand_over(number, *ticket, result) : TakeStatus::kNotYet;
}

bool BatchLoader::read(std::span<const int64_t> numbers, BatchResult& result) {
  BatchReader reader(state_->plan, state_->shards, state_->skips_damage);
  state_->read(reader, numbers, result);
  return !state_->is_closed;
}

void BatchLoader::close() {
  State& state = *state_;
  {
    const std::lock_guard lock(state.mutex);
    state.is_closed = true;
    state.has_work.notify_all();
    state.has_result.notify_all();
  }
  const std::lock_guard joining(state.joining);
  for (std::thread& thread : state.threads) {
    if (thread.joinable()) thread.join();
  }
  const std::lock_guard lock(state.mutex);
  state.waiting.clear();
  state.tickets.clear();
}

}  // namespace datum
