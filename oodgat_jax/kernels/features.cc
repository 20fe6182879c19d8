// Both products add up, for one row of the result at a time, rows of the dense factor
// over the kept entries. A tile of the factor's rows stays in the first cache while
// every row of the result takes what it needs from it; some columns (a panel) at a
// time, in registers. Kept entries are put into a list first: the sums then have
// neither hashes nor branches in them.

#include "features.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "aligned.h"
#include "terms.h"
#include "vectors.h"

namespace oodgat {
namespace {

constexpr int kVectors = 4;
constexpr int64_t kPanel = kVectors * kLanes;  // columns
constexpr int64_t kTileRows = 128;             // at the least
constexpr int64_t kTileEntries = 16;           // of a row in a tile, on average
constexpr int64_t kBlockEntries = 1 << 14;
constexpr int64_t kBlockRows = 1 << 10;

int64_t panels_of(int64_t width) { return (width + kPanel - 1) / kPanel; }

// Values of the entries of rows [from, to), scaled, zero where they are dropped.
void drop_values(const Stored& x, const Dropout& dropout, int64_t from, int64_t to,
                 float* values) {
  const Dropout d = dropout;
  const int64_t first = x.first[from], count = x.first[to] - first;
  const float* stored = x.values + first;
  if (x.row_numbers) {
    for (int64_t i = from; i < to; ++i) {
      const uint32_t start =
          x.row_numbers[i] * static_cast<uint32_t>(x.columns);
      for (int64_t e = x.first[i]; e < x.first[i + 1]; ++e) {
        const uint32_t position = start + static_cast<uint32_t>(x.column[e]);
        const float value = x.values[e] * d.scale;
        values[e - first] = is_kept(d, position) ? value : 0.0f;
      }
    }
  } else if (x.numbers) {
    const uint32_t* numbers = x.numbers + first;
    for (int64_t n = 0; n < count; ++n) {
      const float value = stored[n] * d.scale;
      values[n] = is_kept(d, numbers[n]) ? value : 0.0f;
    }
  } else {
    const uint32_t start = static_cast<uint32_t>(first);
    for (int64_t n = 0; n < count; ++n) {
      const float value = stored[n] * d.scale;
      values[n] = is_kept(d, start + static_cast<uint32_t>(n)) ? value : 0.0f;
    }
  }
}

// Those values, or the stored ones themselves where nothing is dropped.
const float* values_of(const Stored& x, const Dropout* dropout, int64_t from,
                       int64_t to, std::vector<float>& scratch) {
  if (!dropout) return x.values + x.first[from];
  const size_t count = x.first[to] - x.first[from];
  if (scratch.size() < count) scratch.resize(count);
  drop_values(x, *dropout, from, to, scratch.data());
  return scratch.data();
}

// Copies columns [from, from + kPanel) of some rows side by side, padded with zeros.
void pack(const float* rows, int64_t count, int64_t width, int64_t from,
          float* packed) {
  const int64_t columns = std::min(kPanel, width - from);
  for (int64_t i = 0; i < count; ++i) {
    float* to = packed + i * kPanel;
    std::memcpy(to, rows + i * width + from, columns * sizeof(float));
    std::fill(to + columns, to + kPanel, 0.0f);
  }
}

// The reverse.
void unpack(const float* packed, int64_t count, int64_t width, int64_t from,
            float* rows) {
  const int64_t columns = std::min(kPanel, width - from);
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(rows + i * width + from, packed + i * kPanel,
                columns * sizeof(float));
  }
}

// sum += value row over terms, for V vectors; stops at the first row from `limit` on.
template <int V>
inline const Term* add_terms(const Term* term, const Term* end, int32_t limit,
                             const float* packed, float* sum) {
  if (term == end || term->row >= limit) return term;
  Vec<kLanes> total[V];
  for (int v = 0; v < V; ++v) total[v] = load<kLanes>(sum + v * kLanes);
  do {
    const float* row = packed + term->row * kPanel;
    const float value = term->value;
    for (int v = 0; v < V; ++v) total[v] += value * load<kLanes>(row + v * kLanes);
    ++term;
  } while (term != end && term->row < limit);
  for (int v = 0; v < V; ++v) store<kLanes>(sum + v * kLanes, total[v]);
  return term;
}

// Calls function(V) with the vectors that a panel needs, as a constant.
template <class Function>
void with_vectors(int64_t columns, Function function) {
  if (columns <= kLanes) return function(std::integral_constant<int, 1>());
  if (columns <= 2 * kLanes) return function(std::integral_constant<int, 2>());
  if (columns <= 3 * kLanes) return function(std::integral_constant<int, 3>());
  function(std::integral_constant<int, 4>());
}

// A block of rows of X: its kept entries.
struct Block {
  std::vector<float> values;
  std::vector<Term> terms;
  std::vector<const Term*> start;  // [rows + 1], where a row's terms start
  std::vector<const Term*> next;   // [rows], how far they are done
  Aligned<float> sums;             // [rows, kPanel]
};

int64_t block_end(const Stored& x, int64_t from) {
  const int64_t most = std::min(x.rows, from + kBlockRows);
  int64_t to = from + 1;
  while (to < most && x.first[to + 1] - x.first[from] <= kBlockEntries) ++to;
  return to;
}

void list_rows(const Stored& x, const Dropout* dropout, int64_t from, int64_t to,
               Block& block) {
  const int64_t first = x.first[from];
  const float* values = values_of(x, dropout, from, to, block.values);
  block.terms.resize(x.first[to] - first + kTermSlack);
  block.start.resize(to - from + 1);
  Term* term = block.terms.data();
  block.start[0] = term;
  for (int64_t i = from; i < to; ++i) {
    const int64_t e = x.first[i], count = x.first[i + 1] - e;
    term = append(x.column + e, values + (e - first), count, term);
    block.start[i - from + 1] = term;
  }
}

template <int V>
void multiply_block(Block& block, int64_t rows, int64_t columns, int64_t tile,
                    const float* packed) {
  block.sums.assign(rows * kPanel, 0.0f);
  block.next.assign(block.start.begin(), block.start.end() - 1);
  for (int64_t limit = tile;; limit += tile) {
    const int32_t end = static_cast<int32_t>(std::min(limit, columns));
    for (int64_t i = 0; i < rows; ++i) {
      block.next[i] = add_terms<V>(block.next[i], block.start[i + 1], end, packed,
                                   block.sums.data() + i * kPanel);
    }
    if (end == columns) return;
  }
}

int64_t tile_columns(const Stored& x) {
  const int64_t stored = std::max<int64_t>(x.first[x.rows], 1);
  return std::max(kTileRows, kTileEntries * x.rows * x.columns / stored);
}

}  // namespace

void feature_product(const Stored& x, const Dropout* dropout, int64_t width,
                     const float* weights, float* out) {
  const int64_t panels = panels_of(width), size = x.columns * kPanel;
  Aligned<float> packed(panels * size);
  for (int64_t p = 0; p < panels; ++p) {
    pack(weights, x.columns, width, p * kPanel, packed.data() + p * size);
  }
  const int64_t tile = tile_columns(x);
  Block block;
  for (int64_t from = 0, to; from < x.rows; from = to) {
    to = block_end(x, from);
    list_rows(x, dropout, from, to, block);
    for (int64_t p = 0; p < panels; ++p) {
      with_vectors(width - p * kPanel, [&](auto vectors) {
        multiply_block<vectors.value>(block, to - from, x.columns, tile,
                                      packed.data() + p * size);
      });
      unpack(block.sums.data(), to - from, width, p * kPanel, out + from * width);
    }
  }
}

void feature_product_transposed(const Stored& x, const Tiles& tiles,
                                const Dropout* dropout, int64_t width,
                                const float* gradient, float* out) {
  const int64_t panels = panels_of(width), size = x.columns * kPanel;
  Aligned<float> sums(panels * size), packed;
  std::vector<float> scratch;
  std::vector<Term> terms;
  std::vector<const Term*> start(x.columns + 1);
  for (int64_t t = 0; t < tiles.count; ++t) {
    const int64_t from = tiles.rows[t], to = tiles.rows[t + 1];
    const float* values = values_of(x, dropout, from, to, scratch);
    terms.resize(x.first[to] - x.first[from] + kTermSlack);
    packed.resize((to - from) * kPanel);
    Term* term = terms.data();
    start[0] = term;
    const int32_t* first = tiles.first + t * x.columns;
    for (int64_t f = 0; f < x.columns; ++f) {
      const int64_t n = first[f], count = first[f + 1] - n;
      term = append_at(tiles.row + n, tiles.place + n, values, count, term);
      start[f + 1] = term;
    }
    const int32_t all = static_cast<int32_t>(to - from);
    for (int64_t p = 0; p < panels; ++p) {
      pack(gradient + from * width, to - from, width, p * kPanel, packed.data());
      with_vectors(width - p * kPanel, [&](auto vectors) {
        for (int64_t f = 0; f < x.columns; ++f) {
          add_terms<vectors.value>(start[f], start[f + 1], all, packed.data(),
                                   sums.data() + p * size + f * kPanel);
        }
      });
    }
  }
  for (int64_t p = 0; p < panels; ++p) {
    unpack(sums.data() + p * size, x.columns, width, p * kPanel, out);
  }
}

}  // namespace oodgat
