#ifndef RING_H
#define RING_H

#define RING_SIZE 64

struct ring {
	int cells[RING_SIZE];
	unsigned long head, tail;
};

int ring_put(struct ring *ring, int value);
int ring_take(struct ring *ring, int *value);

#endif
