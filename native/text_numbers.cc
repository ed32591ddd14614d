#include "text_numbers.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

#if defined(__APPLE__)
#include <xlocale.h>  // strtod_l
#endif

namespace datum {
namespace {

constexpr ptrdiff_t kExactDigits = 19;             // any number of 19 digits fits into 64 bits
constexpr uint64_t kMaxExact = uint64_t{1} << 53;  // integers up to here are doubles
constexpr std::array kPowersOfTen = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

Number read_word(ByteSpan text) {
  std::string_view word = as_view(text);
  const bool is_negative = word.starts_with('-');
  if (is_negative) word.remove_prefix(1);
  Number number;
  if (word == "nan" || word == "NaN" || word == "NAN") {
    number = {NumberKind::kFloat, 0, std::numeric_limits<double>::quiet_NaN()};
  } else if (word == "inf" || word == "Inf" || word == "INF" || word == "Infinity" ||
             word == "infinity") {
    const double infinity = std::numeric_limits<double>::infinity();
    number = {NumberKind::kFloat, 0, is_negative ? -infinity : infinity};
  }
  return number;
}

// Returns the nearest double; false beyond the range of doubles.
bool read_nearest(ByteSpan text, uint8_t point, double& value) {
  if (point != '.') {
    std::string copy(as_view(text));
    std::replace(copy.begin(), copy.end(), static_cast<char>(point), '.');
    return read_nearest({reinterpret_cast<const uint8_t*>(copy.data()), copy.size()}, '.', value);
  }
#if defined(__cpp_lib_to_chars)
  const std::string_view view = as_view(text);
  const auto result = std::from_chars(view.data(), view.data() + view.size(), value);
  return result.ec == std::errc();
#else
  const std::string copy(as_view(text));  // a library without std::from_chars for doubles
  errno = 0;
  value = strtod_l(copy.c_str(), nullptr, nullptr);
  return errno != ERANGE;
#endif
}

bool are_digits(uint64_t eight) {
  return (((eight & 0xf0f0f0f0f0f0f0f0ull) |
           (((eight + 0x0606060606060606ull) & 0xf0f0f0f0f0f0f0f0ull) >> 4)) ==
          0x3333333333333333ull);
}

// Eight digits, the first in the lowest byte, as a number: pairs, then fours, then all.
uint64_t join_digits(uint64_t eight) {
  eight -= 0x3030303030303030ull;
  eight = eight * 10 + (eight >> 8);
  return (((eight & 0x000000ff000000ffull) * 0x000f424000000064ull) +
          (((eight >> 16) & 0x000000ff000000ffull) * 0x0000271000000001ull)) >>
         32;
}

// The rest of a number after its sign, digit by digit.
struct Scan {
  const uint8_t* at;
  const uint8_t* end;
  uint64_t digits = 0;  // as an integer, if there are at most kExactDigits
  ptrdiff_t count = 0;

  void read_digits() {
    const uint8_t* start = at;
    for (uint64_t eight; end - at >= 8; at += 8) {
      std::memcpy(&eight, at, 8);
      if (!are_digits(eight)) break;
      digits = 100000000 * digits + join_digits(eight);
    }
    for (; at < end && static_cast<uint8_t>(*at - '0') < 10; ++at) {
      digits = 10 * digits + (*at - '0');
    }
    count += at - start;
  }

  // Reads "e", a sign, digits; false if something else follows.
  bool read_exponent(int& exponent) {
    ++at;
    const bool is_negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) ++at;
    const uint8_t* start = at;
    int value = 0;
    for (; at < end && static_cast<uint8_t>(*at - '0') < 10; ++at) {
      if (value < 100000) value = 10 * value + (*at - '0');
    }
    exponent = is_negative ? -value : value;
    return at > start;
  }
};

Number make_integer(const Scan& scan, bool is_negative) {
  const uint64_t limit = static_cast<uint64_t>(INT64_MAX) + (is_negative ? 1 : 0);
  if (scan.count > kExactDigits || scan.digits > limit) return {};
  if (is_negative && scan.digits == 0) return {NumberKind::kFloat, 0, -0.0};
  const auto value = static_cast<int64_t>(is_negative ? 0 - scan.digits : scan.digits);
  return {NumberKind::kInteger, value, static_cast<double>(value)};
}

}  // namespace

Number read_number(ByteSpan text, uint8_t point) {
  if (text.empty()) return {};
  const bool is_negative = text[0] == '-';
  Scan scan{text.data() + (is_negative ? 1 : 0), text.data() + text.size()};
  const uint8_t* start = scan.at;
  scan.read_digits();
  if (scan.count > 1 && *start == '0') return {};
  if (scan.at == scan.end) return scan.count > 0 ? make_integer(scan, is_negative) : Number{};
  const uint8_t* whole_end = scan.at;
  int exponent = 0;
  if (*scan.at == point) {
    ++scan.at;
    scan.read_digits();
    exponent = -static_cast<int>(std::min<ptrdiff_t>(scan.at - whole_end - 1, 100000));
  }
  if (scan.count == 0) return read_word(text);
  int shift = 0;
  if (scan.at < scan.end && (*scan.at | 0x20) == 'e' && !scan.read_exponent(shift)) return {};
  if (scan.at != scan.end) return {};
  exponent += shift;
  // Both factors are doubles and so is, correctly rounded, their product or quotient.
  if (scan.count <= kExactDigits && scan.digits <= kMaxExact && exponent >= -22 && exponent <= 22) {
    const auto digits = static_cast<double>(scan.digits);
    const double value =
        exponent < 0 ? digits / kPowersOfTen[-exponent] : digits * kPowersOfTen[exponent];
    return {NumberKind::kFloat, 0, is_negative ? -value : value};
  }
  Number number{NumberKind::kFloat};
  return read_nearest(text, point, number.real) ? number : Number{};
}

Number read_wanted_number(ByteSpan text, uint8_t point) {
  text = trim_blanks(text);
  const Number number = read_number(text, point);
  if (number.kind != NumberKind::kNone || text.empty()) return number;
  const bool is_negative = text[0] == '-';
  if (is_negative || text[0] == '+') text = text.subspan(1);
  if (text.empty() || text[0] == '-') return {};
  const auto is_digit = [](uint8_t byte) { return static_cast<uint8_t>(byte - '0') < 10; };
  while (text.size() > 1 && text[0] == '0' && is_digit(text[1])) text = text.subspan(1);
  std::string plain(is_negative ? "-" : "");
  plain += as_view(text);
  return read_number({reinterpret_cast<const uint8_t*>(plain.data()), plain.size()}, point);
}

ByteSpan trim_blanks(ByteSpan text) {
  const auto is_blank = [](uint8_t byte) { return byte == ' ' || byte == '\t'; };
  while (!text.empty() && is_blank(text.front())) text = text.subspan(1);
  while (!text.empty() && is_blank(text.back())) text = text.first(text.size() - 1);
  return text;
}

}  // namespace datum
