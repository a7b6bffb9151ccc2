// SPDX-License-Identifier: MIT
/* The number of connections over time: see ramp.h. */
#include "ramp.h"

#include <math.h>

uint32_t ramp_at(const struct shape *shape, double elapsed_ns, double *ret_until_ns)
{
	const struct shape_segment *segment = shape->segments;
	const struct shape_segment *last = &segment[shape->count - 1];
	double levels, each_ns, index;

	while (segment < last && elapsed_ns >= segment[1].begin_ns)
		segment++;
	levels = fabs(segment->to - segment->from) + 1;
	each_ns = (double)segment->duration_ns / levels;
	index = floor(fmax(elapsed_ns - segment->begin_ns, 0) / each_ns);
	index = fmin(index, levels - 1);
	*ret_until_ns = segment->begin_ns + (index + 1) * each_ns;
	if (segment == last && index + 1 >= levels)
		*ret_until_ns = INFINITY;
	return (uint32_t)(segment->from + (segment->to < segment->from ? -index : index));
}

uint32_t ramp_most(const struct shape *shape)
{
	double most = 0;

	for (size_t i = 0; i < shape->count; i++)
		most = fmax(most, fmax(shape->segments[i].from, shape->segments[i].to));
	return (uint32_t)most;
}
