// Bindings of permutation.h, shard_set.h and batch_loader.h.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <tuple>

#include "../batch_loader.h"
#include "../permutation.h"
#include "bindings.h"

namespace datum::python {
namespace {

using Path = std::filesystem::path;

// How long Python waits for a batch before it checks for signals, such as Ctrl-C.
constexpr std::chrono::milliseconds kPatience{100};

nb::object permute(const Int64Input& positions, int64_t records, uint64_t key, bool inverse) {
  Buffer out;
  const size_t count = positions.shape(0);
  auto* places = reinterpret_cast<int64_t*>(out.extend(count * sizeof(int64_t)));
  // Checks a copy: other threads may write to the array once the GIL is released.
  if (count > 0) std::memcpy(places, positions.data(), count * sizeof(int64_t));
  const std::span<const int64_t> in{places, count};
  for (const int64_t position : in) {
    if (position < 0 || position >= records) {
      throw std::out_of_range("expected positions within the records");
    }
  }
  if (count > 0) {
    nb::gil_scoped_release release;
    const Permutation permutation(static_cast<uint64_t>(records), key);
    inverse ? permutation.positions_of(in, places) : permutation.records_at(in, places);
  }
  return to_array(Cell::kInt64, std::move(out));
}

std::vector<int64_t> to_vector(const Int64Input& numbers) {
  const std::span<const int64_t> span = as_span(numbers);
  return {span.begin(), span.end()};
}

// Returns a copy, for the same reason.
std::vector<int64_t> checked_numbers(const ShardSet& shards, const Int64Input& numbers) {
  std::vector<int64_t> copy = to_vector(numbers);
  if (!shards.contains(copy)) throw std::out_of_range("expected numbers within the records");
  return copy;
}

// Runs.

void make_shards(ShardSet* self, const Int64Input& ends, std::optional<size_t> max_open) {
  if (max_open) {
    new (self) ShardSet(to_vector(ends), *max_open);
  } else {
    new (self) ShardSet(to_vector(ends));
  }
}

[[noreturn]] void raise_open_fault(const OpenFault& fault, const ShardPlace& place) {
  using Code = OpenFault::Code;
  switch (fault.code) {
    case Code::kSystem:
      raise_system_error(static_cast<int>(fault.got), place.path);
    case Code::kIndexSystem:
      raise_system_error(static_cast<int>(fault.got), place.index);
    case Code::kIndex:
      raise_fault(nb::make_tuple("index", describe(fault.index)));
    case Code::kVersion:
      raise_fault(nb::make_tuple("version"));
    default:
      break;
  }
  const char* name = fault.code == Code::kBytes          ? "bytes"
                     : fault.code == Code::kIndexBytes   ? "index bytes"
                     : fault.code == Code::kIndexRecords ? "index records"
                                                         : "index shard";
  raise_fault(nb::make_tuple(name, fault.expected, fault.got));
}

void open_run(ShardSet& shards, size_t run, const ShardPlace& place) {
  if (run >= shards.runs()) throw std::out_of_range("no such run");
  OpenFault fault;
  {
    nb::gil_scoped_release release;
    fault = shards.add(run, place);
  }
  if (fault.code != OpenFault::Code::kNone) raise_open_fault(fault, place);
}

void open_indexed(ShardSet& shards, size_t run, const Path& path, const VersionTuple& version,
                  const Path& index, uint64_t first, uint64_t records,
                  std::optional<uint32_t> crc) {
  open_run(shards, run,
           {.first = first,
            .path = path,
            .version = to_version(version),
            .index = index,
            .total_records = records,
            .crc = crc});
}

void open_at(ShardSet& shards, size_t run, const Path& path, const VersionTuple& version,
             const Int64Input& offsets, uint64_t first) {
  open_run(shards, run,
           {.first = first,
            .path = path,
            .version = to_version(version),
            .offsets = std::make_shared<const std::vector<int64_t>>(to_vector(offsets))});
}

// Returns run, number in the run and, if known, start and end in its file of a record.
nb::tuple find_record(const ShardSet& shards, int64_t number) {
  if (!shards.contains({&number, 1})) throw std::out_of_range("expected a number of the records");
  const size_t run = shards.find_run(number);
  const auto place = static_cast<uint64_t>(number - shards.start_of(run));
  const ShardRunPointer opened = shards.get_if_open(run);
  nb::object offset = nb::none();
  nb::object end = nb::none();
  if (opened != nullptr) {
    if (const auto found = opened->find(place)) {
      offset = nb::cast(found->offset);
      if (found->length) end = nb::cast(found->offset + *found->length + kFrameBytes);
    }
  }
  return nb::make_tuple(run, place, offset, end);
}

// Batches.

void refuse_inherited(const BatchLoader& loader) {
  if (loader.is_inherited()) raise_fault(nb::make_tuple("forked"));
}

[[noreturn]] void raise_batch_fault(const BatchFault& fault) {
  using Code = BatchFault::Code;
  switch (fault.code) {
    case Code::kDamaged:
      raise_fault(nb::make_tuple("damage", fault.damage.row, name_of(fault.damage.kind)));
    case Code::kMismatch:
      raise_fault(fault.mismatch);
    case Code::kNotOpen:
      raise_fault(nb::make_tuple("not open", fault.run));
    case Code::kChanged:
      raise_fault(nb::make_tuple("changed", fault.run, name_of(fault.state), fault.bytes));
    default:
      raise_fault(nb::make_tuple("closed"));
  }
}

// The loader, and the objects that Python keeps alive for it.
class Loader {
 public:
  Loader(const Plan& plan, const ShardSet& shards, size_t threads, bool skips_damage)
      : plan_(plan), shards_(shards), loader_(plan, shards, threads, skips_damage) {}

  uint64_t submit(const Int64Input& numbers) {
    refuse_inherited(loader_);
    const uint64_t ticket = loader_.submit(checked_numbers(shards_, numbers));
    if (ticket == 0) raise_fault(nb::make_tuple("closed"));
    return ticket;
  }

  nb::tuple take(uint64_t ticket) {
    refuse_inherited(loader_);
    BatchResult result;
    wait_for(ticket, result);
    return hand_over(result);
  }

  // Reads immediately, on the caller's thread.
  nb::tuple read(const Int64Input& numbers) {
    refuse_inherited(loader_);
    const std::vector<int64_t> wanted = checked_numbers(shards_, numbers);
    BatchResult result;
    bool is_open;
    {
      nb::gil_scoped_release release;
      is_open = loader_.read(wanted, result);
    }
    if (!is_open) raise_fault(nb::make_tuple("closed"));
    return hand_over(result);
  }

  void close() {
    if (loader_.is_inherited()) return;
    nb::gil_scoped_release release;
    loader_.close();
  }

 private:
  void wait_for(uint64_t ticket, BatchResult& result) {
    using TakeStatus = BatchLoader::TakeStatus;
    while (true) {
      TakeStatus taken;
      {
        nb::gil_scoped_release release;
        taken = loader_.take(ticket, kPatience, result);
      }
      if (taken == TakeStatus::kReady) return;
      if (taken == TakeStatus::kClosed) raise_fault(nb::make_tuple("closed"));
      if (taken == TakeStatus::kUnknown) raise_fault(nb::make_tuple("ticket", ticket));
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }

  nb::tuple hand_over(BatchResult& result) const {
    if (result.error) std::rethrow_exception(result.error);
    if (result.fault.code != BatchFault::Code::kNone) raise_batch_fault(result.fault);
    Batch& batch = result.batch;
    nb::list damage;
    for (const DamagedRow& damaged : batch.damage) {
      damage.append(nb::make_tuple(damaged.row, name_of(damaged.kind)));
    }
    const nb::object rows = batch.damage.empty() ? nb::none() : rows_of(batch);
    return nb::make_tuple(to_arrays(plan_, std::move(batch.columns)),
                          to_array(Cell::kUint8, std::move(batch.payloads)), rows, damage);
  }

  static nb::object rows_of(const Batch& batch) {
    Buffer rows;
    const size_t bytes = batch.rows.size() * sizeof(int64_t);
    if (bytes > 0) std::memcpy(rows.extend(bytes), batch.rows.data(), bytes);
    return to_array(Cell::kInt64, std::move(rows));
  }

  const Plan& plan_;
  const ShardSet& shards_;
  BatchLoader loader_;
};

}  // namespace

void bind_loading(nb::module_& module) {
  module.def("permute", permute, nb::arg("positions"), nb::arg("records"), nb::arg("key"),
             nb::arg("inverse") = false);
  nb::class_<ShardSet>(module, "ShardSet")
      .def("__init__", make_shards, nb::arg("ends"), nb::arg("max_open") = nb::none())
      .def(
          "missing",
          [](const ShardSet& shards, const Int64Input& numbers) {
            return shards.missing(checked_numbers(shards, numbers));
          },
          nb::arg("numbers"))
      .def("open", open_indexed, nb::arg("run"), nb::arg("path"), nb::arg("version"),
           nb::arg("index"), nb::arg("first"), nb::arg("records"), nb::arg("crc32c") = nb::none())
      .def("open_at", open_at, nb::arg("run"), nb::arg("path"), nb::arg("version"),
           nb::arg("offsets"), nb::arg("first"))
      .def("find", find_record, nb::arg("number"));
  nb::class_<Loader>(module, "BatchLoader")
      .def(nb::init<const Plan&, const ShardSet&, size_t, bool>(), nb::arg("plan"),
           nb::arg("shards"), nb::arg("threads"), nb::arg("skip_damaged"), nb::keep_alive<1, 2>(),
           nb::keep_alive<1, 3>())
      .def("submit", &Loader::submit, nb::arg("numbers"))
      .def("take", &Loader::take, nb::arg("ticket"))
      .def("read", &Loader::read, nb::arg("numbers"))
      .def("close", &Loader::close);
}

}  // namespace datum::python
