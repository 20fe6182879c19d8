// What a core can do at best, for the benchmark to compare the kernels with.

#ifndef OODGAT_KERNELS_LIMITS_H_
#define OODGAT_KERNELS_LIMITS_H_

#include <cstdint>

namespace oodgat {

// Adds up rows [R, width] in an order [count] -> out [width]: reading them, and as
// little besides as there can be. The width is a multiple of 16.
void sum_rows(const float* rows, int64_t width, const int32_t* order, int64_t count,
              float* out);

}  // namespace oodgat

#endif  // OODGAT_KERNELS_LIMITS_H_
