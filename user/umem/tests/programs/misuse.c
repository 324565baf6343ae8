/* Misuses that must end the program: misuse twice|quietly|between|thread|inside|foreign|span|overrun|underrun|late */
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *free_again(void *memory)
{
	/* Now this thread has a magazine for it. */
	free(malloc(100));
	free(memory);
	return 0;
}

int main(int argc, char **argv)
{
	char *memory = malloc(100);
	if (argc > 1 && strcmp(argv[1], "twice") == 0) {
		free(memory);
		free(memory);
	} else if (argc > 1 && strcmp(argv[1], "quietly") == 0) {
		free(memory);
		free(memory);
		return 0;
	} else if (argc > 1 && strcmp(argv[1], "between") == 0) {
		/* No unloading follows, and the last object is another one. */
		char *other = malloc(100);
		free(memory);
		free(other);
		free(memory);
		_exit(malloc(100) == malloc(100));
	} else if (argc > 1 && strcmp(argv[1], "thread") == 0) {
		/* The thread that frees it again never had it. */
		pthread_t thread;
		free(memory);
		pthread_create(&thread, 0, free_again, memory);
		pthread_join(thread, 0);
		_exit(0);
	} else if (argc > 1 && strcmp(argv[1], "inside") == 0) {
		free(memory + 16);
	} else if (argc > 1 && strcmp(argv[1], "span") == 0) {
		memory = malloc(100000);
		free(memory);
		free(memory);
	} else if (argc > 1 && strcmp(argv[1], "overrun") == 0) {
		((volatile char *)memory)[100] = 1;
		free(memory);
	} else if (argc > 1 && strcmp(argv[1], "underrun") == 0) {
		((volatile char *)memory)[-1] = 1;
		free(memory);
	} else if (argc > 1 && strcmp(argv[1], "late") == 0) {
		free(memory);
		((volatile char *)memory)[3] = 1;
	} else {
		free(&argc);
	}
	/* At the latest when the magazines are unloaded. */
	malloc_trim(0);
	return 0;
}
