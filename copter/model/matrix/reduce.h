/* The loops that have to run at memory speed: smallest reduced cost of a run of columns, by width of the costs.
 *
 * Costs are read once a pass, from many arrays of a few kilobytes: too short for the processor to read ahead by itself.
 * They are asked for two kilobytes ahead, and two chains of minima hide each other's latency. An address past the end
 * of the array is only a hint; nothing is read there. */
#ifndef COPTER_REDUCE_H
#define COPTER_REDUCE_H
#include <math.h>
#include <stddef.h>

enum {
    COPTER_RUN = 64,     /* columns between two looks ahead */
    COPTER_LINE = 64,    /* bytes of a cache line */
    COPTER_AHEAD = 2048, /* bytes that costs are asked for ahead */
};

static inline double copter_smallest(const double *restrict cost, const double *restrict priced_usage,
                                     double scale, double offset, double most, ptrdiff_t begin,
                                     ptrdiff_t end)
{
    double best = INFINITY, other = INFINITY;
    ptrdiff_t j = begin;
    for (; j + COPTER_RUN <= end; j += COPTER_RUN) {
        for (ptrdiff_t line = 0; line < COPTER_RUN; line += COPTER_LINE / (ptrdiff_t)sizeof(*cost))
            __builtin_prefetch(cost + j + line + COPTER_AHEAD / (ptrdiff_t)sizeof(*cost));
#pragma omp simd reduction(min : best, other)
        for (ptrdiff_t k = j; k < j + COPTER_RUN / 2; ++k) {
            double one = scale * cost[k] + offset;
            double two = scale * cost[k + COPTER_RUN / 2] + offset;
            one = (one < most ? one : most) - priced_usage[k];
            two = (two < most ? two : most) - priced_usage[k + COPTER_RUN / 2];
            best = one < best ? one : best;
            other = two < other ? two : other;
        }
    }
    for (; j < end; ++j) {
        double reduced = scale * cost[j] + offset;
        reduced = (reduced < most ? reduced : most) - priced_usage[j];
        best = reduced < best ? reduced : best;
    }
    return other < best ? other : best;
}

/* Costs are widened before they are scaled, so that nothing but their storage is of single precision. */
static inline double copter_smallest_single(const float *restrict cost, const double *restrict priced_usage,
                                            double scale, double offset, double most, ptrdiff_t begin,
                                            ptrdiff_t end)
{
    double best = INFINITY, other = INFINITY;
    ptrdiff_t j = begin;
    for (; j + COPTER_RUN <= end; j += COPTER_RUN) {
        for (ptrdiff_t line = 0; line < COPTER_RUN; line += COPTER_LINE / (ptrdiff_t)sizeof(*cost))
            __builtin_prefetch(cost + j + line + COPTER_AHEAD / (ptrdiff_t)sizeof(*cost));
#pragma omp simd reduction(min : best, other)
        for (ptrdiff_t k = j; k < j + COPTER_RUN / 2; ++k) {
            double one = scale * (double)cost[k] + offset;
            double two = scale * (double)cost[k + COPTER_RUN / 2] + offset;
            one = (one < most ? one : most) - priced_usage[k];
            two = (two < most ? two : most) - priced_usage[k + COPTER_RUN / 2];
            best = one < best ? one : best;
            other = two < other ? two : other;
        }
    }
    for (; j < end; ++j) {
        double reduced = scale * (double)cost[j] + offset;
        reduced = (reduced < most ? reduced : most) - priced_usage[j];
        best = reduced < best ? reduced : best;
    }
    return other < best ? other : best;
}

/* Usage at prices y of columns of one entry each; returns the largest size of a column's rounding, in half ulps. */
static inline double copter_priced(const double *restrict coefficient, const int *restrict row,
                                   const double *restrict y, double *restrict priced_usage, ptrdiff_t count)
{
    double largest = 0.0;
#pragma omp simd reduction(max : largest)
    for (ptrdiff_t j = 0; j < count; ++j) {
        double term = coefficient[j] * y[row[j]], size = 5.0 * fabs(term);
        priced_usage[j] = 0.0 + term;
        largest = size > largest ? size : largest;
    }
    return largest;
}

/* The same of single columns whose costs have been copied side by side. */
static inline double copter_smallest_listed(const double *restrict cost, const int *restrict column,
                                            const double *restrict priced_usage, double scale, double offset,
                                            double most, int single, ptrdiff_t count)
{
    double best = INFINITY;
    for (ptrdiff_t e = 0; e < count; ++e) {
        double reduced = scale * cost[e] + offset;
        reduced = (reduced < most ? reduced : most) - priced_usage[column[e]];
        reduced = column[e] == single ? INFINITY : reduced;
        best = reduced < best ? reduced : best;
    }
    return best;
}

#endif
