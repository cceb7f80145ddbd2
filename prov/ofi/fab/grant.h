/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What peers may do with this process's memory, and the keys that they name it by; a table of
 * it, where no fabric looks the keys up.
 */
#ifndef DOFI_FAB_GRANT_H
#define DOFI_FAB_GRANT_H

#include "base/mutex.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/*
 * The keys that we choose say whether their scope is one connection. To the fabric such a
 * key is twice as long: the other half is a secret that the two ends of the connection told
 * each other when they made it, so that the key is of no use to anybody else who learns it.
 */
#define DOFI_KEY_SCOPED 0x80000000u

/* The fabric's key of what the peer whose secret is @secret calls @key; no secret is 0. */
static inline uint64_t dofi_mr_fabric_key(uint32_t key, uint32_t secret)
{
	return key & DOFI_KEY_SCOPED ? (uint64_t)secret << 32 | key : key;
}

/* A number that nobody guesses, and not 0; or 0 if the system has none. */
uint32_t dofi_random(void);

/* A key that nobody guesses; 0 without randomness. */
uint32_t dofi_key_random(bool scoped);

/* Memory to register. */
struct dofi_mr_request {
	const void *addr;
	size_t len;
	uint64_t remote;	/* FI_REMOTE_READ, FI_REMOTE_WRITE: for peers of the domain's endpoints */
	bool read_only;		/* nothing arrives there; the program itself may not be able to write it */
	bool zero_based;	/* peers count from its first byte; dofi_fabric_choice.zero_based */
	bool scoped;		/* for the peer alone that knows @secret; likewise scoped_keys */
	uint32_t secret;
};

struct dofi_grant;

LIST_HEAD(dofi_grant_list, dofi_grant);

struct dofi_grants {
	struct dofi_mutex lock;		/* the fields below; a leaf, held while peers' bytes move */
	struct dofi_grant_list *bucket;	/* by key */
	size_t n_buckets;			/* a power of two, or 0 */
	size_t used;
};

void dofi_grants_init(struct dofi_grants *grants);
/* All that was opened is closed. */
void dofi_grants_fini(struct dofi_grants *grants);

/*
 * Grants @request under a key that no other grant of the table has. Any thread. 0, -ENOMEM, -EIO
 * without randomness, or -EAGAIN when no key is free.
 */
int dofi_grant_open(struct dofi_grants *grants, const struct dofi_mr_request *request,
		    struct dofi_grant **grant, uint32_t *key);
/* The same under @key, which is not 0; -EEXIST if a grant of the table has it. */
int dofi_grant_open_as(struct dofi_grants *grants, const struct dofi_mr_request *request,
		       uint32_t key, struct dofi_grant **grant);
/* Nobody who entered is in it any more on return, and its word has changed. Any thread. */
void dofi_grant_close(struct dofi_grant *grant);

/* What a peer wants to do. All of it comes from the peer, but for the secret. */
struct dofi_use {
	uint32_t key;
	uint32_t secret;	/* that this end told the peer through its connection */
	uint64_t addr, len;	/* as the peer counts */
	uint64_t access;	/* FI_REMOTE_READ or FI_REMOTE_WRITE */
};

/*
 * Where a peer may do what it wants: 0, and the first of @use->len bytes in this process. No grant
 * of the table ends until dofi_grant_leave(), which the thread comes to soon, and by nothing that
 * ends one. Or -EACCES, whatever the reason, and nothing is held: an unknown key, one of another
 * connection, memory that is not all inside, an access that was not granted. Even of no bytes the
 * first must be inside.
 */
int dofi_grant_enter(struct dofi_grants *grants, const struct dofi_use *use, void **memory);
void dofi_grant_leave(struct dofi_grants *grants);

/*
 * By which a peer that moves the bytes itself, out of this process's memory, sees that they were
 * granted when it did: they were if the word had that value still, read after them.
 */
struct dofi_grant_word {
	const uint64_t *at;	/* never unmapped */
	uint64_t value;		/* while the grant stands; and never again */
};

/* As dofi_grant_enter(), but nothing is held on return: @word tells the rest. */
int dofi_grant_word(struct dofi_grants *grants, const struct dofi_use *use, void **memory,
		    struct dofi_grant_word *word);

#endif
