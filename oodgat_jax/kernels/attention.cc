// With w_ij = exp(e_ij - m_i), t_i = sum_j w_ij, c = 1 / (1 - rate), keep_ij 0 or 1:
//
//   out_i = c / t_i sum_j keep_ij w_ij h_j
//
// The gradient needs, besides, S_i (the same sum with the sign of x_ij), 1 / t_i, m_i
// and the mean sign: nothing of the size of the edges is kept. With q_i = g_i.out_i
// and alpha_ij = w_ij / t_i, computed anew in the order of senders,
//
//   dr_i = absolute (g_i.S_i - q_i mean_i)     (the linear part sums to zero)
//   dh_j = c sum_i keep_ij alpha_ij g_i,       B_j the same with the sign of x_ij
//   ds_j = sign [linear   (h_j.dh_j - sum_i alpha_ij q_i)
//              + absolute (h_j.B_j  - sum_i sign(x_ij) alpha_ij q_i)]

#include "attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "edge_blocks.h"
#include "gather.h"

namespace oodgat {
namespace {

// From x to lists: what both directions share.
template <int H, bool kScaled>
void prepare(const EdgeLogit& logit, const Dropout* dropout, const Edges& edges,
             const Block& block, int64_t heads, Scratch& scratch) {
  const int64_t count = block.count * heads;
  if (logit.bounded) {
    weigh<false, kScaled>(logit, count, scratch);
  } else {
    weigh<true, kScaled>(logit, count, scratch);
  }
  if (!dropout) return list_kept<H, false>(edges, block, heads, scratch);
  fill_numbers(edges, block, scratch.numbers.data());
  fill_positions<H>(*dropout, block, heads, scratch);
  decide(*dropout, count, scratch);
  list_kept<H, true>(edges, block, heads, scratch);
}

template <int H>
void fill_forward(const ForwardArgs& args, const Block& block, Scratch& scratch) {
  const int64_t heads = heads_of<H>(args.shape);
  const Edges& edges = args.edges;
  const int64_t last = edges.first[edges.owners] - 1;
  const float sign = args.logit.sign;
  float* x = scratch.weights.data();
  for (int64_t i = block.first; i < block.last; ++i) {
    const float* r = args.receiver + i * heads;
    for (int64_t e = edges.first[i]; e < edges.first[i + 1]; ++e, x += heads) {
      prefetch(args.sender + edges.others[std::min(e + kAhead, last)] * heads);
      const float* s = args.sender + edges.others[e] * heads;
#pragma omp simd
      for (int64_t k = 0; k < heads; ++k) x[k] = r[k] + sign * s[k];
    }
  }
}

// The largest logit m_i of each receiver and head, for each of its edges.
template <int H>
void fill_largest(const ForwardArgs& args, const Block& block, Scratch& scratch) {
  const int64_t heads = heads_of<H>(args.shape);
  const EdgeLogit e = args.logit;
  float* largest = scratch.sums.data();
  for (int64_t i = block.first; i < block.last; ++i) {
    const int64_t start = args.edges.first[i] - block.edge;
    const int64_t end = args.edges.first[i + 1] - block.edge;
    const float* x = scratch.weights.data();
    float* shift = scratch.shift.data();
    std::fill_n(largest, heads, -std::numeric_limits<float>::infinity());
    for (int64_t n = start; n < end; ++n) {
      for (int64_t k = 0; k < heads; ++k) {
        const float y = x[n * heads + k];
        const float value = e.constant + e.linear * y + e.absolute * std::fabs(y);
        largest[k] = largest[k] < value ? value : largest[k];
      }
    }
    for (int64_t n = start; n < end; ++n) {
      for (int64_t k = 0; k < heads; ++k) shift[n * heads + k] = largest[k];
    }
  }
}

// Totals of a block's receivers: factors c / t_i, and residuals if they are wanted.
template <int H>
void total(const ForwardArgs& args, const Block& block, float scale, Scratch& scratch,
           float* factors) {
  const int64_t heads = heads_of<H>(args.shape);
  float* absolute = scratch.sums.data();
  float* plain = absolute + heads;
  for (int64_t i = block.first; i < block.last; ++i) {
    const int64_t start = args.edges.first[i] - block.edge;
    const int64_t count = args.edges.first[i + 1] - args.edges.first[i];
    const float* w = scratch.weights.data() + start * heads;
    sum_weights<H>(w, nullptr, count, heads, absolute, plain);
    for (int64_t k = 0; k < heads; ++k) {
      const float t = count ? absolute[k] : 1.0f;  // no edges: all sums are zero
      factors[(i - block.first) * heads + k] = scale / t;
      if (!args.signed_out) continue;
      args.inverse[i * heads + k] = 1.0f / t;
      args.mean_sign[i * heads + k] = plain[k] / t;
      if (args.logit.bounded) continue;
      args.largest[i * heads + k] = count ? scratch.shift[start * heads + k] : 0.0f;
    }
  }
}

// Sums of a receiver and head, scaled. It knows no H, so that `gather`, which is most
// of the code here, is compiled once for all numbers of heads.
template <bool kBoth>
struct FinishForward {
  const ForwardArgs& args;
  const float* factors;  // [receivers of the block, H]
  int64_t first;         // receiver

  void operator()(int64_t i, int64_t k, int64_t from, int64_t count, const float* a,
                  const float* b) const {
    const int64_t heads = args.shape.heads;
    const float factor = factors[(i - first) * heads + k];
    const int64_t to = (i * heads + k) * args.shape.width + from;
    for (int64_t d = 0; d < count; ++d) args.out[to + d] = factor * a[d];
    if (!kBoth) return;
    for (int64_t d = 0; d < count; ++d) args.signed_out[to + d] = factor * b[d];
  }
};

template <int H>
void forward(const ForwardArgs& args) {
  const Shape& shape = args.shape;
  const int64_t heads = heads_of<H>(shape), width = shape.width;
  Scratch scratch(args.edges, heads);
  std::vector<float> factors(kBlockOwners * heads);
  const Readable rows(args.h, shape.columns * heads * width);
  const Source source{&rows, heads, width};
  const float scale = args.dropout ? args.dropout->scale : 1.0f;
  for (int64_t i = 0; i < shape.rows;) {
    const Block block = block_at(args.edges, i);
    fill_forward<H>(args, block, scratch);
    if (!args.logit.bounded) fill_largest<H>(args, block, scratch);
    prepare<H, false>(args.logit, args.dropout, args.edges, block, heads, scratch);
    total<H>(args, block, scale, scratch, factors.data());
    if (args.signed_out) {
      const FinishForward<true> finish{args, factors.data(), block.first};
      gather<true>(block, scratch, source, finish);
    } else {
      const FinishForward<false> finish{args, factors.data(), block.first};
      gather<false>(block, scratch, source, finish);
    }
    i = block.last;
  }
}

// Numbers of a receiver that an edge needs.
int64_t record_size(const EdgeLogit& logit) { return logit.bounded ? 3 : 4; }

// They are kept side by side: r, 1 / t, q and, if need be, m: [N, 3 or 4, H].
std::vector<float> receiver_records(const BackwardArgs& args) {
  const int64_t heads = args.shape.heads, width = args.shape.width;
  const int64_t size = record_size(args.logit) * heads;
  std::vector<float> records(args.shape.rows * size);
  for (int64_t i = 0; i < args.shape.rows; ++i) {
    float* record = records.data() + i * size;
    for (int64_t k = 0; k < heads; ++k) {
      const int64_t node = i * heads + k, at = node * width;
      const auto [q, signed_q] =
          dots(args.gradient + at, args.out + at, args.signed_out + at, width);
      record[k] = args.receiver[node];
      record[heads + k] = args.inverse[node];
      record[2 * heads + k] = q;
      if (!args.logit.bounded) record[3 * heads + k] = args.largest[node];
      args.d_receiver[node] =
          args.logit.absolute * (signed_q - q * args.mean_sign[node]);
    }
  }
  return records;
}

template <int H, bool kShifted>
void fill_backward(const BackwardArgs& args, const Block& block, const float* records,
                   Scratch& scratch) {
  const int64_t heads = heads_of<H>(args.shape);
  const Edges& edges = args.edges;
  const int64_t last = edges.first[edges.owners] - 1;
  const int64_t size = (kShifted ? 4 : 3) * heads;
  const float sign = args.logit.sign;
  float* x = scratch.weights.data();
  float* scale = scratch.scale.data();
  float* shift = scratch.shift.data();
  float* factor = scratch.factor.data();
  for (int64_t j = block.first; j < block.last; ++j) {
    const float* s = args.sender + j * heads;
    for (int64_t e = edges.first[j]; e < edges.first[j + 1]; ++e) {
      prefetch(records + edges.others[std::min(e + kAhead, last)] * size);
      const float* record = records + edges.others[e] * size;
#pragma omp simd
      for (int64_t k = 0; k < heads; ++k) {
        x[k] = record[k] + sign * s[k];
        scale[k] = record[heads + k];
        factor[k] = record[2 * heads + k];
        if (kShifted) shift[k] = record[3 * heads + k];
      }
      x += heads;
      scale += heads;
      shift += heads;
      factor += heads;
    }
  }
}

// The part of ds_j that needs no vectors: - sum_i slope_ij alpha_ij q_i.
template <int H>
void start_senders(const BackwardArgs& args, const Block& block, Scratch& scratch) {
  const int64_t heads = heads_of<H>(args.shape);
  float* absolute = scratch.sums.data();
  float* plain = absolute + heads;
  for (int64_t j = block.first; j < block.last; ++j) {
    const int64_t start = (args.edges.first[j] - block.edge) * heads;
    const int64_t count = args.edges.first[j + 1] - args.edges.first[j];
    sum_weights<H>(scratch.weights.data() + start, scratch.factor.data() + start,
                   count, heads, absolute, plain);
    for (int64_t k = 0; k < heads; ++k) {
      args.d_sender[j * heads + k] =
          -args.logit.sign *
          (args.logit.linear * absolute[k] + args.logit.absolute * plain[k]);
    }
  }
}

// Gradients of a sender and head, from the sums over its receivers.
struct FinishBackward {
  const BackwardArgs& args;
  float scale;

  void operator()(int64_t j, int64_t k, int64_t from, int64_t count, const float* a,
                  const float* b) const {
    const int64_t node = j * args.shape.heads + k;
    const int64_t at = node * args.shape.width + from;
    for (int64_t d = 0; d < count; ++d) args.d_h[at + d] = scale * a[d];
    const auto [plain, signed_one] = dots(args.h + at, a, b, count);
    args.d_sender[node] +=
        args.logit.sign * scale *
        (args.logit.linear * plain + args.logit.absolute * signed_one);
  }
};

template <int H>
void backward(const BackwardArgs& args) {
  const Shape& shape = args.shape;
  const int64_t heads = heads_of<H>(shape), width = shape.width;
  const std::vector<float> records = receiver_records(args);
  Scratch scratch(args.edges, heads);
  const Readable rows(args.gradient, shape.rows * heads * width);
  const Source source{&rows, heads, width};
  const float scale = args.dropout ? args.dropout->scale : 1.0f;
  const FinishBackward finish{args, scale};
  for (int64_t j = 0; j < shape.columns;) {
    const Block block = block_at(args.edges, j);
    if (args.logit.bounded) {
      fill_backward<H, false>(args, block, records.data(), scratch);
    } else {
      fill_backward<H, true>(args, block, records.data(), scratch);
    }
    prepare<H, true>(args.logit, args.dropout, args.edges, block, heads, scratch);
    start_senders<H>(args, block, scratch);
    gather<true>(block, scratch, source, finish);
    j = block.last;
  }
}

}  // namespace

void attend_forward(const ForwardArgs& args) {
  switch (args.shape.heads) {
    case 1: return forward<1>(args);
    case 2: return forward<2>(args);
    case 4: return forward<4>(args);
    case 8: return forward<8>(args);
    default: return forward<0>(args);
  }
}

void attend_backward(const BackwardArgs& args) {
  switch (args.shape.heads) {
    case 1: return backward<1>(args);
    case 2: return backward<2>(args);
    case 4: return backward<4>(args);
    case 8: return backward<8>(args);
    default: return backward<0>(args);
  }
}

}  // namespace oodgat
