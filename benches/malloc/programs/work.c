/*
 * One workload of malloc per run: work NAME [COUNT]
 *
 * Prints "NAME NANOSECONDS RESIDENT": the process's CPU time (that of a busy neighbour
 * does not count) per malloc and its free in nanoseconds, and the
 * resident kilobytes at the end, while what the workload keeps is still allocated.
 * The same program runs with each allocator (LD_PRELOAD), so its own cost is the same.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <sched.h>

/* Keeps the compiler from removing allocations that nobody looks at. */
static void use(void *memory) { __asm__ volatile("" : : "r"(memory) : "memory"); }

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

static uint32_t random_next(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	return *state ^= *state << 5;
}

static long resident_kb(void)
{
	long size, pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	if (!file || fscanf(file, "%ld %ld", &size, &pages) != 2)
		exit(1);
	fclose(file);
	return pages * 4;
}

/* malloc and free, back to back. */
static double pair(long count)
{
	double start = now();
	for (long i = 0; i < count; i++) {
		void *memory = malloc(64);
		use(memory);
		free(memory);
	}
	return (now() - start) / count;
}

/* A thousand mallocs, then a thousand frees. */
static double batch(long count)
{
	enum { BATCH = 1000 };
	static void *held[BATCH];
	double start = now();
	for (long i = 0; i < count / BATCH; i++) {
		for (int j = 0; j < BATCH; j++)
			held[j] = malloc(64);
		use(held);
		for (int j = 0; j < BATCH; j++)
			free(held[j]);
	}
	return (now() - start) / (count / BATCH * BATCH);
}

/* Sizes of 8 to 512 bytes in 4096 slots, one replaced at random each time. */
static double mixed(long count)
{
	enum { SLOTS = 4096 };
	static void *slots[SLOTS];
	uint32_t state = 12345;
	double start = now();
	for (long i = 0; i < count; i++) {
		uint32_t random = random_next(&state);
		void **slot = &slots[random % SLOTS];
		free(*slot);
		*slot = malloc(8 + (random >> 12) % 505);
		use(*slot);
	}
	return (now() - start) / count;
}

/* One thread allocates, another frees; they hand over through a ring. */
enum { RING = 1024 };
static struct {
	_Alignas(64) atomic_ulong head;
	_Alignas(64) atomic_ulong tail;
	_Alignas(64) void *slots[RING];
} ring;

static void *consume(void *count)
{
	for (unsigned long i = 0; i < (unsigned long)count; i++) {
		while (atomic_load_explicit(&ring.head, memory_order_acquire) == i)
			sched_yield();
		free(ring.slots[i % RING]);
		atomic_store_explicit(&ring.tail, i + 1, memory_order_release);
	}
	return NULL;
}

static double handover(long count)
{
	pthread_t consumer;
	double start = now();
	pthread_create(&consumer, NULL, consume, (void *)count);
	for (unsigned long i = 0; i < (unsigned long)count; i++) {
		char *memory = malloc(64);
		memory[0] = 1;
		while (i - atomic_load_explicit(&ring.tail, memory_order_acquire) == RING)
			sched_yield();
		ring.slots[i % RING] = memory;
		atomic_store_explicit(&ring.head, i + 1, memory_order_release);
	}
	pthread_join(consumer, NULL);
	return (now() - start) / count;
}

/*
 * As in larson: each thread replaces objects of 16 to 1024 bytes at random among its
 * slots, and hands all of them to a new thread when its turn is over.
 */
enum { WORKERS = 2, HELD = 20000, TURNS = 8 };
struct worker {
	uint32_t state;
	long count;
	int turns;
	void *slots[HELD];
};

static void *turn(void *argument)
{
	struct worker *worker = argument;
	for (long i = 0; i < worker->count / TURNS; i++) {
		uint32_t random = random_next(&worker->state);
		void **slot = &worker->slots[random % HELD];
		size_t size = 16 + (random >> 15) % 1009;
		free(*slot);
		*slot = malloc(size);
		memset(*slot, 1, size < 64 ? size : 64);
	}
	if (--worker->turns > 0) {
		pthread_t next;
		pthread_create(&next, NULL, turn, worker);
		pthread_join(next, NULL);
	}
	return NULL;
}

static double larson(long count)
{
	static struct worker workers[WORKERS];
	pthread_t threads[WORKERS];
	double start = now();
	for (int i = 0; i < WORKERS; i++) {
		workers[i].state = 7919 * (i + 1);
		workers[i].count = count / WORKERS;
		workers[i].turns = TURNS;
		pthread_create(&threads[i], NULL, turn, &workers[i]);
	}
	for (int i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	return (now() - start) / count;
}

/*
 * A program that grows, shrinks to a tenth and goes on: what stays resident is what
 * the allocator could not return.
 */
static double shrink(long count)
{
	void **held = malloc(count * sizeof *held);
	uint32_t state = 99;
	double start = now();
	for (long i = 0; i < count; i++) {
		size_t size = 16 + random_next(&state) % 497;
		held[i] = malloc(size);
		memset(held[i], 1, size);
	}
	for (long i = 0; i < count; i++) {
		if (random_next(&state) % 10 == 0)
			continue;
		free(held[i]);
		held[i] = NULL;
	}
	double spent = now() - start;
	for (int i = 0; i < 40; i++) {
		struct timespec pause = { 0, 50000000 };
		nanosleep(&pause, NULL);
		for (int j = 0; j < 2000; j++) {
			void *memory = malloc(16 + j % 500);
			use(memory);
			free(memory);
		}
	}
	return spent / count;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		double (*run)(long);
		long count;
	} works[] = {
		{ "pair", pair, 50000000 },   { "batch", batch, 30000000 },
		{ "mixed", mixed, 20000000 }, { "handover", handover, 4000000 },
		{ "larson", larson, 8000000 }, { "shrink", shrink, 500000 },
	};
	/* Resident pages are those that were touched, whatever the host's setting is. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	for (unsigned i = 0; argc > 1 && i < sizeof works / sizeof *works; i++) {
		if (strcmp(argv[1], works[i].name) != 0)
			continue;
		long count = argc > 2 ? atol(argv[2]) : works[i].count;
		double nanoseconds = works[i].run(count);
		printf("%s %.3f %ld\n", works[i].name, nanoseconds, resident_kb());
		return 0;
	}
	fprintf(stderr, "usage: work pair|batch|mixed|handover|larson|shrink [COUNT]\n");
	return 2;
}
