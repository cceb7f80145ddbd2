/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Grants: peers' permitted accesses to memory of this process, and the keys for it. */
#ifndef DOFI_FAB_GRANT_H
#define DOFI_FAB_GRANT_H

#include "base/mutex.h"
#include "base/range.h"
#include "base/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* In a key for one connection: the fabric's key has a secret of both ends in its upper half. */
#define DOFI_KEY_SCOPED 0x80000000u

/* Returns the fabric's key for @key of the peer with @secret. A secret is never 0. */
static inline uint64_t dofi_mr_fabric_key(uint32_t key, uint32_t secret)
{
	return key & DOFI_KEY_SCOPED ? (uint64_t)secret << 32 | key : key;
}

/* Returns a random number other than 0; 0 if the kernel has none. */
uint32_t dofi_random(void);

/* Returns a random key; 0 if the kernel has no random number. */
uint32_t dofi_key_random(bool scoped);

/* Memory to register. */
struct dofi_mr_request {
	const void *addr;
	size_t len;
	uint64_t remote; /* FI_REMOTE_READ, FI_REMOTE_WRITE: for peers of the domain's endpoints */
	bool read_only;		/* nothing is received there: the memory may be mapped read-only */
	bool zero_based;	/* peers count addresses from the first byte */
	bool scoped;		/* only for the peer that has @secret */
	uint32_t secret;
};

struct dofi_grant;

struct dofi_grant_book;
struct dofi_writer;

struct dofi_grants {
	/* of the members below; held while bytes move; taken before a send's locks */
	struct dofi_mutex lock;
	struct dofi_table table;	/* of grants, by key */
	struct dofi_grant_book *book;	/* the grants as peers read them, or NULL */
	LIST_HEAD(, dofi_writer) writers; /* peers that can read it: fab/grant_book.h */
};

void dofi_grants_init(struct dofi_grants *grants);
/* All grants must be closed. */
void dofi_grants_fini(struct dofi_grants *grants);

/* Grants @request with a new key. -EIO without a random number, -EAGAIN without a free key. */
int dofi_grant_open(struct dofi_grants *grants, const struct dofi_mr_request *request,
		    struct dofi_grant **grant, uint32_t *key) DOFI_NEEDS_NOT(grants->lock);
/* Grants @request with @key, which is not 0; -EEXIST if a grant of the table has it. */
int dofi_grant_open_as(struct dofi_grants *grants, const struct dofi_mr_request *request,
		       uint32_t key, struct dofi_grant **grant) DOFI_NEEDS_NOT(grants->lock);
/* Waits for dofi_grant_leave() and for peers that write; changes the word. Any thread. */
void dofi_grant_close(struct dofi_grant *grant);

/* An access that a peer requests. All but the secret comes from the peer. */
struct dofi_access {
	uint32_t key;
	uint32_t secret;	/* sent by this end when the connection was made */
	uint64_t addr, len;	/* as the peer counts addresses */
	uint64_t access;	/* FI_REMOTE_READ or FI_REMOTE_WRITE */
};

/* The memory and accesses of a grant. */
struct dofi_bounds {
	uint64_t fabric_key;		/* dofi_mr_fabric_key() */
	uint64_t first;			/* address of the first byte for peers */
	uint64_t memory;		/* address of the first byte here */
	uint64_t len;
	uint64_t access;
};

/* Returns whether @bounds permit @wanted: the address must be inside even without bytes. */
static inline bool dofi_bounds_allow(const struct dofi_bounds *bounds,
				     const struct dofi_access *wanted)
{
	return bounds->fabric_key == dofi_mr_fabric_key(wanted->key, wanted->secret) &&
	       dofi_range_has(bounds->first + bounds->len, bounds->len, wanted->addr,
			      wanted->len ? wanted->len : 1) &&
	       wanted->access && !(wanted->access & ~bounds->access);
}

/*
 * Checks @wanted. Returns 0, and sets *@memory to the first byte: no grant ends until
 * dofi_grant_leave(), which has to follow soon. Returns -EACCES, and holds nothing, for an unknown
 * key, one of another connection, memory outside the grant, or another access.
 */
int dofi_grant_enter(struct dofi_grants *grants, const struct dofi_access *wanted, void **memory)
	DOFI_TAKES_IF(0, grants->lock);
void dofi_grant_leave(struct dofi_grants *grants) DOFI_DROPS(grants->lock);
/* For the log, after a refusal: whether the context, range or privilege of @wanted is wrong now. */
const char *dofi_grant_refusal(struct dofi_grants *grants, const struct dofi_access *wanted)
	DOFI_NEEDS_NOT(grants->lock);

/*
 * Lets peers read the grants, and use them without this process (fab/grant_book.h). Returns 0, or a
 * negative errno. The calling thread has to live until dofi_grants_fini(), which it calls.
 */
int dofi_grants_publish(struct dofi_grants *grants) DOFI_NEEDS_NOT(grants->lock);
/* From now on dofi_grant_close() waits for @writer. Any thread. */
void dofi_grants_add_writer(struct dofi_grants *grants, struct dofi_writer *writer)
	DOFI_NEEDS_NOT(grants->lock);
void dofi_grants_remove_writer(struct dofi_grants *grants, struct dofi_writer *writer)
	DOFI_NEEDS_NOT(grants->lock);

/* For peers that read memory: the grant stood if the word, read after the bytes, has the value. */
struct dofi_grant_word {
	const uint64_t *at;	/* never unmapped */
	uint64_t value;		/* while the grant is in force; never used again */
};

/* Checks @wanted, and holds nothing: the peer checks @word. Returns 0 or -EACCES. */
int dofi_grant_word(struct dofi_grants *grants, const struct dofi_access *wanted, void **memory,
		    struct dofi_grant_word *word) DOFI_NEEDS_NOT(grants->lock);

#endif
