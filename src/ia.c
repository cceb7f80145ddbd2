/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opens and closes interface adapters; translates IA handles and runs extensions of DAT 2.0. */

#include "dispatch.h"

#include "log.h"
#include "registry.h"

#include <stdarg.h>
#include <string.h>

/* Opens in progress: their providers may ask about handles that are not in the set yet. */
static atomic_int opening;

/* Whether @evd, as passed to ia_open(), is an EVD handle rather than a request for an EVD. */
static bool is_evd_handle(DAT_EVD_HANDLE evd)
{
	return evd != DAT_HANDLE_NULL && evd != DAT_EVD_ASYNC_EXISTS && evd != DAT_EVD_OUT_OF_SCOPE;
}

/* Opens the IA, and adds it and an asynchronous EVD created with it. */
static DAT_RETURN ia_open(const DAT_PROVIDER *provider, const DAT_NAME_PTR name, DAT_COUNT qlen,
			  DAT_EVD_HANDLE *async_evd, DAT_IA_HANDLE *ia_handle)
{
	struct dreg_handle obj = { .provider = provider, .kind = DAT_HANDLE_TYPE_IA };
#if DAT_VERSION_MAJOR >= 2
	DAT_IA_ATTR attr = { .extension_supported = DAT_EXTENSION_NONE };
#endif
	DAT_EVD_HANDLE given = *async_evd;
	DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
	DAT_RETURN ret;
	int err;

	if (is_evd_handle(given))
		CHECK_ARG(provider, EVD, given, EVD_ASYNC);
	NEEDS(provider, ia_open_func);
	ret = provider->ia_open_func(name, qlen, async_evd, &ia);
	if (ret != DAT_SUCCESS)
		return ret;
	obj.owner = ia;
#if DAT_VERSION_MAJOR >= 2
	/* queried once per IA, because dat_extension_op() is on the data path */
	if (provider->ia_query_func && provider->handle_extendedop_func &&
	    !provider->ia_query_func(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL) &&
	    attr.extension_supported != DAT_EXTENSION_NONE)
		obj.flags = DREG_EXTENSIONS;
#endif
	err = dreg_handle_add(ia, &obj);
	obj.kind = DAT_HANDLE_TYPE_EVD;
	if (!err && given == DAT_HANDLE_NULL && is_evd_handle(*async_evd))
		err = dreg_handle_add(*async_evd, &obj);
	if (err) {
		dreg_handle_drop_owned(ia, UINT64_MAX);
		if (provider->ia_close_func)
			provider->ia_close_func(ia, DAT_CLOSE_ABRUPT_FLAG);
		*async_evd = given;
		return DREG_NO_MEMORY;
	}
	*ia_handle = ia;
	return DAT_SUCCESS;
}

DAT_RETURN dat_ia_openv(const DAT_NAME_PTR provider, DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd,
			DAT_IA_HANDLE *ia_handle, DAT_UINT32 major, DAT_UINT32 minor,
			DAT_BOOLEAN threadsafe)
{
	const struct dreg_request request = {
		.name = provider, .major = major, .minor = minor, .threadsafe = threadsafe,
	};
	const char *origin;
	struct dreg_use *use;
	DAT_RETURN ret;

	if (!provider || strnlen(provider, DAT_NAME_MAX_LENGTH) == DAT_NAME_MAX_LENGTH)
		return DREG_BAD_ARG(1);
	if (!async_evd)
		return DREG_BAD_ARG(3);
	if (!ia_handle)
		return DREG_BAD_HANDLE(IA);

	ret = dreg_use_get(&request, &use);
	if (ret != DAT_SUCCESS) {
		dreg_log(DREG_LOG_GENERIC, "no provider for %s u%u.%u%s: 0x%x", provider,
			 request.major, request.minor,
			 request.threadsafe ? " threadsafe" : "", ret);
		return ret;
	}
	atomic_fetch_add(&opening, 1);
	ret = ia_open(dreg_use_provider(use), provider, qlen, async_evd, ia_handle);
	atomic_fetch_sub(&opening, 1);
	if (ret == DAT_SUCCESS) {
		dreg_use_attach(use, *ia_handle);
	} else {
		/* without a subtype the provider refused the entry; its log lacks the file */
		origin = dreg_use_origin(use);
		if (origin && DAT_GET_TYPE(ret) == DAT_INVALID_PARAMETER && !DAT_GET_SUBTYPE(ret))
			dreg_log(DREG_LOG_ERROR, "%s: the provider refused the parameters of %s",
				 origin, provider);
		dreg_use_put(use);
	}
	dreg_log(DREG_LOG_CONSUMER_API, "open %s: 0x%x", provider, ret);
	return ret;
}

/* Adds an asynchronous EVD that is shared with another IA: its creation was not seen. */
DAT_RETURN dat_ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE *async_evd,
			DAT_IA_ATTR_MASK ia_mask, DAT_IA_ATTR *ia_attr,
			DAT_PROVIDER_ATTR_MASK provider_mask, DAT_PROVIDER_ATTR *provider_attr)
{
	struct dreg_handle known;
	DAT_RETURN ret;

	LOOK_UP(ia, IA, ia_handle);
	NEEDS(ia.provider, ia_query_func);
	ret = ia.provider->ia_query_func(ia_handle, async_evd, ia_mask, ia_attr,
					 provider_mask, provider_attr);
	if (ret != DAT_SUCCESS || !async_evd || !is_evd_handle(*async_evd) ||
	    dreg_handle_live(*async_evd, DAT_HANDLE_TYPE_EVD, &known))
		return ret;
	ia.kind = DAT_HANDLE_TYPE_EVD;
	return dreg_handle_add(*async_evd, &ia) ? DREG_NO_MEMORY : DAT_SUCCESS;
}

/*
 * Ends a call that may have closed @ia, and returns its result. Before the call @newest was the
 * serial, and @use was detached, so that no other thread asks the provider about a closing IA.
 */
static DAT_RETURN ia_end(DAT_IA_HANDLE ia, uint64_t newest, struct dreg_use *use, DAT_RETURN ret)
{
	if (ret == DAT_SUCCESS)
		dreg_handle_drop_owned(ia, newest);
	if (use && ret == DAT_SUCCESS)
		dreg_use_put(use);
	else if (use)
		dreg_use_attach(use, ia);
	return ret;
}

DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS close_flags)
{
	struct dreg_use *use;
	uint64_t newest;
	DAT_RETURN ret;

	LOOK_UP(ia, IA, ia_handle);
	NEEDS(ia.provider, ia_close_func);
	newest = dreg_handle_serial();
	use = dreg_use_detach(ia_handle);
	ret = ia_end(ia_handle, newest, use, ia.provider->ia_close_func(ia_handle, close_flags));
	dreg_log(DREG_LOG_CONSUMER_API, "close: 0x%x", ret);
	return ret;
}

#if DAT_VERSION_MAJOR >= 2
/* The public IA handle is the provider's pointer. A provider may call this within its open. */
DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE *ia_handle_p)
{
	struct dreg_handle ia;

	if (!ia_handle_p || handle == DAT_HANDLE_NULL ||
	    (!dreg_handle_live(handle, DAT_HANDLE_TYPE_IA, &ia) && !atomic_load(&opening)))
		return DREG_BAD_HANDLE(IA);
	*ia_handle_p = handle;
	return DAT_SUCCESS;
}

/*
 * An operation that opens an IA has no handle to route by: its first arguments are the name of the
 * IA and the address for its handle. As in OFED's registry, the provider gets the name in place of
 * the handle, and the arguments after the name.
 */
static DAT_RETURN extension_open(DAT_EXTENDED_OP op, va_list *args)
{
	struct dreg_request request = { .major = DAT_VERSION_MAJOR, .minor = DAT_VERSION_MINOR };
	const DAT_PROVIDER *provider;
	DAT_HANDLE *ia_handle;
	struct dreg_use *use;
	va_list copy;
	DAT_RETURN ret;

	request.name = va_arg(*args, char *);
	va_copy(copy, *args);
	ia_handle = va_arg(copy, DAT_HANDLE *);
	va_end(copy);
	if (!request.name || strnlen(request.name, DAT_NAME_MAX_LENGTH) == DAT_NAME_MAX_LENGTH)
		return DREG_BAD_ARG(3);
	if (!ia_handle)
		return DREG_BAD_ARG(4);

	ret = dreg_use_get(&request, &use);
	if (ret != DAT_SUCCESS)
		return ret;
	provider = dreg_use_provider(use);
	atomic_fetch_add(&opening, 1);
	ret = provider->handle_extendedop_func ?
		provider->handle_extendedop_func((DAT_HANDLE)(uintptr_t)request.name, op, *args) :
		DREG_NOT_IMPLEMENTED;
	if (ret == DAT_SUCCESS)
		ret = dreg_handle_add(*ia_handle, &(struct dreg_handle){
			.provider = provider,
			.owner = *ia_handle,
			.kind = DAT_HANDLE_TYPE_IA,
			.flags = DREG_EXTENSIONS,
		}) ? DREG_NO_MEMORY : DAT_SUCCESS;
	atomic_fetch_sub(&opening, 1);
	if (ret == DAT_SUCCESS)
		dreg_use_attach(use, *ia_handle);
	else
		dreg_use_put(use);
	return ret;
}

DAT_RETURN dat_extension_op(DAT_HANDLE handle, DAT_EXTENDED_OP operation, ...)
{
	struct dreg_use *use = NULL;
	uint64_t newest;
	struct dreg_handle obj;
	DAT_RETURN ret;
	va_list args;
	bool closes;

	va_start(args, operation);
	if (handle == DAT_HANDLE_NULL && operation & DAT_OPEN_EXTENSION_BASE) {
		ret = extension_open(operation, &args);
	} else if (!dreg_handle_find(handle, &obj)) {
		ret = DREG_BAD_ANY_HANDLE;
	} else if (!(obj.flags & DREG_EXTENSIONS)) {
		ret = DREG_NOT_IMPLEMENTED;
	} else {
		closes = obj.kind == DAT_HANDLE_TYPE_IA && operation & DAT_CLOSE_EXTENSION_BASE;
		newest = closes ? dreg_handle_serial() : 0;
		if (closes)
			use = dreg_use_detach(handle);
		ret = obj.provider->handle_extendedop_func(handle, operation, args);
		if (closes)
			ret = ia_end(handle, newest, use, ret);
	}
	va_end(args);
	return ret;
}
#endif
