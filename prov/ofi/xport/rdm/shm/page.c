/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A page of an IA in /dev/shm, and the pages of its peers. */

#include "xport/rdm/shm/page.h"

#include "base/log.h"
#include "base/mutex.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#define MAGIC 0x646174206f666920ull
#define VERSION 4
#define SCHEME "fi_shm://"		/* of libfabric's addresses */

static struct dofi_mutex lock;
static LIST_HEAD(, dofi_shm_peer) peers DOFI_GUARDED_BY(lock) = LIST_HEAD_INITIALIZER(peers);

/* getrandom() returns so few bytes together or not at all. */
static int random_get(void *buf, size_t len)
{
	return getrandom(buf, len, 0) == (ssize_t)len ? 0 : -EIO;
}

/*
 * Initializes the lock of the owner of @page, which has the name @name, for the process with page
 * number @self.
 */
static void robust_init(struct dofi_robust *robust, struct dofi_shm_page *page, const char *name,
		      uint64_t self)
{
	robust->guard = (struct dofi_cq_guard){
		.ops = &dofi_robust_guard_ops, .holder = &page->holder, .self = self,
		.sent = &page->sent,
	};
	strcpy(robust->name, name);
}

int dofi_shm_open(struct dofi_shm *shm)
{
	struct dofi_shm_page page = { .magic = MAGIC, .version = VERSION };
	struct dofi_shm made = { .page = NULL };
	int ret = random_get(page.cookie, sizeof(page.cookie));
	void *at;

	dofi_shm_files_reap();
	if (!ret)
		ret = dofi_shm_file_make(made.name, &at);
	if (ret < 0) {
		dofi_log(DOFI_WARN, DOFI_FAB, "no page in %s: %s", DOFI_SHM_FOLDER, strerror(-ret));
		return ret;
	}
	made.fd.fd = ret;
	made.owner = getpid();
	made.page = at;
	*made.page = page;
	made.lead = (struct dofi_lead_word){ .word = &made.page->asleep, .bit = DOFI_SHM_LEADER };
	robust_init(&made.robust, made.page, made.name, dofi_shm_file_number(made.name));
	*shm = made;
	dofi_fork_fd_add(&shm->fd);
	return 0;
}

void dofi_shm_close(struct dofi_shm *shm)
{
	if (!shm->page)
		return;
	if (shm->owner == getpid()) {
		dofi_shm_file_remove(shm->name);
		dofi_fork_fd_remove(&shm->fd);
		close(shm->fd.fd);
	}
	munmap(shm->page, DOFI_SHM_FILE_LEN);
	shm->page = NULL;
}

int dofi_shm_endpoint(struct dofi_shm *shm, char *address, size_t size)
{
	int len = snprintf(address, size, SCHEME "%s.%u", shm->name, shm->endpoints), ret;

	if (len < 0 || (size_t)len >= size)
		return -ENOSPC;
	shm->endpoints++;
	ret = dofi_shm_file_fits(address + strlen(SCHEME));
	if (ret)
		dofi_log(DOFI_WARN, DOFI_FAB, "%s cannot have the file of an endpoint: %s",
			 DOFI_SHM_FOLDER, strerror(-ret));
	return ret;
}

/* libfabric appends the user's number and a number that it chooses: "fi_shm://NAME.0:1000:0". */
#define NUMBERS "0123456789:"
#define NUMBERS_MAX 40

int dofi_shm_endpoint_check(const char *name, const void *address, size_t len)
{
	char want[DOFI_SHM_NAME + sizeof(SCHEME) + 1];
	char path[sizeof(DOFI_SHM_FOLDER) + DOFI_SHM_NAME + NUMBERS_MAX + 1];
	const size_t prefix = snprintf(want, sizeof(want), SCHEME "%s.", name);
	const char *text = address;

	if (len <= prefix + 1 || len > prefix + NUMBERS_MAX || memcmp(text, want, prefix) ||
	    text[len - 1] || strspn(text + prefix, NUMBERS) != len - 1 - prefix)
		return -EPROTO;
	snprintf(path, sizeof(path), "%s/%s", DOFI_SHM_FOLDER, text + sizeof(SCHEME) - 1);
	return access(path, F_OK) ? -ENOENT : 0;
}

static bool cookie_is(const struct dofi_shm_page *page, const uint8_t cookie[DOFI_SHM_COOKIE])
{
	return !memcmp(page->cookie, cookie, DOFI_SHM_COOKIE);
}

static struct dofi_shm_peer *peer_find(uint64_t self, const char *name,
				       const uint8_t cookie[DOFI_SHM_COOKIE])
{
	struct dofi_shm_peer *peer;

	LIST_FOREACH(peer, &peers, link)
		if (peer->robust.guard.self == self && !strcmp(peer->robust.name, name) &&
		    cookie_is(peer->page, cookie))
			break;
	return peer;
}

static int peer_new(int fd, uint64_t self, const char *name,
		    const uint8_t cookie[DOFI_SHM_COOKIE], struct dofi_shm_peer **peer)
{
	struct dofi_shm_peer *p = calloc(1, sizeof(*p));
	void *at;
	int ret;

	if (!p)
		return -ENOMEM;
	ret = dofi_shm_file_map(fd, &at);
	if (ret)
		goto free_peer;
	p->page = at;
	if (p->page->magic != MAGIC || p->page->version != VERSION ||
	    !cookie_is(p->page, cookie)) {
		ret = -EPROTO;
		goto unmap;
	}
	robust_init(&p->robust, p->page, name, self);
	LIST_INSERT_HEAD(&peers, p, link);
	*peer = p;
	return 0;
unmap:
	munmap(at, DOFI_SHM_FILE_LEN);
free_peer:
	free(p);
	return ret;
}

static int peer_get(int fd, uint64_t self, const char *name,
		    const uint8_t cookie[DOFI_SHM_COOKIE], struct dofi_shm_peer **peer)
{
	struct dofi_shm_peer *p;
	int ret = 0;

	dofi_mutex_lock(&lock);
	p = peer_find(self, name, cookie);
	if (!p)
		ret = peer_new(fd, self, name, cookie, &p);
	if (!ret) {
		p->users++;
		*peer = p;
	}
	dofi_mutex_unlock(&lock);
	return ret;
}

int dofi_shm_map(const struct dofi_shm *shm, const char *name,
		 const uint8_t cookie[DOFI_SHM_COOKIE], struct dofi_shm_peer **peer)
{
	int fd = dofi_shm_file_open(name), ret;

	if (fd < 0)
		return fd;
	ret = peer_get(fd, shm->robust.guard.self, name, cookie, peer);
	close(fd);
	return ret;
}

void dofi_shm_unmap(struct dofi_shm_peer *peer)
{
	dofi_mutex_lock(&lock);
	if (!--peer->users) {
		LIST_REMOVE(peer, link);
		munmap(peer->page, DOFI_SHM_FILE_LEN);
		free(peer);
	}
	dofi_mutex_unlock(&lock);
}
