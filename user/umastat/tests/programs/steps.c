/* Does what lines on standard input say, and answers each with a line.
 *
 *   fill BYTES COUNT ROUNDS   allocates COUNT objects and frees them, ROUNDS times
 *   hold BYTES COUNT          allocates and keeps
 *   spawn BYTES COUNT         a thread fills, and waits
 *   join                      that thread ends
 *   caches                    makes a cache "things" of 40 bytes with 3 objects in use, and
 *                             one that it destroys
 *   heap                      says whether malloc gives memory below the program's break
 *
 * With arguments: steps pairs THREADS COUNT: each thread mallocs 4 bytes and frees them.
 */
#define _DEFAULT_SOURCE
#include "../../../umem/include/umem.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t bytes, count, rounds;
static pthread_t thread;
static pthread_barrier_t barrier;
extern char end;

static void fill(void)
{
	void **held = malloc(count * sizeof(*held));
	for (size_t round = 0; round < rounds; round++) {
		for (size_t i = 0; i < count; i++)
			held[i] = malloc(bytes);
		for (size_t i = 0; i < count; i++)
			free(held[i]);
	}
	free(held);
}

static void *fill_and_wait(void *nothing)
{
	fill();
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return nothing;
}

static void spawn(void)
{
	rounds = 1;
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, fill_and_wait, NULL);
	pthread_barrier_wait(&barrier);
}

static void *pairs(void *nothing)
{
	for (size_t i = 0; i < count; i++)
		free(malloc(4));
	return nothing;
}

static void run_pairs(size_t threads)
{
	pthread_t all[64];
	for (size_t i = 0; i < threads && i < 64; i++)
		pthread_create(&all[i], NULL, pairs, NULL);
	for (size_t i = 0; i < threads && i < 64; i++)
		pthread_join(all[i], NULL);
}

static void make_caches(void)
{
	umem_cache_t *gone = umem_cache_create("gone", 24, 0, NULL, NULL, NULL, NULL, NULL, 0);
	umem_cache_free(gone, umem_cache_alloc(gone, UMEM_DEFAULT));
	umem_cache_t *things = umem_cache_create("things", 40, 0, NULL, NULL, NULL, NULL, NULL, 0);
	for (int i = 0; i < 3; i++)
		umem_cache_alloc(things, UMEM_DEFAULT);
	umem_cache_free(things, umem_cache_alloc(things, UMEM_DEFAULT));
	umem_cache_destroy(gone);
}

int main(int argc, char **argv)
{
	char line[100], word[20];
	if (argc == 4) {
		count = strtoul(argv[3], NULL, 10);
		run_pairs(strtoul(argv[2], NULL, 10));
		return 0;
	}
	while (fgets(line, sizeof(line), stdin)) {
		const char *answer = "done";
		if (sscanf(line, "%19s %zu %zu %zu", word, &bytes, &count, &rounds) < 1)
			return 1;
		if (strcmp(word, "fill") == 0) {
			fill();
		} else if (strcmp(word, "hold") == 0) {
			for (size_t i = 0; i < count; i++)
				*(volatile char *)malloc(bytes) = 1;
		} else if (strcmp(word, "spawn") == 0) {
			spawn();
		} else if (strcmp(word, "join") == 0) {
			pthread_barrier_wait(&barrier);
			pthread_join(thread, NULL);
		} else if (strcmp(word, "caches") == 0) {
			make_caches();
		} else if (strcmp(word, "heap") == 0) {
			char *memory = malloc(100);
			answer = memory > &end && memory < (char *)sbrk(0) ? "below" : "elsewhere";
		} else {
			return 1;
		}
		puts(answer);
		fflush(stdout);
	}
	return 0;
}
