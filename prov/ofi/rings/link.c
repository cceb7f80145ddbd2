/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The memory of a connection between two processes of one host: a ring each way. */

#include "rings/link.h"

#include "base/cond.h"
#include "base/log.h"
#include "base/shm.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC 0x646174206f666972ull
#define VERSION 3

/* Values of dofi_link_memory.use. */
enum { OFFERED, CLAIMED, ENDED, SHUT };

struct dofi_link_memory {
	uint64_t magic;
	uint32_t version;
	/* of each ring, written by its receiver: the slot in the receiver's set */
	_Atomic uint32_t slot[2];
	_Atomic uint32_t use;		/* of a link in one direction: OFFERED, ... */
	struct dofi_writing writing[2];	/* 0: of the end that created the memory, as a writer */
	struct dofi_ring ring[2];	/* 0: to the end that created the memory; 1: from it */
};

static struct dofi_link *link_new(struct dofi_link_memory *memory, bool made, int fd)
{
	struct dofi_link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	link->memory = memory;
	link->made = made;
	link->fd = fd;
	link->in.ring = &memory->ring[made ? 0 : 1];
	dofi_ring_seek(&link->in, 0);
	link->out.ring = &memory->ring[made ? 1 : 0];
	link->writing = &memory->writing[made ? 0 : 1];
	link->writer.writing = &memory->writing[made ? 1 : 0];
	return link;
}

int dofi_link_make(struct dofi_link **out)
{
	struct dofi_link *link;
	void *at;
	int fd = dofi_sealed_make(sizeof(struct dofi_link_memory), &at);

	if (fd < 0)
		return fd;
	link = link_new(at, true, fd);
	if (!link) {
		dofi_sealed_unmap(at, sizeof(struct dofi_link_memory));
		close(fd);
		return -ENOMEM;
	}
	link->memory->magic = MAGIC;
	link->memory->version = VERSION;
	*out = link;
	return 0;
}

/* Maps the peer's doorbell, and finds the mark of our ring there. */
static int doorbell_map(struct dofi_link *link, int fd)
{
	void *at;
	int ret = dofi_sealed_map(fd, sizeof(struct dofi_doorbell), &at);

	if (ret)
		return ret;
	link->doorbell = at;
	link->mark = atomic_load(&link->memory->slot[link->made ? 1 : 0]) % DOFI_DOORBELL_MARKS;
	memcpy(link->bell, link->doorbell->bell, sizeof(link->bell) - 1);
	return 0;
}

int dofi_link_join(int fd, int doorbell, struct dofi_link **out)
{
	struct dofi_link *link;
	struct dofi_link_memory *memory;
	void *at;
	int ret = dofi_sealed_map(fd, sizeof(*memory), &at);

	if (ret)
		return ret;
	memory = at;
	ret = memory->magic == MAGIC && memory->version == VERSION ? 0 : -EPROTO;
	link = ret ? NULL : link_new(memory, false, -1);
	if (!link) {
		dofi_sealed_unmap(at, sizeof(*memory));
		return ret ? ret : -ENOMEM;
	}
	ret = doorbell_map(link, doorbell);
	if (ret)
		dofi_link_free(link);
	else
		*out = link;
	return ret;
}

void dofi_link_keep(struct dofi_link *link)
{
	if (link->fd >= 0)
		close(link->fd);
	link->fd = -1;
}

int dofi_link_meet(struct dofi_link *link, int doorbell)
{
	dofi_link_keep(link);
	if (link->doorbell)
		return 0;
	return doorbell < 0 ? -EMFILE : doorbell_map(link, doorbell);
}

void dofi_link_learn_grants(struct dofi_link *link, int fd)
{
	int ret = link->grants ? 0 : dofi_grant_pages_map(fd, &link->grants);

	if (ret)
		dofi_log(DOFI_INFO, DOFI_CM, "the peer's grants cannot be read: %s",
			 strerror(-ret));
}

void dofi_link_free(struct dofi_link *link)
{
	if (!link)
		return;
	if (link->doorbell)
		dofi_sealed_unmap(link->doorbell, sizeof(*link->doorbell));
	dofi_grant_pages_unmap(link->grants);
	dofi_sealed_unmap(link->memory, sizeof(*link->memory));
	dofi_link_keep(link);
	free(link);
}

void dofi_link_show_slot(struct dofi_link *link)
{
	atomic_store(&link->memory->slot[link->made ? 0 : 1], link->slot);
}

/* Links in one direction */

static bool use_change(struct dofi_link *link, uint32_t to)
{
	uint32_t from = OFFERED;

	return atomic_compare_exchange_strong(&link->memory->use, &from, to);
}

bool dofi_link_claim(struct dofi_link *link)
{
	return use_change(link, CLAIMED);
}

bool dofi_link_withdraw(struct dofi_link *link)
{
	return use_change(link, SHUT);
}

void dofi_link_end(struct dofi_link *link)
{
	atomic_store(&link->memory->use, ENDED);
	atomic_store(&link->doorbell->ended, true);
}

void dofi_link_shut(struct dofi_link *link)
{
	atomic_store(&link->memory->use, SHUT);
}

bool dofi_link_has_ended(const struct dofi_link *link)
{
	return atomic_load(&link->memory->use) == ENDED;
}

bool dofi_link_is_shut(const struct dofi_link *link)
{
	return atomic_load(&link->memory->use) == SHUT;
}

/* Wakeups */

void dofi_link_notify_slow(struct dofi_link *link, const struct dofi_bell *bell)
{
	const uint64_t bit = 1ull << link->mark % 64, word = 1ull << link->mark / 64;
	const uint32_t wakes = DOFI_DOORBELL_WAKE | DOFI_DOORBELL_LEADER;
	struct dofi_doorbell *doorbell = link->doorbell;
	_Atomic uint64_t *mark = &doorbell->mark[link->mark / 64];
	uint32_t wants = atomic_load(&doorbell->wants);

	if (wants & DOFI_DOORBELL_MARK) {
		/* the mark before the bit of its word, which the owner clears first */
		if (!(atomic_load(mark) & bit))
			atomic_fetch_or(mark, bit);
		if (!(atomic_load(&doorbell->marked) & word))
			atomic_fetch_or(&doorbell->marked, word);
		wants = atomic_load(&doorbell->wants);
	}
	if (!(wants & wakes))
		return;
	wants = atomic_fetch_and(&doorbell->wants, ~wakes);
	if (wants & DOFI_DOORBELL_LEADER)
		dofi_word_wake(&doorbell->wants);
	if (wants & DOFI_DOORBELL_WAKE)
		dofi_bell_ring(bell, link->bell);
}
