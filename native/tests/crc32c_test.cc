// Checks every CRC-32C for this processor: crc32c_test EXPECTED (sse4.2, armv8 or table).
#include "crc32c.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using datum::Crc32cImplementation;
using Bytes = std::vector<uint8_t>;

struct Vector {
  const char* name;
  Bytes data;
  uint32_t crc;
};

// Bit by bit, straight from the definition.
uint32_t extend_by_definition(uint32_t crc, const uint8_t* data, size_t size) {
  crc = ~crc;
  for (size_t i = 0; i < size; ++i) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82f63b78u : 0);
  }
  return ~crc;
}

// RFC 3720, appendix B.4, and the check value of the CRC catalogue.
std::vector<Vector> known_vectors() {
  Bytes ascending;
  Bytes descending;
  for (int i = 0; i < 32; ++i) {
    ascending.push_back(static_cast<uint8_t>(i));
    descending.push_back(static_cast<uint8_t>(31 - i));
  }
  const Bytes read_command = {
      0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
      0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00,
      0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18, 0x28, 0x00, 0x00, 0x00,
      0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
  };
  const std::string digits = "123456789";
  return {
      {"nothing", {}, 0},
      {"32 zeros", Bytes(32, 0), 0x8a9136aa},
      {"32 ones", Bytes(32, 0xff), 0x62a8ab43},
      {"ascending", ascending, 0x46dd794e},
      {"descending", descending, 0x113fdb5c},
      {"digits", Bytes(digits.begin(), digits.end()), 0xe3069283},
      {"iSCSI read command", read_command, 0xd9963a56},
  };
}

Bytes make_noise(size_t size) {
  Bytes noise(size);
  uint32_t state = 1;
  for (uint8_t& byte : noise) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return noise;
}

int failures = 0;

void require_equal(uint32_t got, uint32_t expected, std::string_view name, const std::string& of) {
  if (got == expected) return;
  ++failures;
  std::fprintf(stderr, "%.*s, %s: expected %08x, got %08x\n", static_cast<int>(name.size()),
               name.data(), of.c_str(), expected, got);
}

// Copies all bytes, and no more.
void require_copy(const Crc32cImplementation& implementation, const uint8_t* data, size_t size,
                  uint32_t expected, const std::string& of) {
  constexpr uint8_t kMark = 0x5a;
  Bytes copy(size + 16, kMark);
  require_equal(implementation.extend(0, data, size, copy.data()), expected, implementation.name,
                of + ", copied");
  Bytes wanted(data, data + size);
  wanted.resize(size + 16, kMark);
  require_equal(copy == wanted, 1, implementation.name, "the copy of " + of);
}

void check(const Crc32cImplementation& implementation) {
  for (const Vector& vector : known_vectors()) {
    require_equal(implementation.extend(0, vector.data.data(), vector.data.size(), nullptr),
                  vector.crc, implementation.name, vector.name);
  }
  const Bytes noise = make_noise(2048);
  for (size_t alignment = 0; alignment <= 8; ++alignment) {
    const uint8_t* data = noise.data() + alignment;
    uint32_t expected = 0;  // grows with the length
    for (size_t size = 0; size <= 2000; ++size) {
      const std::string of = std::to_string(size) + " bytes at " + std::to_string(alignment);
      require_equal(implementation.extend(0, data, size, nullptr), expected, implementation.name,
                    of);
      require_copy(implementation, data, size, expected, of);
      const size_t half = size / 3;
      const uint32_t start = implementation.extend(0, data, half, nullptr);
      require_equal(implementation.extend(start, data + half, size - half, nullptr), expected,
                    implementation.name, std::to_string(size) + " bytes in two parts");
      expected = extend_by_definition(expected, data + size, 1);
    }
  }
  const Bytes large = make_noise(3 * 1024 * 1024 + 5);  // every stride of the fast paths
  const uint32_t expected = extend_by_definition(0, large.data() + 1, large.size() - 1);
  require_equal(implementation.extend(0, large.data() + 1, large.size() - 1, nullptr), expected,
                implementation.name, "3 MB");
  require_copy(implementation, large.data() + 1, large.size() - 1, expected, "3 MB");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s sse4.2|armv8|table\n", argv[0]);
    return 2;
  }
  bool has_expected = false;
  for (const Crc32cImplementation& implementation : datum::crc32c_implementations()) {
    check(implementation);
    std::printf("%.*s\n", static_cast<int>(implementation.name.size()), implementation.name.data());
    has_expected = has_expected || implementation.name == argv[1];
  }
  if (!has_expected) std::fprintf(stderr, "%s did not run\n", argv[1]);
  return failures == 0 && has_expected ? EXIT_SUCCESS : EXIT_FAILURE;
}
