// What JAX calls: typed buffers in, kernels, an error instead of an exception out.

#include <exception>

#include "attention.h"
#include "features.h"
#include "limits.h"
#include "xla/ffi/api/ffi.h"

namespace oodgat {
namespace {

namespace ffi = xla::ffi;
using Floats = ffi::Buffer<ffi::F32>;
using Ints = ffi::Buffer<ffi::S32>;
using Words = ffi::Buffer<ffi::U32>;
using Shorts = ffi::Buffer<ffi::U16>;
using Result = ffi::Result<Floats>;

template <class Function>
ffi::Error guarded(Function function) {
  try {
    function();
  } catch (const std::exception& error) {
    return ffi::Error::Internal(error.what());
  }
  return ffi::Error::Success();
}

// An empty buffer stands for none.
template <class Buffer>
auto* or_null(Buffer& buffer) {
  return buffer.element_count() ? buffer.typed_data() : nullptr;
}

// Five words, or none for no dropout.
struct MaybeDropout {
  explicit MaybeDropout(Words& words) : any(words.element_count() > 0) {
    if (any) value = read_dropout(words.typed_data());
  }
  const Dropout* get() const { return any ? &value : nullptr; }

  bool any;
  Dropout value{};
};

Shape shape_of(Floats& receiver, Floats& h) {
  const auto sizes = h.dimensions();
  return {receiver.dimensions()[0], sizes[0], sizes[1], sizes[2]};
}

EdgeLogit logit_of(float sign, float constant, float linear, float absolute,
                   bool bounded) {
  return {sign, constant, linear, absolute, bounded};
}

ffi::Error forward(float sign, float constant, float linear, float absolute,
                   bool bounded, Ints first, Ints others, Words numbers,
                   Words dropout, Floats receiver, Floats sender, Floats h,
                   Result out, Result signed_out, Result inverse,
                   Result mean_sign, Result largest) {
  return guarded([&] {
    const MaybeDropout drop(dropout);
    const Shape shape = shape_of(receiver, h);
    attend_forward({shape, logit_of(sign, constant, linear, absolute, bounded),
                    {shape.rows, first.typed_data(), others.typed_data(), nullptr,
                     or_null(numbers)},
                    receiver.typed_data(), sender.typed_data(), h.typed_data(),
                    drop.get(), out->typed_data(), or_null(*signed_out),
                    or_null(*inverse), or_null(*mean_sign), or_null(*largest)});
  });
}

ffi::Error backward(float sign, float constant, float linear, float absolute,
                    bool bounded, Ints first, Ints others, Ints places,
                    Words numbers, Words dropout, Floats receiver, Floats sender,
                    Floats h, Floats out, Floats signed_out, Floats inverse,
                    Floats mean_sign, Floats largest, Floats gradient,
                    Result d_receiver, Result d_sender, Result d_h) {
  return guarded([&] {
    const MaybeDropout drop(dropout);
    const Shape shape = shape_of(receiver, h);
    attend_backward({shape, logit_of(sign, constant, linear, absolute, bounded),
                     {shape.columns, first.typed_data(), others.typed_data(),
                      places.typed_data(), or_null(numbers)},
                     receiver.typed_data(), sender.typed_data(), h.typed_data(),
                     drop.get(), out.typed_data(), signed_out.typed_data(),
                     inverse.typed_data(), mean_sign.typed_data(),
                     or_null(largest), gradient.typed_data(), d_receiver->typed_data(),
                     d_sender->typed_data(), d_h->typed_data()});
  });
}

ffi::Error product(Ints first, Ints columns, Floats values, Words numbers, Words rows,
                   Words dropout, Floats weights, Result out) {
  return guarded([&] {
    const MaybeDropout drop(dropout);
    const Stored stored{first.dimensions()[0] - 1, weights.dimensions()[0],
                        first.typed_data(), columns.typed_data(),
                        values.typed_data(), or_null(numbers), or_null(rows)};
    feature_product(stored, drop.get(), weights.dimensions()[1],
                    weights.typed_data(), out->typed_data());
  });
}

ffi::Error transposed(Ints first, Ints columns, Floats values, Words numbers,
                      Words rows, Ints tiles, Ints tile_first, Shorts tile_rows,
                      Ints tile_places, Words dropout, Floats gradient, Result out) {
  return guarded([&] {
    const MaybeDropout drop(dropout);
    const Stored stored{first.dimensions()[0] - 1, out->dimensions()[0],
                        first.typed_data(), columns.typed_data(),
                        values.typed_data(), or_null(numbers), or_null(rows)};
    const Tiles index{static_cast<int64_t>(tiles.element_count()) - 1,
                      tiles.typed_data(), tile_first.typed_data(),
                      tile_rows.typed_data(), tile_places.typed_data()};
    feature_product_transposed(stored, index, drop.get(), out->dimensions()[1],
                               gradient.typed_data(), out->typed_data());
  });
}

ffi::Error rows_sum(Floats rows, Ints order, Result out) {
  return guarded([&] {
    sum_rows(rows.typed_data(), rows.dimensions()[1], order.typed_data(),
             order.dimensions()[0], out->typed_data());
  });
}

auto with_logit() {
  return ffi::Ffi::Bind()
      .Attr<float>("sign")
      .Attr<float>("constant")
      .Attr<float>("linear")
      .Attr<float>("absolute")
      .Attr<bool>("bounded");
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(oodgat_attend_forward, forward,
                              with_logit()
                                  .Arg<Ints>()      // first
                                  .Arg<Ints>()      // others
                                  .Arg<Words>()     // numbers
                                  .Arg<Words>()     // dropout
                                  .Arg<Floats>()    // receiver
                                  .Arg<Floats>()    // sender
                                  .Arg<Floats>()    // h
                                  .Ret<Floats>()    // out
                                  .Ret<Floats>()    // signed_out
                                  .Ret<Floats>()    // inverse
                                  .Ret<Floats>()    // mean_sign
                                  .Ret<Floats>());  // largest

XLA_FFI_DEFINE_HANDLER_SYMBOL(oodgat_attend_backward, backward,
                              with_logit()
                                  .Arg<Ints>()      // first
                                  .Arg<Ints>()      // others
                                  .Arg<Ints>()      // places
                                  .Arg<Words>()     // numbers
                                  .Arg<Words>()     // dropout
                                  .Arg<Floats>()    // receiver
                                  .Arg<Floats>()    // sender
                                  .Arg<Floats>()    // h
                                  .Arg<Floats>()    // out
                                  .Arg<Floats>()    // signed_out
                                  .Arg<Floats>()    // inverse
                                  .Arg<Floats>()    // mean_sign
                                  .Arg<Floats>()    // largest
                                  .Arg<Floats>()    // gradient
                                  .Ret<Floats>()    // d_receiver
                                  .Ret<Floats>()    // d_sender
                                  .Ret<Floats>());  // d_h

XLA_FFI_DEFINE_HANDLER_SYMBOL(oodgat_feature_product, product,
                              ffi::Ffi::Bind()
                                  .Arg<Ints>()      // first
                                  .Arg<Ints>()      // columns
                                  .Arg<Floats>()    // values
                                  .Arg<Words>()     // numbers
                                  .Arg<Words>()     // rows
                                  .Arg<Words>()     // dropout
                                  .Arg<Floats>()    // weights
                                  .Ret<Floats>());  // out

XLA_FFI_DEFINE_HANDLER_SYMBOL(oodgat_feature_product_transposed, transposed,
                              ffi::Ffi::Bind()
                                  .Arg<Ints>()      // first
                                  .Arg<Ints>()      // columns
                                  .Arg<Floats>()    // values
                                  .Arg<Words>()     // numbers
                                  .Arg<Words>()     // rows
                                  .Arg<Ints>()      // tiles
                                  .Arg<Ints>()      // tile_first
                                  .Arg<Shorts>()    // tile_rows
                                  .Arg<Ints>()      // tile_places
                                  .Arg<Words>()     // dropout
                                  .Arg<Floats>()    // gradient
                                  .Ret<Floats>());  // out

XLA_FFI_DEFINE_HANDLER_SYMBOL(oodgat_sum_rows, rows_sum,
                              ffi::Ffi::Bind()
                                  .Arg<Floats>()    // rows
                                  .Arg<Ints>()      // order
                                  .Ret<Floats>());  // out

}  // namespace oodgat
