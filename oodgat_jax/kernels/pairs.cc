#include "pairs.h"

#include <algorithm>

#include "vectors.h"

namespace oodgat {
namespace {

constexpr int64_t kEdgesAhead = 4;

template <int W>
inline Vec<W> leaky(Vec<W> u, float slope) {
  return u > 0.0f ? u : slope * u;
}

// sum_d query_d leaky(x_d + y_d), in whole vectors, then in halves of them, then one
// by one.
template <int W = kLanes>
inline float leaky_dot(const float* query, const float* x, const float* y, float slope,
                       int64_t count) {
  float found = 0.0f;
  int64_t d = 0;
  if (count >= W) {
    Vec<W> total = {};
    for (; d + W <= count; d += W) {
      const Vec<W> u = load<W>(x + d) + load<W>(y + d);
      total += load<W>(query + d) * leaky<W>(u, slope);
    }
    found = sum<W>(total);
    if (d == count) return found;
  }
  if constexpr (W > 4) {
    return found + leaky_dot<W / 2>(query + d, x + d, y + d, slope, count - d);
  } else {
    for (; d < count; ++d) {
      const float u = x[d] + y[d];
      found += query[d] * (u > 0.0f ? u : slope * u);
    }
    return found;
  }
}

// Calls function(edge, head, row of the owner, row of the other end) for all of them.
template <class Function>
void for_pairs(const Shape& shape, const Edges& edges, const float* owners,
               const float* others, Function function) {
  const int64_t size = shape.heads * shape.width;
  const int64_t last = edges.first[edges.owners] - 1;
  for (int64_t i = 0; i < edges.owners; ++i) {
    for (int64_t e = edges.first[i]; e < edges.first[i + 1]; ++e) {
      const float* next =
          others + edges.others[std::min(e + kEdgesAhead, last)] * size;
      for (int64_t d = 0; d < size; d += 16) prefetch(next + d);
      const float* other = others + edges.others[e] * size;
      for (int64_t k = 0; k < shape.heads; ++k) {
        const int64_t at = k * shape.width;
        function(e, k, owners + i * size + at, other + at);
      }
    }
  }
}

// Columns [from, from + V W) of one owner and head.
template <int W, int V>
inline void add_columns(const Shape& shape, const Edges& edges, float slope,
                        const float* values, const float* h, int64_t owner,
                        int64_t head, int64_t from, float* total) {
  const int64_t size = shape.heads * shape.width, at = head * shape.width + from;
  Vec<W> mine[V], found[V];
  for (int v = 0; v < V; ++v) {
    mine[v] = load<W>(h + owner * size + at + v * W);
    found[v] = load<W>(total + owner * size + at + v * W);
  }
  for (int64_t e = edges.first[owner]; e < edges.first[owner + 1]; ++e) {
    const int64_t place = edges.places ? edges.places[e] : e;
    const float value = values[place * shape.heads + head];
    const float* other = h + edges.others[e] * size + at;
    const Vec<W> high = value - Vec<W>{}, low = value * slope - Vec<W>{};
    for (int v = 0; v < V; ++v) {
      const Vec<W> u = mine[v] + load<W>(other + v * W);
      found[v] += u > 0.0f ? high : low;
    }
  }
  for (int v = 0; v < V; ++v) {
    store<W>(total + owner * size + at + v * W, found[v]);
  }
}

}  // namespace

void pair_logits(const Shape& shape, const Edges& edges, float slope,
                 const float* query, const float* h, float* logits) {
  for_pairs(shape, edges, h, h,
            [&](int64_t e, int64_t k, const float* mine, const float* other) {
              logits[e * shape.heads + k] = leaky_dot(query + k * shape.width, mine,
                                                      other, slope, shape.width);
            });
}

void pair_dots(const Shape& shape, const Edges& edges, const float* g, const float* h,
               float* dots_of) {
  for_pairs(shape, edges, g, h,
            [&](int64_t e, int64_t k, const float* mine, const float* other) {
              dots_of[e * shape.heads + k] = dot(mine, other, shape.width);
            });
}

void add_slopes(const Shape& shape, const Edges& edges, float slope,
                const float* values, const float* h, float* total) {
  constexpr int kHalf = kLanes > 4 ? kLanes / 2 : 4;
  for (int64_t i = 0; i < edges.owners; ++i) {
    for (int64_t k = 0; k < shape.heads; ++k) {
      int64_t d = 0;
      auto add = [&](auto columns, auto step) {
        for (; d + step <= shape.width; d += step) {
          columns(shape, edges, slope, values, h, i, k, d, total);
        }
      };
      add(add_columns<kLanes, 2>, 2 * kLanes);
      add(add_columns<kLanes, 1>, kLanes);
      add(add_columns<kHalf, 1>, kHalf);
      add(add_columns<4, 1>, 4);
      add(add_columns<1, 1>, 1);
    }
  }
}

}  // namespace oodgat
