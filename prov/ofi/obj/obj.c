/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What all DAT objects have in common: life, consumer context, type. */

#include "obj/obj.h"

#include "obj/ia.h"
#include "obj/caps.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* More than any call of the fabric opens, so that it is not fooled by what a failed one gave back. */
#define DESCRIPTORS 16

/* Libfabric makes a lack of descriptors an EIO (tcp of 1.17), or a fabric that is not there. */
static bool descriptors_are_short(void)
{
	int fd[DESCRIPTORS], n = 0;
	bool few;

	while (n < DESCRIPTORS && (fd[n] = open("/", O_PATH | O_CLOEXEC)) >= 0)
		n++;
	few = n < DESCRIPTORS && (errno == EMFILE || errno == ENFILE);
	while (n--)
		close(fd[n]);
	return few;
}

static DAT_RETURN ret_of_failure(int err)
{
	if (descriptors_are_short())
		return DOFI_NO_RESOURCE(DEVICE);
	if (err == ENODATA)
		return DOFI_RET(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	return DOFI_RET(DAT_INTERNAL_ERROR, 0);
}

DAT_RETURN dofi_ret(int err)
{
	switch (err < 0 ? -err : err) {
	case 0:
		return DAT_SUCCESS;
	case ENOMEM:
	case ENOSPC:	/* in /dev/shm */
		return DOFI_NO_RESOURCE(MEMORY);
	case EMFILE:
	case ENFILE:
	case EAGAIN:	/* a thread too many */
	case EACCES:	/* these and the next: /dev/shm cannot be written, or is not there */
	case ENOENT:
	case EPERM:
	case EROFS:
		return DOFI_NO_RESOURCE(DEVICE);
	case EINVAL:
		return DOFI_RET(DAT_INVALID_PARAMETER, 0);
	default:
		return ret_of_failure(err < 0 ? -err : err);
	}
}

DAT_RETURN dofi_ret_short(int err)
{
	DAT_RETURN ret = dofi_ret(err);

	return DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES ? ret : DOFI_NO_RESOURCE(MEMORY);
}

static struct dofi_pool *const pools[] = {
	&dofi_ep_pool, &dofi_srq_pool, &dofi_evd_pool, &dofi_lmr_pool, &dofi_pz_pool,
	&dofi_cr_pool, &dofi_psp_pool, &dofi_rsp_pool, &dofi_rmr_pool, &dofi_cno_pool, &dofi_ia_pool,
#if DAT_VERSION_MAJOR >= 2
	&dofi_csp_pool,
#endif
};

struct dofi_obj *dofi_obj_any(DAT_HANDLE handle)
{
	struct dofi_obj *obj = handle;
	size_t i;

	for (i = 0; i < sizeof(pools) / sizeof(pools[0]); i++)
		if (dofi_pool_owns(pools[i], obj))
			return dofi_obj_kind(obj) ? obj : NULL;
	return NULL;
}

/* Counts a child in unless the IA has as many as its attributes promise. */
static bool count_in(struct dofi_ia *ia, DAT_HANDLE_TYPE type)
{
	DAT_COUNT *n = &ia->n_children[DOFI_KIND(type)];
	bool room;

	dofi_mutex_lock(&ia->lock);
	room = *n < dofi_caps_max_objects(ia, type);
	if (room)
		++*n;
	dofi_mutex_unlock(&ia->lock);
	return room;
}

static void count_out(struct dofi_ia *ia, DAT_HANDLE_TYPE type)
{
	dofi_mutex_lock(&ia->lock);
	--ia->n_children[DOFI_KIND(type)];
	dofi_mutex_unlock(&ia->lock);
}

void *dofi_obj_new(struct dofi_pool *pool, DAT_HANDLE_TYPE type, struct dofi_ia *ia,
		   void (*destroy)(struct dofi_obj *))
{
	struct dofi_obj *obj;

	if (!count_in(ia, type))
		return NULL;
	obj = dofi_pool_get(pool);
	if (!obj) {
		count_out(ia, type);
		return NULL;
	}
	obj->provider = ia->obj.provider;
	obj->ia = ia;
	obj->context = (DAT_CONTEXT){ .as_64 = 0 };
	obj->destroy = destroy;
	atomic_store(&obj->users, 0);
	atomic_store(&obj->provided, false);
	return obj;
}

void dofi_obj_publish(struct dofi_obj *obj, DAT_HANDLE_TYPE type)
{
	struct dofi_ia *ia = obj->ia;

	dofi_mutex_lock(&ia->lock);
	TAILQ_INSERT_TAIL(&ia->children[DOFI_KIND(type)], obj, sibling);
	ia->made[DOFI_KIND(type)]++;
	dofi_mutex_unlock(&ia->lock);
	dofi_pool_tag_set(obj, DOFI_KIND(type));
}

int dofi_obj_claim(struct dofi_obj *obj)
{
	return (int)dofi_pool_tag_set(obj, 0);
}

void dofi_obj_unlink(struct dofi_obj *obj, int kind)
{
	struct dofi_ia *ia = obj->ia;

	dofi_mutex_lock(&ia->lock);
	TAILQ_REMOVE(&ia->children[kind], obj, sibling);
	ia->freed[kind]++;
	dofi_mutex_unlock(&ia->lock);
}

int dofi_obj_retire(struct dofi_obj *obj)
{
	int kind = dofi_obj_claim(obj);

	if (kind)
		dofi_obj_unlink(obj, kind);
	return kind;
}

void dofi_obj_free(struct dofi_pool *pool, DAT_HANDLE_TYPE type, struct dofi_obj *obj)
{
	if (obj->ia->last_words)
		obj->ia->last_words(obj, type);
	count_out(obj->ia, type);
	dofi_pool_put(pool, obj);
}

DAT_RETURN dofi_set_consumer_context(DAT_HANDLE handle, DAT_CONTEXT context)
{
	struct dofi_obj *obj = dofi_obj_any(handle);

	if (!obj)
		return DOFI_RET(DAT_INVALID_HANDLE, 0);
	obj->context = context;
	return DAT_SUCCESS;
}

DAT_RETURN dofi_get_consumer_context(DAT_HANDLE handle, DAT_CONTEXT *context)
{
	struct dofi_obj *obj = dofi_obj_any(handle);

	if (!obj)
		return DOFI_RET(DAT_INVALID_HANDLE, 0);
	if (!context)
		return DOFI_BAD_ARG(2);
	*context = obj->context;
	return DAT_SUCCESS;
}

DAT_RETURN dofi_get_handle_type(DAT_HANDLE handle, DAT_HANDLE_TYPE *type)
{
	struct dofi_obj *obj = dofi_obj_any(handle);
	int kind = obj ? dofi_obj_kind(obj) : 0;

	if (!kind)
		return DOFI_RET(DAT_INVALID_HANDLE, 0);
	if (!type)
		return DOFI_BAD_ARG(2);
	*type = (DAT_HANDLE_TYPE)(kind - 1);
	return DAT_SUCCESS;
}
