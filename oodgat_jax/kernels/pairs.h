// Work per edge, head and width on the vectors of both nodes (GATv2); see pairs.py.

#ifndef OODGAT_KERNELS_PAIRS_H_
#define OODGAT_KERNELS_PAIRS_H_

#include <cstdint>

#include "attention.h"

namespace oodgat {

// e_ij = query . leaky(h_i + h_j): edges by receiver, h [K, H, D] -> [E, H].
void pair_logits(const Shape& shape, const Edges& edges, float slope,
                 const float* query, const float* h, float* logits);

// d_ij = g_i . h_j: the same edges, g [N, H, D] -> [E, H].
void pair_dots(const Shape& shape, const Edges& edges, const float* g, const float* h,
               float* dots);

// Adds, for each owner o, the sum over its edges of d leaky'(h_o + h_other):
// values d [E, H] by place, h [K, H, D] -> total [K, H, D].
void add_slopes(const Shape& shape, const Edges& edges, float slope,
                const float* values, const float* h, float* total);

}  // namespace oodgat

#endif  // OODGAT_KERNELS_PAIRS_H_
