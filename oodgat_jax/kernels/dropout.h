// The bits of dropout: the same hash of (key, position) as oodgat_jax/dropout.py.

#ifndef OODGAT_KERNELS_DROPOUT_H_
#define OODGAT_KERNELS_DROPOUT_H_

#include <cstdint>
#include <cstring>

namespace oodgat {

// What a compiled program computes from the key, the rate and the graph's size.
struct Dropout {
  uint32_t start;
  uint32_t stride;
  uint32_t level;  // a position is kept if the first 24 bits of its hash are below
  uint32_t size;   // edges of the whole graph: positions between two heads
  float scale;     // 1 / (1 - rate)
};

inline Dropout read_dropout(const uint32_t* words) {
  Dropout d{words[0], words[1], words[2], words[3], 1.0f};
  std::memcpy(&d.scale, words + 4, sizeof d.scale);
  return d;
}

inline uint32_t mix(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x21F0AAADu;
  x = (x ^ (x >> 15)) * 0xD35A2D97u;
  return x ^ (x >> 15);
}

inline uint32_t is_kept(const Dropout& d, uint32_t position) {
  return (mix(position * d.stride + d.start) >> 8) < d.level ? 1u : 0u;
}

}  // namespace oodgat

#endif  // OODGAT_KERNELS_DROPOUT_H_
