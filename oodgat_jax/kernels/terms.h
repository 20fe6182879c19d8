// Lists of the terms of a sum: which row, times what. Terms that were dropped are left
// out without a branch: each is stored, and the next one over it unless it is kept.

#ifndef OODGAT_KERNELS_TERMS_H_
#define OODGAT_KERNELS_TERMS_H_

#include <cstdint>
#include <cstring>

#if defined(__AVX512F__) && defined(__AVX512VL__)
#define OODGAT_COMPRESS 1
#include <immintrin.h>
#endif

namespace oodgat {

struct Term {
  int32_t row;  // of the dense factor
  float value;
};

constexpr int64_t kTermSlack = 8;  // terms beyond the end of a list that are written

// Whether a value is not +0, what dropping leaves. As integers: it is on the path from
// one place in a list to the next.
inline int64_t is_nonzero(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits != 0;
}

#ifdef OODGAT_COMPRESS
// Eight terms at once, side by side in one register.
inline Term* append_eight(__m256i rows, __m256i values, Term* to) {
  const __mmask8 kept = _mm256_test_epi32_mask(values, values);
  const __m512i high = _mm512_slli_epi64(_mm512_cvtepu32_epi64(values), 32);
  const __m512i pairs = _mm512_or_si512(_mm512_cvtepu32_epi64(rows), high);
  // Compressing straight into memory is slow on some CPUs.
  _mm512_storeu_si512(to, _mm512_maskz_compress_epi64(kept, pairs));
  return to + __builtin_popcount(kept);
}
#endif

// Appends (rows[n], values[n]) for the values that are kept; returns the list's end.
inline Term* append(const int32_t* rows, const float* values, int64_t count,
                    Term* to) {
  int64_t n = 0;
#ifdef OODGAT_COMPRESS
  for (; n + 8 <= count; n += 8) {
    const auto* v = reinterpret_cast<const __m256i*>(values + n);
    const auto* r = reinterpret_cast<const __m256i*>(rows + n);
    to = append_eight(_mm256_loadu_si256(r), _mm256_loadu_si256(v), to);
  }
#endif
  for (; n < count; ++n) {
    *to = {rows[n], values[n]};
    to += is_nonzero(values[n]);
  }
  return to;
}

// The same for values that are looked up at places: (rows[n], values[places[n]]).
inline Term* append_at(const uint16_t* rows, const int32_t* places,
                       const float* values, int64_t count, Term* to) {
  int64_t n = 0;
#ifdef OODGAT_COMPRESS
  for (; n + 8 <= count; n += 8) {
    const __m128i r = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows + n));
    const __m256i p =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(places + n));
    const __m256 v = _mm256_i32gather_ps(values, p, 4);
    to = append_eight(_mm256_cvtepu16_epi32(r), _mm256_castps_si256(v), to);
  }
#endif
  for (; n < count; ++n) {
    const float value = values[places[n]];
    *to = {rows[n], value};
    to += is_nonzero(value);
  }
  return to;
}

}  // namespace oodgat

#endif  // OODGAT_KERNELS_TERMS_H_
