// Uses a loader from many threads at once, to be built with a sanitizer: batch_loader_test FOLDER
#include "batch_loader.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "framing.h"
#include "index.h"

namespace {

using namespace datum;
using Bytes = std::vector<uint8_t>;
using TakeStatus = BatchLoader::TakeStatus;

constexpr int64_t kRecords = 800;  // in each shard: too many bytes to be copied when opened
constexpr size_t kRuns = 4;
constexpr std::chrono::milliseconds kPatience{100};

void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

// An Example of one integer `x` below 16384, and a byte string `s` as long as its last digit.
Bytes example(int64_t x) {
  const auto varint_low = static_cast<uint8_t>((x & 0x7f) | 0x80);
  const auto varint_high = static_cast<uint8_t>(x >> 7);
  const Bytes integer = {0x0a, 0x0b, 0x0a, 0x01, 'x',        0x12,       0x06,
                         0x1a, 0x04, 0x0a, 0x02, varint_low, varint_high};
  const auto size = static_cast<uint8_t>(x % 10);
  Bytes text = {
      0x0a, static_cast<uint8_t>(9 + size), 0x0a, 0x01, 's', 0x12, static_cast<uint8_t>(4 + size),
      0x0a, static_cast<uint8_t>(2 + size), 0x0a, size};
  text.insert(text.end(), size, 'a');
  Bytes message = {0x0a, static_cast<uint8_t>(integer.size() + text.size())};
  message.insert(message.end(), integer.begin(), integer.end());
  message.insert(message.end(), text.begin(), text.end());
  return message;
}

void write_file(const std::filesystem::path& path, const Bytes& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

struct Shard {
  std::filesystem::path path;
  std::filesystem::path index;
};

// The first record of the last shard has a damaged payload.
Shard write_shard(const std::filesystem::path& folder, size_t number) {
  Bytes file;
  std::vector<uint64_t> offsets;
  for (int64_t i = 0; i < kRecords; ++i) {
    const Bytes payload = example(static_cast<int64_t>(number) * kRecords + i);
    offsets.push_back(file.size());
    const size_t start = file.size();
    file.resize(start + payload.size() + kFrameBytes);
    write_frame_header(file.data() + start, payload.size());
    std::memcpy(file.data() + start + kHeaderBytes, payload.data(), payload.size());
    write_frame_footer(file.data() + start + kHeaderBytes + payload.size(), payload.data(),
                       payload.size());
  }
  if (number + 1 == kRuns) file[kHeaderBytes] ^= 1;
  const Shard shard{folder / ("shard" + std::to_string(number)),
                    folder / ("index" + std::to_string(number))};
  write_file(shard.path, file);
  write_file(shard.index, write_index(offsets, file.size()));
  return shard;
}

Plan make_plan() {
  ColumnSpec x;
  x.key = "x";
  ColumnSpec s;
  s.key = "s";
  s.kind = Kind::kBytes;
  s.cell = Cell::kSlice;
  return Plan({x, s});
}

void check_batch(const std::vector<int64_t>& numbers, const BatchResult& result) {
  const Batch& batch = result.batch;
  require(!result.error && result.fault.code == BatchFault::Code::kNone, "a batch is read");
  const auto* values = reinterpret_cast<const int64_t*>(batch.columns[0].values.data());
  const auto* slices = reinterpret_cast<const Slice*>(batch.columns[1].values.data());
  size_t at = 0;
  for (size_t row = 0; row < numbers.size(); ++row) {
    if (numbers[row] == (static_cast<int64_t>(kRuns) - 1) * kRecords) continue;  // damaged
    require(values[at] == numbers[row], "records come in order");
    require(slices[at].length == static_cast<uint64_t>(numbers[row] % 10), "strings, too");
    require(batch.damage.empty() || batch.rows[at] == static_cast<int64_t>(row),
            "rows are returned");
    ++at;
  }
  require(batch.columns[0].values.size() == 8 * at, "no record comes twice");
  require(at + batch.damage.size() == numbers.size(), "damage is returned");
}

void open_all(ShardSet& shards, const std::vector<Shard>& files) {
  for (size_t run = 0; run < kRuns; ++run) {
    MappedFile file;
    require(file.open(files[run].path) == 0, "a file is opened");
    const ShardPlace place{.path = files[run].path,
                           .version = file.version(),
                           .index = files[run].index,
                           .total_records = static_cast<uint64_t>(kRecords)};
    require(shards.add(run, place).code == OpenFault::Code::kNone, "a shard is opened");
  }
}

// Several threads open the runs, submit and take, while another may close the loader.
void work(const std::vector<Shard>& files, size_t threads, bool closes_early, size_t max_open) {
  const Plan plan = make_plan();
  ShardSet shards({0, kRecords, 2 * kRecords, 3 * kRecords, 4 * kRecords}, max_open);
  BatchLoader loader(plan, shards, threads, true);
  std::atomic<size_t> taken{0};
  const auto use = [&](size_t seed) {
    open_all(shards, files);
    uint64_t state = seed;
    for (size_t round = 0; round < 50; ++round) {
      std::vector<int64_t> numbers(1 + round % 70);
      for (int64_t& number : numbers) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        number = static_cast<int64_t>((state >> 33) % (kRuns * kRecords));
      }
      const uint64_t ticket = loader.submit(numbers);
      if (ticket == 0) return;
      BatchResult result;
      TakeStatus outcome;
      do outcome = loader.take(ticket, kPatience, result);
      while (outcome == TakeStatus::kNotYet);
      if (outcome == TakeStatus::kClosed) return;
      require(outcome == TakeStatus::kReady, "a ticket is known");
      check_batch(numbers, result);
      ++taken;
    }
  };
  std::vector<std::thread> users;
  for (size_t seed = 0; seed < 4; ++seed) users.emplace_back(use, seed);
  if (closes_early) {
    while (taken < 20) std::this_thread::yield();
    loader.close();
  }
  for (std::thread& user : users) user.join();
  require(closes_early || taken == 200, "every batch was taken");
  BatchResult result;
  require(loader.take(999, kPatience, result) ==
              (closes_early ? TakeStatus::kClosed : TakeStatus::kUnknown),
          "a ticket that was never given is none");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::vector<Shard> files;
  for (size_t number = 0; number < kRuns; ++number) files.push_back(write_shard(argv[1], number));
  for (const size_t threads : {0, 1, 3}) {
    for (const bool closes_early : {false, true}) {
      for (const size_t max_open : {1, 2, 4}) work(files, threads, closes_early, max_open);
    }
  }
  std::puts("every batch was right");
  return 0;
}
