/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A page of an IA in /dev/shm. Peers map it to see that the IA is alive, whether it sleeps, and to
 * lock its endpoints.
 *
 * A lock of the kernel on the file proves that the owner is alive: xport/rdm/shm/files.h. A peer
 * that maps the page and finds the cookie there that the owner sent it knows that the two processes
 * share memory.
 */
#ifndef DOFI_SHM_PAGE_H
#define DOFI_SHM_PAGE_H

#include "loop/fork.h"
#include "xport/rdm/shm/lock.h"
#include "fab/lead.h"
#include "xport/rdm/shm/files.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#define DOFI_SHM_COOKIE 16

/* The file. Peers belong to the user of the owner; the members up to the cookie never change. */
struct dofi_shm_page {
	uint64_t magic;
	uint32_t version;
	uint32_t unused;
	uint8_t cookie[DOFI_SHM_COOKIE];
	/* incremented by a peer after it sent something to the owner; in a cache line of its own */
	_Alignas(64) _Atomic uint32_t sent;
	/*
	 * DOFI_SHM_THREAD, DOFI_SHM_LEADER; a peer that has sent something sets it to 0, and wakes
	 * the owner if it was not 0
	 */
	_Atomic uint32_t asleep;
	/* of the robust lock of the owner's endpoints: the number of the holder's page, or 0 */
	_Alignas(64) _Atomic uint64_t holder;
};

/* The bits of a page's asleep. */
#define DOFI_SHM_THREAD 1	/* the progress thread sleeps: wake it by the CM socket */
#define DOFI_SHM_LEADER 2	/* leaders of CQs sleep on this word, a futex */

struct dofi_shm {
	struct dofi_shm_page *page;	/* NULL while it is closed */
	char name[DOFI_SHM_NAME];
	unsigned endpoints;		/* how many addresses dofi_shm_endpoint() has returned */
	struct dofi_robust robust;	/* the lock of these endpoints */
	struct dofi_lead_word lead;	/* DOFI_SHM_LEADER of the page's asleep */
	struct dofi_fork_fd fd;		/* holds the file lock */
	pid_t owner;
};

/* Creates the page, and removes files of dead owners. Returns 0 or a negative errno. Any thread. */
int dofi_shm_open(struct dofi_shm *shm);

/*
 * Removes the page, and files that the fabric has left. Call after the endpoints are closed; @shm
 * may be all zero. A forked child removes nothing of its parent.
 */
void dofi_shm_close(struct dofi_shm *shm);

/*
 * Returns the address of the next endpoint for libfabric, "fi_shm://NAME.NUMBER". 0, or a negative
 * errno, also if /dev/shm cannot have the endpoint's file.
 */
int dofi_shm_endpoint(struct dofi_shm *shm, char *address, size_t size);

/*
 * Checks @address, which may be any @len bytes: 0 if the owner of page @name has an endpoint of
 * that address, -EPROTO if it is no address of that owner, -ENOENT if the owner has no such
 * endpoint, or no longer has it.
 */
int dofi_shm_endpoint_check(const char *name, const void *address, size_t len);

/*
 * The progress thread is about to sleep. It has to read its CQs once more after this, regardless of
 * page->sent, to find what peers sent before.
 */
static inline void dofi_shm_sleep_begin(struct dofi_shm *shm)
{
	/* a full barrier that pairs with the one in dofi_shm_notify() */
	atomic_fetch_or(&shm->page->asleep, DOFI_SHM_THREAD);
}

static inline void dofi_shm_sleep_end(struct dofi_shm *shm)
{
	atomic_fetch_and_explicit(&shm->page->asleep, ~DOFI_SHM_THREAD, memory_order_relaxed);
}

/* A mapped page of a peer. The connections of an IA to that peer share it. */
struct dofi_shm_peer {
	struct dofi_shm_page *page;
	struct dofi_robust robust;	/* the lock of its endpoints; has the page's name */
	unsigned users;			/* under the list's lock */
	LIST_ENTRY(dofi_shm_peer) link;
};

/*
 * Maps the page of a peer, or of this process, for an IA with the page @shm. @name and @cookie may
 * be any bytes from the network; @name is terminated. Returns an error of dofi_shm_file_open(), or
 * -EPROTO for another cookie.
 */
int dofi_shm_map(const struct dofi_shm *shm, const char *name,
		 const uint8_t cookie[DOFI_SHM_COOKIE], struct dofi_shm_peer **peer);
void dofi_shm_unmap(struct dofi_shm_peer *peer);

/*
 * Wakes the peer's leaders. Returns whether the caller also has to wake the peer's progress thread.
 */
static inline bool dofi_shm_wake(struct dofi_shm_peer *peer)
{
	uint32_t asleep = atomic_exchange_explicit(&peer->page->asleep, 0, memory_order_relaxed);

	if (asleep & DOFI_SHM_LEADER)
		dofi_word_wake(&peer->page->asleep);
	return asleep & ~DOFI_SHM_LEADER;
}

/*
 * Call after sending something to the peer. Returns whether the caller has to wake the peer's
 * progress thread.
 */
static inline bool dofi_shm_notify(struct dofi_shm_peer *peer)
{
	/*
	 * a full barrier: either this sees that the peer sleeps, or the peer finds what was sent,
	 * see dofi_shm_sleep_begin()
	 */
	atomic_fetch_add(&peer->page->sent, 1);
	return atomic_load_explicit(&peer->page->asleep, memory_order_relaxed) &&
	       dofi_shm_wake(peer);
}

#endif
