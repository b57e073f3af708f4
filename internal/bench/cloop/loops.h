//go:build cbench

#ifndef LOOPS_H
#define LOOPS_H

#include <stddef.h>

void adam32(float *w, float *m, float *v, const float *g, size_t n, const float *k);
void adam64(double *w, double *m, double *v, const double *g, size_t n, const double *k);
void momentum32(float *w, float *m, const float *g, size_t n, const float *k);

#endif
