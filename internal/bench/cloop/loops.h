//go:build cbench

#ifndef LOOPS_H
#define LOOPS_H

#include <stddef.h>

// Each loop is there twice: for this processor, and for AVX2.
#define LOOPS(DECLARE) \
	DECLARE(, )        \
	DECLARE(_avx2, AVX2)

// AVX2 keeps gcc from using the registers and instructions of AVX-512, which -march=native allows it. On other processors there
// is no difference.
#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2,no-avx512f")))
#else
#define AVX2
#endif

#define DECLARE(SUFFIX, TARGET)                                                                       \
	void adam32##SUFFIX(float *w, float *m, float *v, const float *g, size_t n, const float *k);      \
	void adam64##SUFFIX(double *w, double *m, double *v, const double *g, size_t n, const double *k); \
	void momentum32##SUFFIX(float *w, float *m, const float *g, size_t n, const float *k);

LOOPS(DECLARE)

#endif
