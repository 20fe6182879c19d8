// Arrays that begin at a cache line: a vector of 64 bytes that crosses from one line
// into the next costs two loads.

#ifndef OODGAT_KERNELS_ALIGNED_H_
#define OODGAT_KERNELS_ALIGNED_H_

#include <cstddef>
#include <new>
#include <vector>

namespace oodgat {

template <class T>
struct CacheLines {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};

  CacheLines() = default;
  template <class U>
  CacheLines(const CacheLines<U>&) {}

  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), kLine));
  }
  void deallocate(T* at, std::size_t) { ::operator delete(at, kLine); }

  bool operator==(const CacheLines&) const { return true; }
  bool operator!=(const CacheLines&) const { return false; }
};

template <class T>
using Aligned = std::vector<T, CacheLines<T>>;

}  // namespace oodgat

#endif  // OODGAT_KERNELS_ALIGNED_H_
