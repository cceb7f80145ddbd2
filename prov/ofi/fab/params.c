/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ia_params of a dat.conf entry, which select a fabric, and the lookup of a host name in them. */

#include "fab/params.h"

#include "base/clock.h"
#include "base/cond.h"
#include "loop/progress.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char blank[] = " \t";

static int param_word(struct dofi_params *p, const char *word, size_t len,
		      char *why, size_t why_size)
{
	static const struct {
		const char *key;
		size_t offset;
	} slots[] = {
		{ "provider", offsetof(struct dofi_params, provider) },
		{ "domain", offsetof(struct dofi_params, domain) },
		{ "address", offsetof(struct dofi_params, address) },
		{ "endpoint", offsetof(struct dofi_params, endpoint) },
		{ "strict", offsetof(struct dofi_params, strict) },
	};
	const char *eq = memchr(word, '=', len);
	const int key_len = eq ? (int)(eq - word) : 0;
	char *slot = NULL;
	size_t value_len, i;

	if (!key_len) {
		snprintf(why, why_size, "\"%.*s\" is neither key=value nor a name with a port",
			 (int)len, word);
		return -EINVAL;
	}
	for (i = 0; i < sizeof(slots) / sizeof(slots[0]); i++)
		if (strlen(slots[i].key) == (size_t)key_len &&
		    !strncmp(slots[i].key, word, key_len))
			slot = (char *)p + slots[i].offset;
	if (!slot) {
		snprintf(why, why_size, "unknown key \"%.*s\" (known: provider, domain, address, "
			 "endpoint, strict)", key_len, word);
		return -EINVAL;
	}
	value_len = len - key_len - 1;
	if (!value_len || value_len >= sizeof(p->provider)) {
		snprintf(why, why_size, "the value of \"%.*s\" has %zu characters, not 1 to %zu",
			 key_len, word, value_len, sizeof(p->provider) - 1);
		return -EINVAL;
	}
	memcpy(slot, eq + 1, value_len);
	slot[value_len] = 0;
	if (slot == p->address && value_len > 2 && slot[0] == '[' && slot[value_len - 1] == ']') {
		slot[value_len - 1] = 0;
		memmove(slot, slot + 1, value_len - 1);
	}
	if (slot == p->endpoint && strcmp(slot, "msg") && strcmp(slot, "rdm")) {
		snprintf(why, why_size, "endpoint=%s is neither msg nor rdm", slot);
		return -EINVAL;
	}
	if (slot == p->strict && strcmp(slot, "0") && strcmp(slot, "1")) {
		snprintf(why, why_size, "strict=%s is neither 0 nor 1", slot);
		return -EINVAL;
	}
	return 0;
}

#define MOST_PORT 255	/* ports have 8 bits */

int dofi_params_parse(const char *text, struct dofi_params *params, char *why, size_t why_size)
{
	const char *port, *rest;
	size_t len, port_len;
	int ret = 0;

	memset(params, 0, sizeof(*params));
	if (!text)
		return 0;
	text += strspn(text, blank);
	len = strcspn(text, blank);
	port = text + len + strspn(text + len, blank);
	port_len = strspn(port, "0123456789");
	if (!port_len || memchr(text, '=', len) ||
	    (port[port_len] && !strchr(blank, port[port_len]))) {
		for (; *text && !ret; text += strspn(text, blank)) {
			len = strcspn(text, blank);
			ret = param_word(params, text, len, why, why_size);
			text += len;
		}
		return ret;
	}
	/* OFED's form */
	rest = port + port_len + strspn(port + port_len, blank);
	if (*rest) {
		snprintf(why, why_size, "\"%s\" follows the name and port", rest);
		return -EINVAL;
	}
	if (len >= sizeof(params->name) || memchr(text, '/', len)) {
		snprintf(why, why_size, "\"%.*s\" is not the name of a device or interface",
			 (int)len, text);
		return -EINVAL;
	}
	if (strtoul(port, NULL, 10) > MOST_PORT) {
		snprintf(why, why_size, "port %.*s of \"%.*s\" is above %d", (int)port_len, port,
			 (int)len, text, MOST_PORT);
		return -EINVAL;
	}
	memcpy(params->name, text, len);
	params->port = strtoul(port, NULL, 10);
	return 0;
}

/* The addresses of a host name */

struct lookup {
	_Atomic int users;		/* the caller and the thread: the last one frees it */
	char *name;
	struct dofi_mutex lock;		/* the fields below */
	struct dofi_cond answered;
	struct addrinfo *list;
	bool done;
};

static void lookup_put(struct lookup *l)
{
	if (atomic_fetch_sub(&l->users, 1) > 1)
		return;
	if (l->list)
		freeaddrinfo(l->list);
	free(l->name);
	free(l);
}

static void *lookup_run(void *arg)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_DGRAM };
	struct addrinfo *list = NULL;
	struct lookup *l = arg;

	if (getaddrinfo(l->name, NULL, &hints, &list))
		list = NULL;
	dofi_mutex_lock(&l->lock);
	l->list = list;
	l->done = true;
	dofi_cond_broadcast(&l->answered);
	dofi_mutex_unlock(&l->lock);
	lookup_put(l);
	return NULL;
}

int dofi_resolve(const char *name, int64_t limit_ns, struct addrinfo **list)
{
	const int64_t deadline = dofi_now() + limit_ns;
	struct lookup *l = calloc(1, sizeof(*l));
	pthread_t thread;
	bool done;
	int ret = -ENOMEM;

	if (!l)
		return ret;
	atomic_init(&l->users, 2);
	l->name = strdup(name);
	dofi_mutex_init(&l->lock);
	dofi_cond_init(&l->answered);
	if (l->name)
		ret = dofi_thread_start(&thread, lookup_run, l);
	if (ret) {
		lookup_put(l);	/* for the thread */
		goto put;
	}
	dofi_mutex_lock(&l->lock);
	while (!l->done && dofi_cond_wait(&l->answered, &l->lock, deadline) != -ETIMEDOUT)
		;
	done = l->done;
	dofi_mutex_unlock(&l->lock);
	if (done) {
		pthread_join(thread, NULL);
		*list = l->list;
		l->list = NULL;
		ret = *list ? 0 : -ENOENT;
	} else {
		pthread_detach(thread);
		ret = -ETIMEDOUT;
	}
put:
	lookup_put(l);
	return ret;
}
