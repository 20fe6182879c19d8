// Weighted sums of rows over the lists of a block: the part that waits for memory.

#ifndef OODGAT_KERNELS_GATHER_H_
#define OODGAT_KERNELS_GATHER_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "edge_blocks.h"
#include "vectors.h"

namespace oodgat {

constexpr int kMostVectors = 4;  // two accumulators each: fits 16 registers
constexpr int kMostLanes = kMostVectors * kLanes;

// A matrix whose rows may be read beyond their end, also the last ones: these are
// read from a padded copy.
class Readable {
 public:
  Readable(const float* data, int64_t size)
      : data_(data),
        limit_(std::max<int64_t>(0, size - kMostLanes)),
        tail_(2 * kMostLanes) {
    std::copy(data + limit_, data + size, tail_.begin());
  }

  template <bool kExact>
  const float* at(int64_t offset) const {
    if (kExact) return data_ + offset;
    return offset < limit_ ? data_ + offset : tail_.data() + (offset - limit_);
  }

 private:
  const float* data_;
  int64_t limit_;
  std::vector<float> tail_;
};

// What the sums of one owner and head are made of.
struct Source {
  const Readable* rows;  // [nodes, heads, width]
  int64_t heads;
  int64_t width;
};

// A = sum |w| row and, if kBoth, B = sum w row, for W lanes in V vectors.
template <int W, int V, bool kExact, bool kBoth>
inline void add_rows(const Entry* entry, const Entry* end, const Source& source,
                     int64_t offset, float* a, float* b) {
  Vec<W> absolute[V] = {}, plain[V] = {};
  const int64_t stride = source.heads * source.width;
  for (; entry < end; ++entry) {
    const float* next =
        source.rows->at<kExact>(entry[kListAhead].other * stride + offset);
    for (int v = 0; v < V * W; v += 16) prefetch(next + v);
    const float* row = source.rows->at<kExact>(entry->other * stride + offset);
    const float weight = entry->weight;
    const float size = std::fabs(weight);
    for (int v = 0; v < V; ++v) {
      const Vec<W> x = load<W>(row + v * W);
      absolute[v] += size * x;
      if (kBoth) plain[v] += weight * x;
    }
  }
  for (int v = 0; v < V; ++v) {
    store<W>(a + v * W, absolute[v]);
    if (kBoth) store<W>(b + v * W, plain[v]);
  }
}

// Columns [from, from + count) of every owner and head of a block.
template <int W, int V, bool kExact, bool kBoth, class Finish>
void gather_columns(const Block& block, const Scratch& scratch, const Source& source,
                    int64_t from, int64_t count, const Finish& finish) {
  float a[kMostLanes], b[kMostLanes];
  for (int64_t k = 0; k < source.heads; ++k) {
    const Entry* list = scratch.lists.data() + k * scratch.list_size;
    const int32_t* ends = scratch.ends.data() + k;
    const int64_t offset = k * source.width + from;
    int64_t start = 0;
    for (int64_t i = block.first; i < block.last; ++i) {
      const int64_t end = ends[(i - block.first) * source.heads];
      add_rows<W, V, kExact, kBoth>(list + start, list + end, source, offset, a, b);
      finish(i, k, from, count, a, b);
      start = end;
    }
  }
}

template <int W, int V, bool kBoth, class Finish>
void gather_exact_or_not(const Block& block, const Scratch& scratch,
                         const Source& source, int64_t from, const Finish& finish) {
  const int64_t count = std::min<int64_t>(V * W, source.width - from);
  if (count == V * W) {
    gather_columns<W, V, true, kBoth>(block, scratch, source, from, count, finish);
  } else {
    gather_columns<W, V, false, kBoth>(block, scratch, source, from, count, finish);
  }
}

// All columns of every owner and head of a block; finish(owner, head, first column,
// columns, A, B) is called for each.
template <bool kBoth, class Finish>
void gather(const Block& block, const Scratch& scratch, const Source& source,
            const Finish& finish) {
  constexpr int kHalf = kLanes > 4 ? kLanes / 2 : 4;
  if (source.width <= 4) {
    return gather_exact_or_not<4, 1, kBoth>(block, scratch, source, 0, finish);
  }
  if (source.width <= kHalf) {
    return gather_exact_or_not<kHalf, 1, kBoth>(block, scratch, source, 0, finish);
  }
  for (int64_t from = 0; from < source.width; from += kMostLanes) {
    const int64_t left = source.width - from;
    if (left <= kLanes) {
      gather_exact_or_not<kLanes, 1, kBoth>(block, scratch, source, from, finish);
    } else if (left <= 2 * kLanes) {
      gather_exact_or_not<kLanes, 2, kBoth>(block, scratch, source, from, finish);
    } else if (left <= 3 * kLanes) {
      gather_exact_or_not<kLanes, 3, kBoth>(block, scratch, source, from, finish);
    } else {
      gather_exact_or_not<kLanes, 4, kBoth>(block, scratch, source, from, finish);
    }
  }
}

}  // namespace oodgat

#endif  // OODGAT_KERNELS_GATHER_H_
