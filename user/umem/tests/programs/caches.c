/* Caches of constructed objects, and memory with a size. */
#include "../../include/umem.h"
#include <errno.h>
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

struct thing {
	int ready;
	void *buffer;
};

static int made, unmade, refusals;

static int make(void *object, void *context, int flags)
{
	struct thing *thing = object;
	(void)flags;
	if (refusals > 0) {
		refusals--;
		return -1;
	}
	thing->ready = *(int *)context;
	thing->buffer = malloc(100);
	made++;
	return 0;
}

static void unmake(void *object, void *context)
{
	struct thing *thing = object;
	CHECK(thing->ready == *(int *)context);
	free(thing->buffer);
	unmade++;
}

static int retries;

static int retry(void)
{
	return ++retries < 3 ? UMEM_CALLBACK_RETRY : UMEM_CALLBACK_EXIT(33);
}

int main(void)
{
	int context = 77;
	static struct thing *things[1000];
	umem_cache_t *cache = umem_cache_create("thing", sizeof(struct thing), 64,
						make, unmake, NULL, &context, NULL, 0);
	CHECK(cache != NULL);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 1000; i++) {
			things[i] = umem_cache_alloc(cache, UMEM_DEFAULT);
			CHECK(things[i]->ready == 77 && (uintptr_t)things[i] % 64 == 0);
		}
		for (int i = 0; i < 1000; i++)
			umem_cache_free(cache, things[i]);
	}
	struct thing *again = umem_cache_alloc(cache, UMEM_DEFAULT);
	int before = made;
	umem_cache_free(cache, again);
	CHECK(umem_cache_alloc(cache, UMEM_DEFAULT) == again && made == before);
	umem_cache_free(cache, again);
	umem_cache_destroy(cache);
	CHECK(made == unmade);

	cache = umem_cache_create("thing", sizeof(struct thing), 0, make, unmake, NULL,
				  &context, NULL, 0);
	refusals = 1;
	CHECK(umem_cache_alloc(cache, UMEM_DEFAULT) == NULL);
	refusals = 2;
	umem_nofail_callback(retry);
	CHECK(umem_cache_alloc(cache, UMEM_NOFAIL) != NULL && retries == 2);

	CHECK(umem_cache_create("bad", 8, 24, NULL, NULL, NULL, NULL, NULL, 0) == NULL);
	CHECK(errno == EINVAL);

	char *memory = umem_zalloc(5000, UMEM_DEFAULT);
	for (int i = 0; i < 5000; i++)
		CHECK(memory[i] == 0);
	umem_free(memory, 5000);
	CHECK(umem_alloc(SIZE_MAX / 2, UMEM_DEFAULT) == NULL);
	pid_t child = fork();
	if (child == 0) {
		retries = 3;
		umem_alloc(SIZE_MAX / 2, UMEM_NOFAIL);
		_exit(1);
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 33);
	printf("fine\n");
	return 0;
}
