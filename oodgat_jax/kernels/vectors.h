// Small vectors of floats that GCC and Clang map onto whatever the CPU has.

#ifndef OODGAT_KERNELS_VECTORS_H_
#define OODGAT_KERNELS_VECTORS_H_

#include <cstdint>
#include <cstring>

namespace oodgat {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

template <int W>
struct VectorOf {
  typedef float type __attribute__((vector_size(W * sizeof(float))));
};

template <int W>
using Vec = typename VectorOf<W>::type;

// Arrays of XLA are not padded and their rows are of any width: all loads and
// stores are unaligned.
template <int W>
inline Vec<W> load(const float* from) {
  Vec<W> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <int W>
inline void store(float* to, Vec<W> v) {
  std::memcpy(to, &v, sizeof v);
}

// Sum of the lanes.
template <int W>
inline float sum(Vec<W> v) {
  if constexpr (W == 4) {
    return (v[0] + v[1]) + (v[2] + v[3]);
  } else {
    Vec<W / 2> low, high;
    std::memcpy(&low, &v, sizeof low);
    std::memcpy(&high, reinterpret_cast<const char*>(&v) + sizeof low, sizeof high);
    return sum<W / 2>(low + high);
  }
}

struct Dots {
  float y;
  float z;
};

// x.y and x.z in whole vectors of W lanes, then in halves of them, then one by one.
template <int W = kLanes>
inline Dots dots(const float* x, const float* y, const float* z, int64_t count) {
  Dots found{};
  int64_t d = 0;
  if (count >= W) {
    Vec<W> xy = {}, xz = {};
    for (; d + W <= count; d += W) {
      const Vec<W> v = load<W>(x + d);
      xy += v * load<W>(y + d);
      xz += v * load<W>(z + d);
    }
    found = {sum<W>(xy), sum<W>(xz)};
    if (d == count) return found;
  }
  if constexpr (W > 4) {
    const Dots rest = dots<W / 2>(x + d, y + d, z + d, count - d);
    return {found.y + rest.y, found.z + rest.z};
  } else {
    for (; d < count; ++d) {
      found.y += x[d] * y[d];
      found.z += x[d] * z[d];
    }
    return found;
  }
}

inline void prefetch(const void* address) { __builtin_prefetch(address, 0, 3); }

// exp(x) in plain arithmetic, so that a loop over it is vectorized: the library's
// exp is not, without -ffast-math. Relative error below 2e-7; saturates instead of
// overflowing; NaN stays NaN.
inline float exponential(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  const float rounded = x * 1.44269504f + kRound;
  const float n = rounded - kRound;
  float r = x - n * 0.693145751953125f;  // ln 2 in two parts
  r = r - n * 1.42860677e-6f;
  float p = 1.3888889e-3f;
  p = p * r + 8.3333333e-3f;
  p = p * r + 4.1666667e-2f;
  p = p * r + 1.6666667e-1f;
  p = p * r + 5.0e-1f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  int32_t bits;
  std::memcpy(&bits, &rounded, sizeof bits);
  bits = static_cast<int32_t>((static_cast<uint32_t>(bits) + 127u) << 23);
  float scale;
  std::memcpy(&scale, &bits, sizeof scale);
  return p * scale;
}

}  // namespace oodgat

#endif  // OODGAT_KERNELS_VECTORS_H_
