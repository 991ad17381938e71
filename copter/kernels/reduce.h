/* The loops that have to run at memory speed: smallest reduced cost of a run of columns, by width of the costs. */
#ifndef COPTER_REDUCE_H
#define COPTER_REDUCE_H
#include <math.h>
#include <stddef.h>

static inline double copter_smallest(const double *restrict cost, const double *restrict priced_usage,
                                     double scale, double offset, ptrdiff_t begin, ptrdiff_t end)
{
    double best = INFINITY;
#pragma omp simd reduction(min : best)
    for (ptrdiff_t j = begin; j < end; ++j) {
        double reduced = scale * cost[j] + offset - priced_usage[j];
        best = reduced < best ? reduced : best;
    }
    return best;
}

/* Costs are widened before they are scaled, so that nothing but their storage is of single precision. */
static inline double copter_smallest_single(const float *restrict cost, const double *restrict priced_usage,
                                            double scale, double offset, ptrdiff_t begin, ptrdiff_t end)
{
    double best = INFINITY;
#pragma omp simd reduction(min : best)
    for (ptrdiff_t j = begin; j < end; ++j) {
        double reduced = scale * (double)cost[j] + offset - priced_usage[j];
        best = reduced < best ? reduced : best;
    }
    return best;
}

#endif
