#include "limits.h"

#include <algorithm>

#include "vectors.h"

namespace oodgat {
namespace {

constexpr int64_t kRowsAhead = 16;

// Columns [0, W) of the rows.
template <int W>
void sum_columns(const float* rows, int64_t width, const int32_t* order,
                 int64_t count, float* out) {
  constexpr int kVectors = W / kLanes;
  Vec<kLanes> total[kVectors] = {};
  for (int64_t n = 0; n < count; ++n) {
    const float* next = rows + order[std::min(n + kRowsAhead, count - 1)] * width;
    for (int d = 0; d < W; d += 16) prefetch(next + d);
    const float* row = rows + order[n] * width;
    for (int v = 0; v < kVectors; ++v) total[v] += load<kLanes>(row + v * kLanes);
  }
  for (int v = 0; v < kVectors; ++v) store<kLanes>(out + v * kLanes, total[v]);
}

}  // namespace

void sum_rows(const float* rows, int64_t width, const int32_t* order, int64_t count,
              float* out) {
  int64_t from = 0;
  for (; from + 32 <= width; from += 32) {
    sum_columns<32>(rows + from, width, order, count, out + from);
  }
  if (from < width) sum_columns<16>(rows + from, width, order, count, out + from);
}

}  // namespace oodgat
