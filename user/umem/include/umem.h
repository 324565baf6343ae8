/* libumem's interface beside malloc. Link with -lumem. */
#ifndef UMEM_H
#define UMEM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UMEM_DEFAULT 0x0000 /* may return NULL */
#define UMEM_NOFAIL 0x0100  /* calls the callback instead, or ends the program */

#define UMEM_CALLBACK_RETRY 0
#define UMEM_CALLBACK_EXIT(status) (0x100 | ((status) & 0xff))

typedef struct umem_cache umem_cache_t;
typedef int umem_constructor_t(void *object, void *context, int flags);
typedef void umem_destructor_t(void *object, void *context);
typedef void umem_reclaim_t(void *context);
typedef int umem_nofail_callback_t(void);

void *umem_alloc(size_t size, int flags);
void *umem_zalloc(size_t size, int flags);
void umem_free(void *memory, size_t size);
void umem_nofail_callback(umem_nofail_callback_t *callback);

/* A constructor returns 0; it must not use its own cache. `source` is NULL. */
umem_cache_t *umem_cache_create(char *name, size_t size, size_t align,
				umem_constructor_t *constructor,
				umem_destructor_t *destructor,
				umem_reclaim_t *reclaim, void *context,
				void *source, int flags);
void *umem_cache_alloc(umem_cache_t *cache, int flags);
void umem_cache_free(umem_cache_t *cache, void *object);
void umem_cache_destroy(umem_cache_t *cache);

#ifdef __cplusplus
}
#endif

#endif
