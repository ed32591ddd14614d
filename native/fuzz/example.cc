// Fuzzes the parsing and discovery of Examples, over columns of every cell and layout.
#include "parsing.h"

using namespace datum;

namespace {

constexpr fuzz::Shape kShapes[] = {
    {Kind::kInt64, Layout::kFixed, Cell::kInt64, 1},
    {Kind::kFloat, Layout::kFixed, Cell::kFloat32, 1},
    {Kind::kBytes, Layout::kFixed, Cell::kSlice, 1},
    {Kind::kBytes, Layout::kFixed, Cell::kRaw, 4},
    {Kind::kInt64, Layout::kVariable, Cell::kInt64, 1},
    {Kind::kFloat, Layout::kVariable, Cell::kFloat32, 1},
    {Kind::kBytes, Layout::kVariable, Cell::kSlice, 1},
    {Kind::kBytes, Layout::kVariable, Cell::kRaw, 2},
    {Kind::kInt64, Layout::kFixed, Cell::kInt8, 3},
    {Kind::kFloat, Layout::kFixed, Cell::kFloat32, 2},
    {Kind::kBytes, Layout::kFixed, Cell::kSlice, 2},
    {Kind::kBytes, Layout::kFixed, Cell::kRaw, 0},
    {Kind::kInt64, Layout::kFixed, Cell::kBool, 1},
    {Kind::kFloat, Layout::kVariable, Cell::kFloat32, 3},
    {Kind::kBytes, Layout::kVariable, Cell::kSlice, 3},
    {Kind::kInt64, Layout::kVariable, Cell::kUint64, 2},
    {Kind::kInt64, Layout::kVariable, Cell::kInt16, 1},
    {Kind::kInt64, Layout::kVariable, Cell::kUint8, 1},
    {Kind::kInt64, Layout::kFixed, Cell::kInt64, 0},
    {Kind::kInt64, Layout::kVariable, Cell::kUint16, 2},
    {Kind::kInt64, Layout::kFixed, Cell::kInt32, 1},
    {Kind::kFloat, Layout::kFixed, Cell::kFloat32, 0},
    {Kind::kInt64, Layout::kFixed, Cell::kUint32, 2},
    {Kind::kBytes, Layout::kFixed, Cell::kSlice, 0},
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const uint8_t shift = input.byte();
  const uint8_t required = input.byte();
  const Plan plan(fuzz::make_specs(kShapes, 8, shift, required));
  const fuzz::Rows rows = fuzz::make_rows(input);
  fuzz::check_parsing(plan, rows);
  fuzz::check_discovery(rows);
  return 0;
}
