/* Every function of the malloc family, from many threads and across fork. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                       \
	do {                                                                   \
		if (!(condition)) {                                            \
			printf("line %d: %s\n", __LINE__, #condition);         \
			exit(1);                                               \
		}                                                              \
	} while (0)

/* Looked up at run time, so that the compiler knows nothing about the sizes. */
static volatile size_t huge = SIZE_MAX;

static uint32_t next(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	return *state ^= *state << 5;
}

static void aligned(void)
{
	for (size_t align = 8; align <= 16 << 20; align *= 2) {
		for (size_t size = 1; size < 3 << 20; size = size * 5 + 3) {
			void *memory;
			CHECK(posix_memalign(&memory, align, size) == 0);
			CHECK((uintptr_t)memory % align == 0);
			CHECK(malloc_usable_size(memory) >= size);
			memset(memory, 0xa5, size);
			free(memory);
		}
	}
	void *memory;
	CHECK(posix_memalign(&memory, 24, 8) == EINVAL);
	CHECK(aligned_alloc(24, 8) == NULL && errno == EINVAL);
	free(memory = valloc(10));
	CHECK((uintptr_t)memory % 4096 == 0);
	free(memory = memalign(64, 100));
	CHECK((uintptr_t)memory % 64 == 0);
	free(pvalloc(1));
}

static void limits(void)
{
	CHECK(calloc(huge, 2) == NULL && errno == ENOMEM);
	errno = 0;
	CHECK(malloc(huge) == NULL && errno == ENOMEM);
	CHECK(reallocarray(NULL, huge, 3) == NULL && errno == ENOMEM);
	CHECK(realloc(NULL, huge - 5000) == NULL);
	void *empty = malloc(0);
	CHECK(empty != NULL);
	free(empty);
	free(NULL);
	CHECK(malloc_usable_size(NULL) == 0);
}

static void resized(void)
{
	uint32_t state = 5;
	unsigned char *memory = NULL;
	size_t size = 0;
	for (int i = 0; i < 3000; i++) {
		size_t wanted = 1 + next(&state) % (i % 10 == 0 ? 6 << 20 : 70000);
		memory = realloc(memory, wanted);
		CHECK(memory != NULL);
		size_t kept = size < wanted ? size : wanted;
		for (size_t at = 0; at < kept; at += 997)
			CHECK(memory[at] == (unsigned char)(at / 997));
		for (size_t at = 0; at < wanted; at += 997)
			memory[at] = (unsigned char)(at / 997);
		size = wanted;
	}
	free(memory);
}

static void zeroed(void)
{
	for (int round = 0; round < 3; round++) {
		for (size_t size = 1; size < 4 << 20; size = size * 3 + 1) {
			unsigned char *memory = calloc(1, size);
			for (size_t at = 0; at < size; at++)
				CHECK(memory[at] == 0);
			memset(memory, 0xff, size);
			free(memory);
		}
	}
}

enum { THREADS = 8, SHARED = 4096 };
static void *shared[SHARED];

/* Threads exchange objects through `shared`, so most frees are of another's memory. */
static void *exchange(void *seed)
{
	uint32_t state = (uintptr_t)seed;
	for (int i = 0; i < 60000; i++) {
		uint32_t random = next(&state);
		size_t size = 16 + (random >> 12) % (random % 64 == 0 ? 200000 : 1200);
		size_t *memory = malloc(size);
		CHECK(memory != NULL);
		memory[0] = size;
		((unsigned char *)memory)[size - 1] = (unsigned char)size;
		size_t *old = __atomic_exchange_n(&shared[random % SHARED], memory, __ATOMIC_ACQ_REL);
		if (old) {
			size = old[0];
			CHECK(size >= 16 && ((unsigned char *)old)[size - 1] ==
						    (size > 16 ? (unsigned char)size : ((unsigned char *)old)[15]));
			free(old);
		}
	}
	return NULL;
}

static void threads(void)
{
	pthread_t all[THREADS];
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&all[i], NULL, exchange, (void *)(i + 1)) == 0);
	/* Children of a process whose other threads allocate. */
	for (int i = 0; i < 10; i++) {
		pid_t child = fork();
		if (child == 0) {
			alarm(20);
			for (int j = 0; j < 20000; j++)
				free(malloc(j % 3000));
			_exit(7);
		}
		int status;
		CHECK(waitpid(child, &status, 0) == child);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(all[i], NULL);
	for (int i = 0; i < SHARED; i++)
		free(shared[i]);
}

static void *fill(void *nothing)
{
	void *held[3000];
	for (int i = 0; i < 3000; i++)
		held[i] = malloc(100);
	for (int i = 0; i < 3000; i++)
		free(held[i]);
	return nothing;
}

/* What a thread keeps for itself is there for the next one when it ends. */
static void generations(void)
{
	size_t after_first = 0;
	for (int i = 0; i < 200; i++) {
		pthread_t thread;
		CHECK(pthread_create(&thread, NULL, fill, NULL) == 0);
		pthread_join(thread, NULL);
		if (i == 0)
			after_first = mallinfo2().uordblks;
	}
	CHECK(mallinfo2().uordblks <= after_first + (256 << 10));
}

int main(void)
{
	limits();
	aligned();
	resized();
	zeroed();
	threads();
	generations();
	malloc_trim(0);
	CHECK(mallinfo2().uordblks < 1 << 20);
	printf("fine\n");
	return 0;
}
