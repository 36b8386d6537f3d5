// What mamba-ssm's kernels take from PyTorch: a complex number.
#pragma once
namespace c10 {
template <typename T> struct complex {
  T real_, imag_;
  __host__ __device__ complex(T r = T(), T i = T()) : real_(r), imag_(i) {}
  __host__ __device__ complex& operator+=(complex o) { return real_ += o.real_, imag_ += o.imag_, *this; }
};
template <typename T> __host__ __device__ complex<T> operator*(complex<T> a, complex<T> b) {
  return {a.real_ * b.real_ - a.imag_ * b.imag_, a.real_ * b.imag_ + a.imag_ * b.real_};
}
template <typename T> __host__ __device__ complex<T> operator*(T a, complex<T> b) { return {a * b.real_, a * b.imag_}; }
template <typename T> __host__ __device__ complex<T> operator*(complex<T> a, T b) { return {b * a.real_, b * a.imag_}; }
template <typename T> __host__ __device__ complex<T> operator+(complex<T> a, complex<T> b) { return a += b; }
template <typename T> __host__ __device__ complex<T> conj(complex<T> a) { return {a.real_, -a.imag_}; }
}
