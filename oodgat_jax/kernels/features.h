// Products of dropped sparse features with dense matrices; see features.py.

#ifndef OODGAT_KERNELS_FEATURES_H_
#define OODGAT_KERNELS_FEATURES_H_

#include <cstdint>

#include "dropout.h"

namespace oodgat {

// A matrix X [rows, columns] that keeps its stored entries only, in row order.
struct Stored {
  int64_t rows;
  int64_t columns;
  const int32_t* first;         // [rows + 1]
  const int32_t* column;        // [Z]
  const float* values;          // [Z]
  const uint32_t* numbers;      // [Z] positions of dropout, or null: 0, 1, 2, ...
  const uint32_t* row_numbers;  // [rows], or null; with them position (i, f) is that
                                // of a dense matrix, row_number_i columns + f
};

// The entries sorted by (tile of rows, column).
struct Tiles {
  int64_t count;
  const int32_t* rows;      // [count + 1] first row of each tile
  const int32_t* first;     // [count columns + 1] where a column of a tile starts
  const uint16_t* row;      // [Z] in the tile
  const int32_t* place;     // [Z] in row order, among the entries of the tile
};

// out = drop(X) weights: [rows, width].
void feature_product(const Stored& stored, const Dropout* dropout, int64_t width,
                     const float* weights, float* out);

// out = drop(X)' gradient: [columns, width].
void feature_product_transposed(const Stored& stored, const Tiles& tiles,
                                const Dropout* dropout, int64_t width,
                                const float* gradient, float* out);

}  // namespace oodgat

#endif  // OODGAT_KERNELS_FEATURES_H_
