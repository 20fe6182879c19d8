// A block of edges at a time: weights, dropout, and lists of the kept (edge, head)s.
//
// A block is a few owners (receivers forward, senders backward) with about
// kBlockEdges edges, so that all that is kept per edge stays in the first caches.
// Arrays of a block are [edge, head]; only the lists are by head.

#ifndef OODGAT_KERNELS_EDGE_BLOCKS_H_
#define OODGAT_KERNELS_EDGE_BLOCKS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "aligned.h"
#include "attention.h"
#include "vectors.h"

namespace oodgat {

constexpr int64_t kBlockEdges = 512;
constexpr int64_t kBlockOwners = 512;
constexpr int64_t kAhead = 24;     // edges, to prefetch numbers of nodes
constexpr int64_t kListAhead = 8;  // entries of a list, to prefetch vectors

struct Entry {
  int32_t other;
  float weight;  // signed: its absolute value is exp(e)
};

struct Block {
  int64_t first;  // owners [first, last)
  int64_t last;
  int64_t edge;   // its first edge
  int64_t count;  // edges
};

// The block that begins at an owner; an owner of many edges is alone.
inline Block block_at(const Edges& edges, int64_t first) {
  const int64_t edge = edges.first[first];
  const int64_t most = std::min(edges.owners, first + kBlockOwners);
  int64_t last = first + 1;
  while (last < most && edges.first[last + 1] - edge <= kBlockEdges) ++last;
  return {first, last, edge, edges.first[last] - edge};
}

inline int64_t largest_block(const Edges& edges) {
  int64_t largest = kBlockEdges;
  for (int64_t i = 0; i < edges.owners; ++i) {
    const int64_t degree = edges.first[i + 1] - edges.first[i];
    largest = std::max(largest, degree);
  }
  return largest;
}

struct Scratch {
  Scratch(const Edges& edges, int64_t heads)
      : list_size(largest_block(edges) + kListAhead),
        weights(list_size * heads),
        shift(list_size * heads),
        scale(list_size * heads),
        factor(list_size * heads),
        numbers(list_size),
        kept(list_size * heads),
        lists(list_size * heads),
        ends(kBlockOwners * heads),
        sums(2 * heads) {}

  int64_t list_size;
  Aligned<float> weights;         // x at first, then signed weights
  Aligned<float> shift;           // taken from logits, if any
  Aligned<float> scale;           // of weights, if any
  Aligned<float> factor;          // of each weight in the sums, if any
  Aligned<uint32_t> numbers;      // of edges, for dropout
  Aligned<uint32_t> kept;         // positions at first, then 0 or 1
  Aligned<Entry> lists;           // [head, list_size]
  Aligned<int32_t> ends;          // [owner of the block, head], in the lists
  Aligned<float> sums;            // [2, head] of one owner
};

// H is the number of heads, or 0 where it is only known at run time.
template <int H>
inline int64_t heads_of(const Shape& shape) {
  return H ? H : shape.heads;
}

inline void fill_numbers(const Edges& edges, const Block& block, uint32_t* to) {
  const int32_t* places = edges.places + (edges.places ? block.edge : 0);
  for (int64_t n = 0; n < block.count; ++n) {
    const int64_t place = edges.places ? places[n] : block.edge + n;
    to[n] = edges.numbers ? edges.numbers[place] : static_cast<uint32_t>(place);
  }
}

template <int H>
void fill_positions(const Dropout& dropout, const Block& block, int64_t heads,
                    Scratch& scratch) {
  if (H) heads = H;
  uint32_t* to = scratch.kept.data();
  for (int64_t n = 0; n < block.count; ++n) {
    const uint32_t number = scratch.numbers[n];
    for (int64_t k = 0; k < heads; ++k) {
      to[n * heads + k] = number + static_cast<uint32_t>(k) * dropout.size;
    }
  }
}

// x -> signed weights. One flat loop over edges and heads, which is vectorized.
template <bool kShifted, bool kScaled>
void weigh(const EdgeLogit& logit, int64_t count, Scratch& scratch) {
  float* __restrict w = scratch.weights.data();
  const float* __restrict shift = scratch.shift.data();
  const float* __restrict scale = scratch.scale.data();
  const EdgeLogit e = logit;
  for (int64_t p = 0; p < count; ++p) {
    const float x = w[p];
    float value = e.constant + e.linear * x + e.absolute * std::fabs(x);
    if (kShifted) value -= shift[p];
    float weight = exponential(value);
    if (kScaled) weight *= scale[p];
    w[p] = x < 0.0f ? -weight : weight;
  }
}

inline void decide(const Dropout& dropout, int64_t count, Scratch& scratch) {
  uint32_t* __restrict kept = scratch.kept.data();
  const Dropout d = dropout;
  for (int64_t p = 0; p < count; ++p) kept[p] = is_kept(d, kept[p]);
}

// Lists of kept entries by head. Without branches: every entry is stored, and the
// next one is stored over it unless it is kept.
template <int H, bool kDropped>
void list_kept(const Edges& edges, const Block& block, int64_t heads,
               Scratch& scratch) {
  constexpr int kCounters = H ? H : 1;
  if (H) heads = H;
  const float* weights = scratch.weights.data();
  const uint32_t* kept = scratch.kept.data();
  const int32_t* others = edges.others + block.edge;
  const int64_t size = scratch.list_size;
  std::vector<uint32_t> more(H ? 0 : heads);
  uint32_t fixed[kCounters] = {};
  uint32_t* next = H ? fixed : more.data();
  Entry* lists = scratch.lists.data();
  for (int64_t i = block.first, n = 0; i < block.last; ++i) {
    for (const int64_t end = edges.first[i + 1] - block.edge; n < end; ++n) {
      for (int64_t k = 0; k < heads; ++k) {
        const int64_t p = n * heads + k;
        lists[k * size + next[k]] = {others[n], weights[p]};
        next[k] += kDropped ? kept[p] : 1u;
      }
    }
    int32_t* ends = scratch.ends.data() + (i - block.first) * heads;
    for (int64_t k = 0; k < heads; ++k) ends[k] = static_cast<int32_t>(next[k]);
  }
}

template <int H>
constexpr int kCountOr1 = H ? H : 1;

// Sums per head of |w| f and of w f over the edges of one owner; f is 1 if null.
template <int H>
void sum_weights(const float* w, const float* factor, int64_t count, int64_t heads,
                 float* absolute, float* plain) {
  if (H) heads = H;
  constexpr int kWide = H > kLanes ? H : kLanes;
  for (int64_t k = 0; k < heads; ++k) absolute[k] = plain[k] = 0.0f;
  int64_t p = 0;
  if (H) {  // lanes hold several edges at once
    float a[kWide] = {}, b[kWide] = {};
    for (; p + kWide <= count * heads; p += kWide) {
#pragma omp simd
      for (int l = 0; l < kWide; ++l) {
        const float f = factor ? factor[p + l] : 1.0f;
        a[l] += std::fabs(w[p + l]) * f;
        b[l] += w[p + l] * f;
      }
    }
    for (int l = 0; l < kWide; ++l) {
      absolute[l % kCountOr1<H>] += a[l];
      plain[l % kCountOr1<H>] += b[l];
    }
  }
  for (; p < count * heads; ++p) {
    const float f = factor ? factor[p] : 1.0f;
    absolute[p % heads] += std::fabs(w[p]) * f;
    plain[p % heads] += w[p] * f;
  }
}

}  // namespace oodgat

#endif  // OODGAT_KERNELS_EDGE_BLOCKS_H_
