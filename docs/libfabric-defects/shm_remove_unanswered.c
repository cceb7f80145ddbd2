/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * shm: removing the address of a peer that never answered writes before an array in the peer's
 * memory.
 *
 * The peer sleeps, so it does not change its file. The program compares the file before and after
 * fi_av_remove().
 */
#include "defect.h"

#include <fcntl.h>
#include <sys/stat.h>

static char *peers_name;

static void peer(void)
{
	struct node n;

	rdm_open(&n, "shm", "peer", FI_MSG);
	shm_name(&n, peers_name);
	for (;;)
		pause();
}

static void remove_unanswered(void)
{
	char *memory, *before, data[64] = "";
	int64_t until = now_ms() + 5000;
	size_t i, changed = 0, first = 0;
	fi_addr_t address;
	struct stat st;
	struct node n;
	int fd;

	start(peer, getpgrp());
	while (!peers_name[0])
		if (is_late(until))
			end(FAILED, "the peer did not start");
	rdm_open(&n, "shm", "a", FI_MSG);
	usleep(100000);
	address = shm_insert(&n, peers_name);
	if (address == FI_ADDR_NOTAVAIL)
		end(FAILED, "the peer's address is not taken");
	fi_inject(n.ep, data, sizeof(data), address);

	fd = shm_open(peers_name + strlen("fi_shm://"), O_RDWR, 0);
	if (fd < 0 || fstat(fd, &st))
		end(FAILED, "%s: %s", peers_name, strerror(errno));
	memory = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	before = malloc((size_t)st.st_size);
	if (memory == MAP_FAILED || !before)
		end(FAILED, "no memory");
	memcpy(before, memory, (size_t)st.st_size);
	must(fi_av_remove(n.av, &address, 1, 0));
	for (i = 0; i < (size_t)st.st_size; i++)
		if (before[i] != memory[i]) {
			first = changed++ ? first : i;
		}
	if (changed)
		end(SHOWS,
		    "fi_av_remove changed %zu bytes at %zu of %zu of a peer that never answered",
		    changed, first, (size_t)st.st_size);
	end(ABSENT, "fi_av_remove changes nothing of a peer that never answered");
}

int main(void)
{
	peers_name = shared(NAME_SIZE);
	return bounded(remove_unanswered, 20);
}
