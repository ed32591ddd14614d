// Fuzzes the parsing and discovery of SequenceExamples: steps, nested steps and their context.
#include "parsing.h"

using namespace datum;

namespace {

constexpr fuzz::Shape kShapes[] = {
    {Kind::kInt64, Layout::kSteps, Cell::kInt64, 1},
    {Kind::kFloat, Layout::kSteps, Cell::kFloat32, 1},
    {Kind::kBytes, Layout::kSteps, Cell::kSlice, 1},
    {Kind::kInt64, Layout::kNestedSteps, Cell::kInt64, 1},
    {Kind::kFloat, Layout::kNestedSteps, Cell::kFloat32, 2},
    {Kind::kBytes, Layout::kNestedSteps, Cell::kSlice, 1},
    {Kind::kBytes, Layout::kSteps, Cell::kRaw, 3},
    {Kind::kInt64, Layout::kSteps, Cell::kUint8, 2},
    {Kind::kBytes, Layout::kNestedSteps, Cell::kRaw, 2},
    {Kind::kInt64, Layout::kNestedSteps, Cell::kInt32, 3},
    {Kind::kFloat, Layout::kSteps, Cell::kFloat32, 0},
    {Kind::kBytes, Layout::kSteps, Cell::kRaw, 0},
    {Kind::kInt64, Layout::kSteps, Cell::kInt64, 0},
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const uint8_t shift = input.byte();
  const uint8_t required = input.byte();
  std::vector<ColumnSpec> specs = fuzz::make_specs(kShapes, 4, shift, required);
  // A context feature of the same name as a list.
  ColumnSpec& context = specs.emplace_back();
  context.key = "a";
  context.layout = Layout::kVariable;
  context.is_optional = required < 128;
  const Plan plan(std::move(specs));
  const fuzz::Rows rows = fuzz::make_rows(input);
  fuzz::check_parsing(plan, rows);
  fuzz::check_discovery(rows);
  return 0;
}
