/* A ring of fixed size. */

#include <stddef.h>
#include "ring.h"

int ring_put(struct ring *ring, int value)
{
	size_t next = (ring->head + 1) % RING_SIZE;

	if (next == ring->tail)
		return -1;
	ring->cells[ring->head] = value;
	ring->head = next;
	return 0;
}

int ring_take(struct ring *ring, int *value)
{
	if (ring->head == ring->tail)
		return -1;
	*value = ring->cells[ring->tail];
	ring->tail = (ring->tail + 1) % RING_SIZE;
	return 0;
}

size_t ring_count(const struct ring *ring)
{
	return (ring->head + RING_SIZE - ring->tail) % RING_SIZE;
}
