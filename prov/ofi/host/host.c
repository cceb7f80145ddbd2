/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes of one host: their identity, and the memory of another process. */

#include "host/host.h"

#include "base/iov.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

int dofi_host_read(struct dofi_host *host)
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	struct dofi_host h;
	struct stat st;
	int i, ret = -EIO;

	/* random, where the number is unknown */
	if (getrandom(&h, sizeof(h), 0) != sizeof(h))
		goto close_file;
	/* sixteen bytes in hexadecimal, with dashes in between */
	for (i = 0; f && i < 16; i++)
		if (fscanf(f, "%*1[-]") == EOF || fscanf(f, "%2hhx", &h.boot[i]) != 1)
			break;
	if (!stat("/proc/self/ns/pid", &st))
		h.pid_space = st.st_ino;
	h.pid = (uint32_t)getpid();
	*host = h;
	ret = 0;
close_file:
	if (f)
		fclose(f);
	return ret;
}

bool dofi_host_shares_pids(const struct dofi_host *a, const struct dofi_host *b)
{
	return !memcmp(a->boot, b->boot, sizeof(a->boot)) && a->pid_space == b->pid_space;
}

/* The memory of another process */

/* Remaining segments. One more than the caller's is for the word, or for the last bytes. */
struct list {
	struct iovec iov[DOFI_PEER_SEGMENTS + 1];
	size_t first, n;
};

static int list_init(struct list *list, const struct iovec *iov, size_t n, struct iovec word,
		     size_t *len)
{
	size_t i, sum = word.iov_len;

	if (n > DOFI_PEER_SEGMENTS)
		return -EINVAL;
	for (i = 0; i < n; i++) {
		if (iov[i].iov_len > SSIZE_MAX - sum)
			return -EINVAL;
		sum += iov[i].iov_len;
		list->iov[i] = iov[i];
	}
	list->iov[n] = word;
	list->n = n + 1;
	list->first = 0;
	*len = sum;
	return 0;
}

static void list_advance(struct list *list, size_t len)
{
	struct iovec *iov = &list->iov[list->first];

	for (; list->n && len >= iov->iov_len; iov++, list->first++, list->n--)
		len -= iov->iov_len;
	if (!list->n)
		return;
	iov->iov_base = (char *)iov->iov_base + len;
	iov->iov_len -= len;
}

static int pull(pid_t pid, const struct iovec *to, size_t n, const struct iovec *from, size_t m,
		const struct dofi_peer_word *word)
{
	struct iovec theirs = { (void *)(uintptr_t)word->addr, sizeof(word->value) };
	uint64_t value;
	struct iovec ours = { &value, sizeof(value) };
	struct list local, remote;
	size_t len, left;
	ssize_t got;

	if (list_init(&local, to, n, ours, &len) || list_init(&remote, from, m, theirs, &left) ||
	    len != left)
		return -EINVAL;
	/* one call moves at most 2 GiB, and stops early where a page is missing */
	for (; left; left -= (size_t)got) {
		got = process_vm_readv(pid, &local.iov[local.first], local.n,
				       &remote.iov[remote.first], remote.n, 0);
		if (got < 0)
			return -errno;
		if (!got)
			return -EFAULT;
		list_advance(&local, (size_t)got);
		list_advance(&remote, (size_t)got);
	}
	return value == word->value ? 0 : -ESTALE;
}

int dofi_peer_pull(pid_t pid, const struct iovec *to, size_t n, const struct iovec *from, size_t m,
		   const struct dofi_peer_word *word)
{
	int stale, ret = pull(pid, to, n, from, m, word);

	if (ret != -EFAULT)
		return ret;
	/* the peer may have unmapped the memory after the grant: the word was not read then */
	stale = dofi_peer_probe(pid, word);
	return stale ? stale : ret;
}

int dofi_peer_probe(pid_t pid, const struct dofi_peer_word *word)
{
	return pull(pid, NULL, 0, NULL, 0, word);
}

/* Adds the @len bytes from *@offset on, and advances *@offset. Returns how many there are. */
static size_t list_add(struct list *list, const struct iovec *iov, size_t n, size_t *offset,
		       size_t len)
{
	size_t i, skip = *offset, done = 0;

	for (i = 0; i < n && done < len; i++) {
		const size_t rest = iov[i].iov_len > skip ? iov[i].iov_len - skip : 0;
		const size_t part = rest < len - done ? rest : len - done;

		if (part)
			list->iov[list->n++] = (struct iovec){
				.iov_base = (char *)iov[i].iov_base + skip, .iov_len = part,
			};
		skip -= skip < iov[i].iov_len ? skip : iov[i].iov_len;
		done += part;
	}
	*offset += done;
	return done;
}

int dofi_peer_push(pid_t pid, const struct iovec *from, size_t n, size_t offset, size_t len,
		   uint64_t to)
{
	struct iovec remote = { (void *)(uintptr_t)to, len };
	const size_t tail = dofi_iov_tail(remote.iov_base, len);
	struct list local = { .n = 0 };
	ssize_t put;

	/* Linux copies segment by segment, in their order */
	if (n > DOFI_PEER_SEGMENTS ||
	    list_add(&local, from, n, &offset, len - tail) != len - tail ||
	    list_add(&local, from, n, &offset, tail) != tail)
		return -EINVAL;
	while (remote.iov_len) {
		put = process_vm_writev(pid, &local.iov[local.first], local.n, &remote, 1, 0);
		if (put < 0)
			return -errno;
		if (!put)
			return -EFAULT;
		list_advance(&local, (size_t)put);
		remote.iov_base = (char *)remote.iov_base + put;
		remote.iov_len -= (size_t)put;
	}
	return 0;
}
