// Attention over the edges of a graph, forward and backward; see attention.py.

#ifndef OODGAT_KERNELS_ATTENTION_H_
#define OODGAT_KERNELS_ATTENTION_H_

#include <cstdint>

#include "dropout.h"

namespace oodgat {

// e(x) = constant + linear x + absolute |x|, x = r_i + sign s_j.
struct EdgeLogit {
  float sign;
  float constant;
  float linear;
  float absolute;
  bool bounded;
};

// Edges grouped by one of their ends, the owner.
struct Edges {
  int64_t owners;
  const int32_t* first;    // [owners + 1]
  const int32_t* others;   // [E] the other ends
  const int32_t* places;   // [E] places in row order, or null: in order
  const uint32_t* numbers; // [E] by place, for dropout, or null: the places
};

struct Shape {
  int64_t rows;     // N, receivers
  int64_t columns;  // K, senders
  int64_t heads;
  int64_t width;
};

struct ForwardArgs {
  Shape shape;
  EdgeLogit logit;
  Edges edges;             // by receiver
  const float* receiver;   // r [N, H]
  const float* sender;     // s [K, H]
  const float* h;          // [K, H, D]
  const Dropout* dropout;  // or null
  float* out;              // [N, H, D]
  // Residuals, all null where no gradient is wanted:
  float* signed_out;  // [N, H, D], the same sum with the sign of x
  float* inverse;     // [N, H], 1 / t
  float* mean_sign;   // [N, H]
  float* largest;     // [N, H], m; null if logits are bounded
};

struct BackwardArgs {
  Shape shape;
  EdgeLogit logit;
  Edges edges;            // by sender
  const float* receiver;  // [N, H]
  const float* sender;    // [K, H]
  const float* h;         // [K, H, D]
  const Dropout* dropout;
  const float* out;  // [N, H, D]
  const float* signed_out;
  const float* inverse;
  const float* mean_sign;
  const float* largest;
  const float* gradient;  // g [N, H, D]
  float* d_receiver;      // [N, H]
  float* d_sender;        // [K, H]
  float* d_h;             // [K, H, D]
};

void attend_forward(const ForwardArgs& args);
void attend_backward(const BackwardArgs& args);

}  // namespace oodgat

#endif  // OODGAT_KERNELS_ATTENTION_H_
