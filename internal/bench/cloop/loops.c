//go:build cbench

// Each loop is one pass over memory. Products and sums stay apart (no fused multiply-add), so that the numbers are, bit for
// bit, those of the Go loops.
#pragma GCC optimize("fp-contract=off")

#include "loops.h"

// As <math.h> declares them, the roots may set errno, so gcc -O3 leaves a loop with one scalar, ten times slower. cgo refuses
// -fno-math-errno in a package, and gcc does not heed it in a pragma; declared const, the roots are vectorised.
float sqrtf(float) __attribute__((const));
double sqrt(double) __attribute__((const));

#define ADAM(NAME, T, SQRT)                                                                             \
	void NAME(T *restrict w, T *restrict m, T *restrict v, const T *restrict g, size_t n, const T *k) { \
		T b1 = k[0], a1 = k[1], b2 = k[2], a2 = k[3], c2 = k[4], eps = k[5], lr = k[6];                 \
		for (size_t i = 0; i < n; i++) {                                                                \
			T x = g[i];                                                                                 \
			T mi = m[i] * b1 + x * a1;                                                                  \
			T vi = v[i] * b2 + x * x * a2;                                                              \
			m[i] = mi;                                                                                  \
			v[i] = vi;                                                                                  \
			w[i] -= lr * mi / (SQRT(vi * c2) + eps);                                                    \
		}                                                                                               \
	}

#define MOMENTUM(NAME)                                                                                   \
	void NAME(float *restrict w, float *restrict m, const float *restrict g, size_t n, const float *k) { \
		float mu = k[0], lr = k[1];                                                                      \
		for (size_t i = 0; i < n; i++) {                                                                 \
			float mi = m[i] * mu + g[i];                                                                 \
			m[i] = mi;                                                                                   \
			w[i] -= mi * lr;                                                                             \
		}                                                                                                \
	}

#define DEFINE(SUFFIX, TARGET)                \
	TARGET ADAM(adam32##SUFFIX, float, sqrtf) \
	TARGET ADAM(adam64##SUFFIX, double, sqrt) \
	TARGET MOMENTUM(momentum32##SUFFIX)

LOOPS(DEFINE)
